import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import { startGateway } from '../support/gateway.js';
import type { Loose } from '../support/net.js';
import { record } from '../support/tap.js';

/** A server whose tasks are moved on by a function. */
interface Tasks<Task> {
  readonly url: string;
  readonly tasks: Task[];
  close(): Promise<unknown>;
}

/**
 * For the tests of a file: one server of tasks behind a gateway with taps on either side, which find no violation in any test.
 * @param start starts the server, whose tasks do what it is given
 * @param routes options of the routes by path; `/mcp` is the one with the tap in front of it
 */
export function watchedRoute<Server extends Tasks<Task>, Task>(
  start: (work: (task: Task) => Promise<Loose>) => Promise<Server>,
  routes: Record<string, Loose> = { '/mcp': {} },
) {
  const recording = record();
  const parts: { close(): Promise<unknown> }[] = [];
  const route = {
    recording,
    server: undefined as unknown as Server,
    /** With a tap in front of the gateway. */
    url: '',
    gateway: undefined as unknown as Awaited<ReturnType<typeof startGateway>>,
    /** Moves the tasks on, where a test does not do it itself. */
    work: undefined as ((task: Task) => Promise<Loose>) | undefined,
  };
  beforeAll(async () => {
    route.server = await start((task) => route.work?.(task) ?? new Promise(() => {}));
    const back = await recording.backend(route.server.url);
    const given = Object.entries(routes).map(([path, more]) => [
      path,
      { backend: { url: back.url }, ...more },
    ]);
    route.gateway = await startGateway(Object.fromEntries(given));
    const front = await recording.client(route.gateway.url());
    route.url = front.url;
    parts.push(front, route.gateway, back, route.server);
  });
  afterAll(async () => {
    for (const part of parts) await part.close();
  });
  afterEach(() => {
    route.work = undefined;
    route.server.tasks.length = 0;
    expect(recording.violations.splice(0)).toEqual([]);
  });
  return route;
}
