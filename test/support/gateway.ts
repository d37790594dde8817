import { pino } from 'pino';
import { parseConfig } from '../../src/config/index.js';
import { createGateway, type Gateway, type GatewayOptions } from '../../src/gateway.js';
import type { Stage } from '../../src/http/pipeline.js';
import type { Loose } from './net.js';

/** A route in the words of the YAML file, or just the backend's URL. */
export type RouteOptions = string | Record<string, Loose>;

export interface TestGateway {
  /** `http://127.0.0.1:<port>` */
  readonly origin: string;
  /** The URL of a route; default the first one. */
  url(path?: string): string;
  /** Log records so far, parsed, from level debug up; grows. */
  readonly logs: Loose[];
  /** Ends this gateway and starts another one on the same port with the same configuration. */
  restart(): Promise<void>;
  stop(): Promise<void>;
  /** Attaches a stage to the pipeline of the running gateway. */
  attach(stage: Stage): Disposable;
  start(): Promise<void>;
  close(): Promise<void>;
}

/** The configuration file for these routes, as YAML (JSON is YAML). */
export function configText(
  routes: Record<string, RouteOptions> | readonly Record<string, Loose>[],
  overrides: Record<string, Loose> = {},
): string {
  const list = Array.isArray(routes)
    ? routes
    : Object.entries(routes).map(([path, route]) =>
        typeof route === 'string' ? { path, backend: { url: route } } : { path, ...route },
      );
  const { listen, ...rest } = overrides;
  return JSON.stringify(
    { listen: { host: '127.0.0.1', port: 0, ...listen }, ...rest, routes: list },
    null,
    2,
  );
}

/**
 * Starts a gateway in this process, on a free loopback port.
 *
 * `routes` is the text of a whole YAML file, or a record of path → backend URL or route options
 * (`{ '/mcp': peer.url }`, `{ '/mcp': { backend: { url, era: 'legacy' }, sessions: { isolation: 'call' } } }`), or a
 * list of routes. `overrides` are the other top-level keys of the file (`sealKeys`, `limits`, `keepAlive` …).
 */
export async function startGateway(
  routes: string | Record<string, RouteOptions> | readonly Record<string, Loose>[],
  overrides: Record<string, Loose> = {},
  options: Pick<GatewayOptions, 'timings'> = {},
): Promise<TestGateway> {
  const text = typeof routes === 'string' ? routes : configText(routes, overrides);
  const parsed = parseConfig(text, 'test.yaml', {});
  const logs: Loose[] = [];
  const log = pino({ level: 'debug' }, { write: (line: string) => void logs.push(JSON.parse(line)) });
  let port = parsed.listen.port;
  let running: Gateway | undefined;
  const gateway: TestGateway = {
    get origin() {
      return `http://127.0.0.1:${port}`;
    },
    url: (path = parsed.routes[0]?.path ?? '/') => `http://127.0.0.1:${port}${path}`,
    logs,
    async start() {
      if (running) return;
      const config = { ...parsed, listen: { ...parsed.listen, port } };
      const fresh = createGateway(config, { ...options, log });
      running = fresh;
      port = Number(new URL(await fresh.listen()).port);
    },
    async stop() {
      const old = running;
      running = undefined;
      await old?.close();
    },
    async restart() {
      await gateway.stop();
      await gateway.start();
    },
    attach: (stage) => (running as Gateway).attach(stage),
    close: () => gateway.stop(),
  };
  await gateway.start();
  return gateway;
}
