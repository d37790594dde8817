import { afterEach, describe, expect, test } from 'vitest';
import { startGateway } from '../support/gateway.js';
import { type Loose, sleep, until } from '../support/net.js';
import { legacy } from '../support/raw.js';
import { record } from '../support/tap.js';
import { useVirtualTime } from '../support/virtual-time.js';
import {
  ALL_LISTS,
  heardBy,
  listenLegacy,
  Opened,
  startTellingModern,
  TELLS_ALL,
  TOOLS_CHANGED,
  UPDATED,
} from './rig.js';

useVirtualTime();

const opened = new Opened();
afterEach(() => opened.closeAll());

const uri = (n: number | string) => `file:///${n}`;
const LEVEL = 'io.modelcontextprotocol/logLevel';

async function startRoute(script: Loose = {}, route: Loose = {}, config: Loose = {}) {
  const recording = record();
  const backend = opened.add(await startTellingModern(script));
  const tapped = opened.add(await recording.backend(backend.url));
  const gateway = opened.add(
    await startGateway({ '/mcp': { backend: { url: tapped.url }, ...route } }, config),
  );
  const front = opened.add(await recording.client(gateway.url()));
  const listens = () => backend.received('subscriptions/listen').map(({ json }) => json.params.notifications);
  return { backend, url: front.url, gateway, recording, listens };
}

describe('of a modern backend, a legacy client with a session', () => {
  test('hears on its stream, for which there is one subscription upstream', async () => {
    const { backend, url, listens, recording } = await startRoute();
    const session = await legacy(url);
    const listener = opened.add(await listenLegacy(session));
    await until(() => backend.listeners().length === 1, 'the subscription');
    for (const n of [1, 2])
      expect((await session.request('resources/subscribe', { uri: uri(n) })).json.result).toEqual({});
    await until(() => backend.listeners().length === 1, 'one subscription');
    expect(backend.filters()).toEqual([{ ...ALL_LISTS, resourceSubscriptions: [uri(1), uri(2)] }]);
    for (const n of [1, 2, 3]) backend.tell(UPDATED, { uri: uri(n), k: 1 });
    expect(await heardBy(listener, 2)).toEqual([uri(1), uri(2)]);
    // The same again is nothing new.
    await session.request('resources/subscribe', { uri: uri(1) });
    expect(listens()).toHaveLength(3);
    expect((await session.request('resources/unsubscribe', { uri: uri(1) })).json.result).toEqual({});
    await until(() => backend.subscribed()[uri(1)] === undefined, 'the smaller subscription');
    for (const n of [1, 2]) backend.tell(UPDATED, { uri: uri(n) });
    expect(await heardBy(listener, 3)).toEqual([uri(1), uri(2), uri(2)]);
    // A resource that was never subscribed to is unsubscribed all the same.
    expect((await session.request('resources/unsubscribe', { uri: uri(9) })).json.result).toEqual({});
    expect(recording.violations).toEqual([]);
  });

  test('shares it with others of the same rights, each of whom hears what it asked for', async () => {
    const { backend, url } = await startRoute();
    const sessions = await Promise.all(Array.from({ length: 20 }, () => legacy(url)));
    const listeners = await Promise.all(
      sessions.map(async (session) => opened.add(await listenLegacy(session))),
    );
    await Promise.all(sessions.map((session, n) => session.request('resources/subscribe', { uri: uri(n) })));
    await until(() => backend.listeners().length === 1, 'one subscription');
    expect(Object.keys(backend.subscribed())).toHaveLength(20);
    for (let n = 0; n < 20; n += 1) backend.tell(UPDATED, { uri: uri(n) });
    for (const [n, listener] of listeners.entries()) expect(await heardBy(listener, 1, 5)).toEqual([uri(n)]);
  });

  test('loses nothing and hears nothing twice while its subscription changes', async () => {
    const { backend, url } = await startRoute();
    const session = await legacy(url);
    const listener = opened.add(await listenLegacy(session));
    await session.request('resources/subscribe', { uri: uri('steady') });
    await until(() => backend.listeners().length === 1, 'the subscription');
    let told = 0;
    const telling = setInterval(() => {
      told += 1;
      backend.tell(UPDATED, { uri: uri('steady'), n: told });
    }, 7);
    for (let n = 0; n < 8; n += 1) {
      await session.request('resources/subscribe', { uri: uri(n) });
      if (n % 3 === 2) await session.request('resources/unsubscribe', { uri: uri(n - 1) });
    }
    await sleep(300);
    clearInterval(telling);
    await heardBy(listener, told);
    expect(listener.changes().map(({ params }) => params.n)).toEqual(
      Array.from({ length: told }, (_, n) => n + 1),
    );
  });

  test('keeps what it had where a wish for more cannot be met', async () => {
    const { backend, url } = await startRoute({ refuse: (wanted: string) => wanted === uri('no') });
    const session = await legacy(url);
    const listener = opened.add(await listenLegacy(session));
    await session.request('resources/subscribe', { uri: uri(1) });
    const refused = await session.request('resources/subscribe', { uri: uri('no') });
    expect(refused).toMatchObject({ status: 200, json: { error: { code: -32602 } } });
    backend.on('subscriptions/listen', ({ sendJson, id }) => {
      sendJson({ jsonrpc: '2.0', id, error: { code: -32603, message: 'Subscription limit reached' } });
      return undefined;
    });
    const full = await session.request('resources/subscribe', { uri: uri(2) });
    expect(full).toMatchObject({
      status: 200,
      json: { error: { code: -32603, message: 'Subscription limit reached' } },
    });
    backend.tell(UPDATED, { uri: uri(1) });
    backend.tell(TOOLS_CHANGED);
    expect(await heardBy(listener, 2)).toEqual([uri(1), TOOLS_CHANGED]);
  });

  test.each([
    [401, { 'www-authenticate': 'Bearer realm="r"' }],
    [429, { 'retry-after': '3' }],
  ])('is shown the HTTP status %s with which its wish is met', async (status, headers) => {
    const { backend, url } = await startRoute();
    const session = await legacy(url);
    backend.on(
      'subscriptions/listen',
      ({ res }) => void res.writeHead(status, headers as Loose).end() as undefined,
    );
    const answer = await session.request('resources/subscribe', { uri: uri(1) });
    expect(answer.status).toBe(status);
    expect(answer.headers).toMatchObject(headers);
  });

  test('may subscribe before it holds a stream, and hears what changed meanwhile once it does', async () => {
    const { backend, url, listens } = await startRoute();
    const session = await legacy(url);
    expect((await session.request('resources/subscribe', { uri: uri(1) })).json.result).toEqual({});
    expect(listens()).toEqual([{ resourceSubscriptions: [uri(1)] }]);
    for (const n of [1, 1, 2]) backend.tell(UPDATED, { uri: uri(n) });
    backend.tell(TOOLS_CHANGED);
    await sleep(50);
    const listener = opened.add(await listenLegacy(session));
    expect(await heardBy(listener, 1)).toEqual([uri(1)]);
    await until(() => backend.filters()[0]?.toolsListChanged === true, 'the lists as well');
    backend.tell(TOOLS_CHANGED);
    expect(await heardBy(listener, 2)).toEqual([uri(1), TOOLS_CHANGED]);
  });

  test('goes on hearing when the subscription upstream ends or breaks, and is told that it may have missed something', async () => {
    const { backend, url, recording } = await startRoute();
    const session = await legacy(url);
    const listener = opened.add(await listenLegacy(session));
    await session.request('resources/subscribe', { uri: uri(1) });
    await until(() => backend.listeners().length === 1, 'the subscription');
    for (const how of ['end', 'destroy'] as const) {
      const before = listener.heard().length;
      for (const stream of backend.listeners()) stream[how]();
      await until(() => backend.listeners().length === 1, 'the subscription again');
      expect((await heardBy(listener, before + 4)).slice(before)).toHaveLength(4);
      backend.tell(TOOLS_CHANGED);
      expect((await heardBy(listener, before + 5)).slice(before + 4)).toEqual([TOOLS_CHANGED]);
    }
    expect(backend.filters()).toEqual([{ ...ALL_LISTS, resourceSubscriptions: [uri(1)] }]);
    expect(recording.violations).toEqual([]);
  });

  test('leaves nothing upstream when it ends its session, or goes away and has subscribed to nothing', async () => {
    // Of clients that can come back the stream is kept up for a while.
    const { backend, url } = await startRoute({}, {}, { limits: { replay: 0 } });
    const session = await legacy(url);
    const listener = opened.add(await listenLegacy(session));
    await session.request('resources/subscribe', { uri: uri(1) });
    await until(() => backend.listeners().length === 1, 'the subscription');
    expect((await session.delete()).status).toBe(200);
    await until(() => backend.listeners().length === 0, 'its end');
    expect((await listener.stream.done).status).toBe(200);
    const other = await legacy(url);
    const leaving = await listenLegacy(other);
    await until(() => backend.listeners().length === 1, 'another subscription');
    leaving.close();
    await until(() => backend.listeners().length === 0, 'its end');
    await sleep(100);
    expect(backend.listeners()).toHaveLength(0);
  });

  test('is heard by nobody where the backend has no subscriptions, and works all the same', async () => {
    const { backend, url, gateway } = await startRoute({
      capabilities: { tools: {} },
    });
    backend.on('subscriptions/listen', undefined);
    const session = await legacy(url);
    opened.add(await listenLegacy(session));
    await sleep(700);
    expect((await session.request('tools/list')).json.result.tools).toHaveLength(1);
    const { status, json } = await session.request('resources/subscribe', { uri: uri(1) });
    expect([status, json.error.code]).toEqual([200, -32601]);
    expect(gateway.logs.filter(({ level }) => level >= 50)).toEqual([]);
  });

  test('is not asked for more than it wants: a missing uri is refused', async () => {
    const { url, listens } = await startRoute();
    const session = await legacy(url);
    for (const params of [{}, { uri: 7 }])
      expect((await session.request('resources/subscribe', params)).json.error.code).toBe(-32602);
    expect(listens()).toEqual([]);
  });

  test('takes its new credentials to the subscription that was refused with the old ones', async () => {
    const jwt = (n: number) => {
      const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
      return `Bearer ${part({ alg: 'none' })}.${part({ iss: 'i', sub: 's', jti: n })}.sig`;
    };
    let valid = jwt(1);
    const seen: (string | undefined)[] = [];
    const { backend, url } = await startRoute({
      intercept: ({ headers, res, json }: Loose) => {
        if (json?.method === 'subscriptions/listen') seen.push(headers.authorization);
        if (headers.authorization === valid) return false;
        res.writeHead(401, { 'www-authenticate': 'Bearer' }).end();
        return true;
      },
    });
    const session = await legacy(url, { headers: { authorization: valid } });
    const listener = opened.add(await listenLegacy(session));
    await until(() => backend.listeners().length === 1, 'the subscription');
    valid = jwt(2);
    backend.forget();
    await until(() => seen.length >= 2, 'an attempt with the old one');
    const renewed = { headers: { authorization: valid } };
    expect((await session.request('tools/list', {}, renewed)).status).toBe(200);
    await until(() => backend.listeners().length === 1, 'the subscription again');
    expect(seen.at(-1)).toBe(valid);
    await heardBy(listener, 3);
  });
});

describe('the log level of a legacy client', () => {
  const levels = (backend: Awaited<ReturnType<typeof startTellingModern>>, method: string) =>
    backend.received(method).map(({ json }) => json.params._meta[LEVEL]);

  test('travels on each request to a modern backend once it is set, and not before', async () => {
    const { backend, url, recording } = await startRoute();
    const session = await legacy(url);
    const call = () => session.request('tools/call', { name: 'echo', arguments: {} });
    await call();
    for (const level of ['warning', 'debug']) {
      expect((await session.request('logging/setLevel', { level })).json.result).toEqual({});
      await call();
    }
    expect(levels(backend, 'tools/call')).toEqual([undefined, 'warning', 'debug']);
    const other = await legacy(url);
    await other.request('tools/call', { name: 'echo', arguments: {} });
    expect(levels(backend, 'tools/call').at(-1)).toBeUndefined();
    expect(backend.received('logging/setLevel')).toEqual([]);
    expect(recording.violations).toEqual([]);
  });

  test('cannot be set to what is none, nor on a backend that does not log', async () => {
    const { backend, url } = await startRoute();
    const session = await legacy(url);
    for (const level of ['verbose', 3, undefined])
      expect((await session.request('logging/setLevel', { level })).json.error.code).toBe(-32602);
    await session.request('tools/call', { name: 'echo', arguments: {} });
    expect(levels(backend, 'tools/call')).toEqual([undefined]);
    const { logging: _, ...silent } = TELLS_ALL;
    const { url: other } = await startRoute({ capabilities: silent });
    const there = await legacy(other);
    expect((await there.request('logging/setLevel', { level: 'info' })).json.error.code).toBe(-32601);
  });

  test('brings the messages of a call on the stream of that call', async () => {
    const { url } = await startRoute({
      on: {
        'tools/call': (step: Loose) => {
          const stream = step.stream();
          if (step.params._meta[LEVEL])
            stream.event({
              jsonrpc: '2.0',
              method: 'notifications/message',
              params: { level: 'info', data: 'x' },
            });
          stream.event(step.frame({ result: { resultType: 'complete', content: [] } }));
          stream.end();
        },
      },
    });
    const session = await legacy(url);
    const listener = opened.add(await listenLegacy(session));
    const call = () => session.request('tools/call', { name: 'echo', arguments: {} });
    expect((await call()).messages).toEqual([]);
    await session.request('logging/setLevel', { level: 'info' });
    expect((await call()).messages.map(({ params }) => params.data)).toEqual(['x']);
    expect(listener.heard()).toEqual([]);
  });
});
