import { afterEach, describe, expect, test } from 'vitest';
import { startGateway } from '../support/gateway.js';
import { type Loose, sleep, until } from '../support/net.js';
import { fixture, startV1, startV2 } from '../support/peers/index.js';
import { legacy, modern } from '../support/raw.js';
import { record } from '../support/tap.js';
import { startTurntable } from '../support/turntable.js';
import { useVirtualTime } from '../support/virtual-time.js';
import {
  ALL_LISTS,
  heardBy,
  type Listener,
  listen,
  listenLegacy,
  Opened,
  RESOURCES_CHANGED,
  type startTelling,
  startTellingLegacy,
  startTellingModern,
  TOOLS_CHANGED,
  UPDATED,
} from './rig.js';

useVirtualTime();
const opened = new Opened();
afterEach(() => opened.closeAll());

const URI = fixture.CONFIG_URI;
const FILTER = { ...ALL_LISTS, resourceSubscriptions: [URI] };

/** A client of the era that listens to all lists and to one resource. */
async function listenerOf(era: string, url: string): Promise<Listener> {
  if (era === 'M') return listen(url, FILTER);
  const session = await legacy(url);
  const listener = await listenLegacy(session);
  const { json } = await session.request('resources/subscribe', { uri: URI });
  expect(json.result).toEqual({});
  return listener;
}

const countOf = (listener: Listener, name: string) =>
  listener.heard().filter((heard) => heard === name).length;

describe.each([
  ['ML', 100, () => startV1()],
  ['ML, with resumable streams', 10, () => startV1({ resumable: true })],
  ['ML, with 400 for unknown sessions', 10, () => startV1({ unknownSession: 400 })],
  ['LL', 100, () => startV1()],
  ['LM', 100, () => startV2({ legacy: 'reject' })],
])('a backend that restarts (%s) under %i listeners', (cell, count, start) => {
  test('is heard by all of them without their doing', async () => {
    const peer = opened.add(await start());
    const gateway = opened.add(await startGateway({ '/mcp': peer.url }));
    const era = cell[0] as string;
    const listeners = await Promise.all(
      Array.from({ length: count }, async () => opened.add(await listenerOf(era, gateway.url()))),
    );
    const heardOnce = async (announce: () => unknown, name: string) => {
      const before = listeners.map((listener) => countOf(listener, name));
      await announce();
      await until(
        () => listeners.every((listener, index) => countOf(listener, name) > (before[index] ?? 0)),
        `${name} at all`,
        10_000,
      );
      await sleep(50);
      for (const [index, listener] of listeners.entries())
        expect(countOf(listener, name) - (before[index] ?? 0)).toBe(1);
    };
    if (cell === 'LL')
      await until(() => gateway.logs.length > 0 && peer.sessions() === count, 'the sessions');
    await sleep(200);
    await heardOnce(() => peer.announce.toolsChanged(), TOOLS_CHANGED);
    await heardOnce(() => peer.announce.resourceUpdated(URI), URI);
    // What may have been missed meanwhile is announced once the backend is back.
    await heardOnce(() => peer.restart(), URI);
    await sleep(100);
    for (const listener of listeners) expect(countOf(listener, RESOURCES_CHANGED)).toBe(1);
    await heardOnce(() => peer.announce.toolsChanged(), TOOLS_CHANGED);
    await heardOnce(() => peer.announce.resourceUpdated(URI), URI);
    for (const { stream } of listeners) expect(stream.ended).toBe(false);
  });
});

async function startRoute(backend: Awaited<ReturnType<(typeof startTelling)['legacy']>>) {
  const recording = record();
  opened.add(backend);
  const gateway = opened.add(await startGateway({ '/mcp': backend.url }));
  const front = opened.add(await recording.client(gateway.url()));
  return { url: front.url, gateway, recording };
}

describe.each(['L', 'M'])('a %s client on a legacy backend whose stream breaks', (era) => {
  async function listening() {
    const backend = await startTellingLegacy();
    const route = await startRoute(backend);
    const listener = opened.add(await listenerOf(era, route.url));
    await until(() => backend.listeners().length === 1, 'the stream');
    return { backend, listener, ...route };
  }

  test('hears that something may have changed once it is there again, and of what comes then', async () => {
    const { backend, listener, recording } = await listening();
    backend.streams[0]?.stream.destroy();
    await until(() => backend.listeners().length === 1, 'the stream again');
    expect((await heardBy(listener, 4)).sort()).toEqual(
      [TOOLS_CHANGED, RESOURCES_CHANGED, 'notifications/prompts/list_changed', URI].sort(),
    );
    backend.tell(UPDATED, { uri: URI });
    expect(await heardBy(listener, 5)).toHaveLength(5);
    expect(backend.received('initialize')).toHaveLength(1);
    expect(backend.received('resources/subscribe')).toHaveLength(1);
    expect(recording.violations).toEqual([]);
  });

  test('hears nothing more than what was sent where the backend gives event ids', async () => {
    const { backend, listener } = await listening();
    backend.streams[0]?.stream.event({ jsonrpc: '2.0', method: TOOLS_CHANGED }, { id: 'e1' });
    await heardBy(listener, 1);
    backend.streams[0]?.stream.destroy();
    await until(() => backend.listeners().length === 1, 'the stream again');
    const gets = backend.requests.filter(({ method }) => method === 'GET');
    expect(gets.at(-1)?.headers['last-event-id']).toBe('e1');
    backend.streams.at(-1)?.stream.event({ jsonrpc: '2.0', method: TOOLS_CHANGED }, { id: 'e2' });
    expect(await heardBy(listener, 2)).toEqual([TOOLS_CHANGED, TOOLS_CHANGED]);
  });

  test('hears that something may have changed where the backend does not know the event any more', async () => {
    const { backend, listener } = await listening();
    backend.streams[0]?.stream.event({ jsonrpc: '2.0', method: TOOLS_CHANGED }, { id: 'old' });
    await heardBy(listener, 1);
    backend.on('GET', (step) => {
      if (step.headers['last-event-id'] !== undefined) {
        step.sendJson(
          { jsonrpc: '2.0', id: null, error: { code: -32000, message: 'Invalid event ID' } },
          400,
        );
      } else backend.streams.push({ session: step.session, stream: step.stream() });
      return undefined;
    });
    backend.streams[0]?.stream.destroy();
    await until(() => backend.listeners().length === 1, 'the stream again');
    expect(await heardBy(listener, 5)).toHaveLength(5);
    expect(backend.received('initialize')).toHaveLength(1);
  });

  test('goes on on another session where the backend has lost the one it had', async () => {
    const { backend, listener, recording } = await listening();
    backend.forget();
    await until(() => Object.keys(backend.subscribed()).length === 1, 'the subscription again');
    await until(() => backend.listeners().length === 1, 'the stream again');
    await heardBy(listener, 4);
    const before = listener.heard().length;
    backend.tell(UPDATED, { uri: URI });
    backend.tell(TOOLS_CHANGED);
    expect((await heardBy(listener, before + 2)).slice(before)).toEqual([URI, TOOLS_CHANGED]);
    expect(backend.sessions.size).toBe(1);
    expect(recording.violations).toEqual([]);
  });
});

describe('a modern listener', () => {
  test('is not troubled by a backend that ends its stream as soon as it begins', async () => {
    const backend = await startTellingLegacy();
    const { url } = await startRoute(backend);
    const listener = opened.add(await listen(url, FILTER));
    backend.on('GET', (step) => {
      step.stream().end();
      return undefined;
    });
    backend.streams[0]?.stream.end();
    await sleep(1_700);
    // With pauses of 0.5 and 1 s.
    expect(backend.requests.filter(({ method }) => method === 'GET').length).toBeLessThanOrEqual(3);
    expect(countOf(listener, TOOLS_CHANGED)).toBeLessThanOrEqual(2);
    expect(listener.stream.ended).toBe(false);
  });

  test('is ended gracefully when the backend comes back without what it had agreed to', async () => {
    const backend = await startTellingLegacy();
    const { url } = await startRoute(backend);
    const both = await listen(url, { toolsListChanged: true, resourceSubscriptions: [URI] }, { id: 'both' });
    const lists = opened.add(await listen(url, { toolsListChanged: true }));
    backend.on('resources/subscribe', () => ({ error: { code: -32602, message: 'Gone' } }));
    backend.forget();
    const { json } = await both.stream.done;
    expect(json).toMatchObject({ id: 'both', result: { resultType: 'complete' } });
    await heardBy(lists, 1);
    const again = opened.add(await listen(url, { toolsListChanged: true, resourceSubscriptions: [URI] }));
    expect(again.ack.params.notifications).toEqual({ toolsListChanged: true });
    backend.tell(TOOLS_CHANGED);
    await heardBy(again, 1);
    await heardBy(lists, 2);
  });

  test('is ended when the backend has no stream any more, or refuses it', async () => {
    const detach = async (status: number) => {
      const backend = await startTellingLegacy();
      const { url } = await startRoute(backend);
      const { stream } = await listen(url, { toolsListChanged: true });
      backend.on('GET', ({ res }) => void res.writeHead(status).end() as undefined);
      backend.streams[0]?.stream.destroy();
      return (await stream.done).json.result.resultType;
    };
    expect(await Promise.all([405, 401].map(detach))).toEqual(['complete', 'complete']);
  });

  test('is ended when a server of the other era comes back, and gets changes by asking again', async () => {
    const backend = await startTellingLegacy();
    const other = opened.add(await startTellingModern());
    opened.add(backend);
    const turntable = opened.add(await startTurntable(backend.url));
    const gateway = opened.add(await startGateway({ '/mcp': turntable.url }));
    const { stream } = await listen(gateway.url(), { toolsListChanged: true }, { id: 'moved' });
    turntable.turn(other.url);
    expect((await stream.done).json).toMatchObject({ id: 'moved', result: { resultType: 'complete' } });
    const again = opened.add(await listen(gateway.url(), { toolsListChanged: true }));
    other.tell(TOOLS_CHANGED);
    expect(await heardBy(again, 1)).toEqual([TOOLS_CHANGED]);
  });

  test('that comes while the backend is away waits with the others, or is told what cannot be had', async () => {
    const backend = await startTellingLegacy();
    const { url } = await startRoute(backend);
    const listener = opened.add(await listen(url, FILTER));
    await backend.stop();
    backend.forget();
    // What it asks for is being opened again for the others anyway.
    const late = opened.add(await listen(url, FILTER));
    const more = { resourceSubscriptions: ['file:///more'] };
    const refused = await modern(url, 'subscriptions/listen', { notifications: more });
    expect(refused.status).toBeGreaterThanOrEqual(500);
    await backend.start();
    await until(() => backend.listeners().length === 1, 'the stream again', 8_000);
    expect(await heardBy(listener, 4)).toHaveLength(4);
    expect(await heardBy(late, 4)).toHaveLength(4);
    backend.tell(TOOLS_CHANGED);
    expect((await heardBy(listener, 5)).at(-1)).toEqual(TOOLS_CHANGED);
    expect((await heardBy(late, 5)).at(-1)).toEqual(TOOLS_CHANGED);
    for (const { stream } of [listener, late]) expect(stream.ended).toBe(false);
  });

  test('that comes when the session was lost unnoticed gets a new one', async () => {
    const backend = await startTellingLegacy();
    const { url } = await startRoute(backend);
    const listener = opened.add(await listen(url, { toolsListChanged: true }));
    backend.sessions.clear();
    const late = opened.add(await listen(url, { resourceSubscriptions: [URI] }));
    expect(late.ack.params.notifications).toEqual({ resourceSubscriptions: [URI] });
    await until(() => backend.listeners().length >= 1 && backend.sessions.size === 1, 'the session');
    expect(late.heard()).toEqual([]);
    backend.tell(UPDATED, { uri: URI });
    expect(await heardBy(late, 1)).toEqual([URI]);
    // The one that was there before may have missed something.
    expect(await heardBy(listener, 1)).toContain(TOOLS_CHANGED);
  });

  test('hears of what happened before a stream that was slow to begin', async () => {
    let refusals = 2;
    const backend = await startTellingLegacy({
      on: {
        GET: (step: Loose) => {
          if (refusals-- > 0) step.res.writeHead(503).end();
          else backend.streams.push({ session: step.session, stream: step.stream() });
          return undefined;
        },
      },
    });
    const { url } = await startRoute(backend);
    const listener = opened.add(await listen(url, { toolsListChanged: true }));
    expect(listener.ack.params.notifications).toEqual({ toolsListChanged: true });
    expect(await heardBy(listener, 1)).toEqual([TOOLS_CHANGED]);
  });
});

describe('a legacy client on a legacy backend', () => {
  test('keeps its subscriptions and its log level when its session is replaced', async () => {
    const backend = await startTellingLegacy();
    const { url } = await startRoute(backend);
    const session = await legacy(url);
    opened.add(await listenLegacy(session));
    for (const uri of ['file:///a', 'file:///b', 'file:///c'])
      await session.request('resources/subscribe', { uri });
    await session.request('resources/unsubscribe', { uri: 'file:///b' });
    await session.request('logging/setLevel', { level: 'warning' });
    backend.forget();
    await until(() => backend.received('logging/setLevel').length === 2, 'the level again');
    await until(() => Object.keys(backend.subscribed()).length === 2, 'the subscriptions again');
    expect(backend.subscribed()).toEqual({ 'file:///a': 1, 'file:///c': 1 });
    expect(backend.received('logging/setLevel').at(-1)?.json.params).toEqual({ level: 'warning' });
  });

  test('keeps them also where it holds no stream, when it asks for something next', async () => {
    const backend = await startTellingLegacy();
    const { url } = await startRoute(backend);
    const session = await legacy(url);
    await session.request('resources/subscribe', { uri: URI });
    await session.request('logging/setLevel', { level: 'error' });
    backend.forget();
    expect((await session.request('tools/list')).json.result.tools).toHaveLength(1);
    expect(backend.subscribed()).toEqual({ [URI]: 1 });
    expect(backend.received('logging/setLevel')).toHaveLength(2);
    // What was refused is not kept.
    backend.on('resources/subscribe', () => ({ error: { code: -32602, message: 'No' } }));
    expect((await session.request('resources/subscribe', { uri: 'file:///no' })).json.error.code).toBe(
      -32602,
    );
    backend.on('resources/subscribe', undefined);
    backend.forget();
    await session.request('tools/list');
    expect(backend.received('resources/subscribe').map(({ json }) => json.params.uri)).toEqual([
      URI,
      URI,
      'file:///no',
      URI,
    ]);
  });

  test('gets its stream again by holding one, where its session was lost while it held none', async () => {
    const backend = await startTellingLegacy();
    const { url } = await startRoute(backend);
    // Of clients that can come back the stream is kept up for a while.
    const session = await legacy(url, { version: '2024-11-05' });
    const first = await listenLegacy(session);
    await until(() => backend.listeners().length === 1, 'the stream');
    first.close();
    await until(() => backend.listeners().length === 0, 'its end');
    await session.request('resources/subscribe', { uri: URI });
    backend.forget();
    expect((await session.request('ping')).json.result).toEqual({});
    await session.request('tools/list');
    backend.forget();
    // The loss shows when the stream is opened.
    const listener = opened.add(await listenLegacy(session));
    await until(() => backend.listeners().length === 1 && backend.subscribed()[URI] === 1, 'all again');
    await heardBy(listener, 1);
    const before = listener.heard().length;
    backend.tell(UPDATED, { uri: URI });
    expect((await heardBy(listener, before + 1)).at(-1)).toBe(URI);
  });

  test('is not kept waiting by a backend that never answers what is set up again', async () => {
    const backend = await startTellingLegacy();
    opened.add(backend);
    const gateway = opened.add(
      await startGateway({
        '/mcp': { backend: { url: backend.url }, timeouts: { connect: '500ms', start: '500ms' } },
      }),
    );
    const session = await legacy(gateway.url());
    await session.request('resources/subscribe', { uri: URI });
    backend.on('resources/subscribe', () => undefined);
    backend.forget();
    const before = performance.now();
    expect((await session.request('tools/list')).json.result.tools).toHaveLength(1);
    expect(performance.now() - before).toBeLessThan(3_000);
  });
});

test('a legacy client on a modern backend that is away when it begins to listen hears of it when it is back', async () => {
  const backend = await startTellingModern();
  const { url } = await startRoute(backend);
  const session = await legacy(url);
  backend.forget();
  await backend.stop();
  const listener = opened.add(await listenLegacy(session));
  await sleep(300);
  await backend.start();
  expect(await heardBy(listener, 3)).toHaveLength(3);
  backend.tell(TOOLS_CHANGED);
  expect((await heardBy(listener, 4)).at(-1)).toBe(TOOLS_CHANGED);
});
