import { afterEach, describe, expect, test } from 'vitest';
import { startGateway } from '../support/gateway.js';
import { type Loose, sleep, until } from '../support/net.js';
import { legacy, modern } from '../support/raw.js';
import { useVirtualTime } from '../support/virtual-time.js';
import { heardBy, listen, Opened, startTelling, startTellingLegacy, TOOLS_CHANGED, UPDATED } from './rig.js';

useVirtualTime();

const opened = new Opened();
afterEach(() => opened.closeAll());

const uri = (n: number | string) => `file:///${n}`;
const ASKABLE = { elicitation: { form: {} } };

async function startRoute(script: Loose = {}, route: Loose = {}) {
  const backend = opened.add(await startTellingLegacy(script));
  const gateway = opened.add(await startGateway({ '/mcp': { backend: { url: backend.url }, ...route } }));
  const asked = (method: string) =>
    backend.received(`resources/${method}`).map(({ json }) => json.params.uri);
  return { backend, url: gateway.url(), gateway, asked };
}

describe('at a legacy backend', () => {
  test('a resource is subscribed to once for all listeners, until the last of them leaves', async () => {
    const { backend, url, asked } = await startRoute();
    const filters = [[1, 2], [2, 3], [2], [1, 2, 3]].map((uris) => ({
      resourceSubscriptions: uris.map(uri),
    }));
    const listeners = await Promise.all(filters.map((filter) => listen(url, filter)));
    expect(asked('subscribe').sort()).toEqual([1, 2, 3].map(uri));
    expect(backend.listeners()).toHaveLength(1);
    const [one, two, three, all] = listeners;
    one?.close();
    all?.close();
    await until(() => backend.subscribed()[uri(1)] === undefined, 'the first to be undone');
    expect(asked('unsubscribe')).toEqual([uri(1)]);
    two?.close();
    await until(() => backend.subscribed()[uri(3)] === undefined, 'the third to be undone');
    backend.tell(UPDATED, { uri: uri(2) });
    expect(await heardBy(three as Loose, 1)).toEqual([uri(2)]);
    three?.close();
    await until(() => Object.keys(backend.subscribed()).length === 0, 'all to be undone');
    expect(asked('unsubscribe').sort()).toEqual([1, 2, 3].map(uri));
    expect(asked('subscribe')).toHaveLength(3);
  });

  test('two hundred listeners that come and leave at once leave nothing behind', async () => {
    const { backend, url, asked } = await startRoute();
    const stays = opened.add(await listen(url, { resourceSubscriptions: [uri('stays')] }));
    const listeners = await Promise.all(
      Array.from({ length: 200 }, (_, n) => listen(url, { resourceSubscriptions: [uri(n % 20)] })),
    );
    expect(asked('subscribe')).toHaveLength(21);
    for (const listener of listeners) listener.close();
    await until(() => Object.keys(backend.subscribed()).length === 1, 'all to be undone');
    backend.tell(UPDATED, { uri: uri('stays') });
    expect(await heardBy(stays, 1)).toEqual([uri('stays')]);
    expect(asked('unsubscribe')).toHaveLength(20);
    expect(backend.sessions.size).toBe(1);
  });

  test('what is subscribed to again does not meet what is still being undone', async () => {
    const ended: string[] = [];
    const { backend, url } = await startRoute({
      on: {
        'resources/unsubscribe': async ({ params }: Loose) => {
          await sleep(150);
          ended.push(params.uri);
          return { result: {} };
        },
      },
    });
    const stays = opened.add(await listen(url, { resourceSubscriptions: [uri('stays')] }));
    const order: string[] = [];
    backend.on('resources/subscribe', ({ params }) => {
      order.push(`${params.uri} after ${ended.length}`);
      return { result: {} };
    });
    for (let n = 0; n < 3; n += 1) {
      const listener = await listen(url, { resourceSubscriptions: [uri('a')] });
      listener.close();
      await until(() => backend.received('resources/unsubscribe').length > n, 'the undoing');
    }
    opened.add(await listen(url, { resourceSubscriptions: [uri('a')] }));
    expect(order).toEqual([0, 1, 2, 3].map((n) => `${uri('a')} after ${n}`));
    expect(stays.heard()).toEqual([]);
  });

  test('a listener that comes just after the last has left finds the stream still there', async () => {
    const { backend, url } = await startRoute();
    for (let n = 0; n < 4; n += 1) {
      const listener = await listen(url, { toolsListChanged: true });
      backend.tell(TOOLS_CHANGED);
      await heardBy(listener, 1, 0);
      listener.close();
    }
    expect(backend.requests.filter(({ method }) => method === 'GET')).toHaveLength(1);
    expect(backend.received('initialize')).toHaveLength(1);
  });

  test('calls share the session on which changes are heard, and the session outlives its idle time', async () => {
    const { backend, url } = await startRoute({}, { sessions: { idle: '400ms' } });
    const listener = opened.add(await listen(url, { toolsListChanged: true }));
    await modern(url, 'tools/list');
    expect(backend.sessions.size).toBe(1);
    await sleep(1_000);
    backend.tell(TOOLS_CHANGED);
    await heardBy(listener, 1);
    expect(backend.received('initialize')).toHaveLength(1);
  });

  test('where every call has a session of its own, listeners share one all the same', async () => {
    const { backend, url } = await startRoute({}, { sessions: { isolation: 'call' } });
    const listeners = await Promise.all(
      Array.from({ length: 3 }, () => listen(url, { toolsListChanged: true })),
    );
    await modern(url, 'tools/call', { name: 'echo', arguments: {} }, { capabilities: ASKABLE });
    await until(() => backend.sessions.size === 1, 'the session of the call to end');
    backend.tell(TOOLS_CHANGED);
    for (const listener of listeners) {
      expect(await heardBy(listener, 1)).toEqual([TOOLS_CHANGED]);
      listener.close();
    }
    const { json } = await modern(url, 'server/discover');
    expect(json.result.capabilities.tools).toEqual({ listChanged: true });
  });

  test('listeners do not take the room of calls', async () => {
    const { backend, url } = await startRoute({}, { sessions: { max: 1 }, timeouts: { total: '3s' } });
    const as = (name: string) => ({ headers: { authorization: `Bearer ${name}` } });
    const filter = { toolsListChanged: true };
    const names = ['a', 'b', 'c'];
    const listeners = await Promise.all(
      names.map(async (name) => opened.add(await listen(url, filter, as(name)))),
    );
    for (const name of [...names, 'd', 'e', ...names])
      expect((await modern(url, 'tools/list', {}, as(name))).status).toBe(200);
    const call = { name: 'echo', arguments: {} };
    const calls = ['a', 'd', 'e', 'f'].map((name) =>
      modern(url, 'tools/call', call, { ...as(name), capabilities: ASKABLE }),
    );
    for (const { status } of await Promise.all(calls)) expect(status).toBe(200);
    backend.tell(TOOLS_CHANGED);
    for (const listener of listeners) expect(await heardBy(listener, 1)).toEqual([TOOLS_CHANGED]);
    for (const listener of listeners) listener.close();
    // Each of the three, and one that is idle for the next.
    await until(() => backend.sessions.size <= 1, 'the ends of their sessions', 8_000);
  });

  test.each([
    ['that cannot be reached', 'stop'],
    ['that gives no session', 'initialize'],
    ['that refuses its caller', '401'],
    ['that never answers a subscription', 'hang'],
  ])('%s, a listener is refused and not kept waiting', async (_what, how) => {
    const { backend, url } = await startRoute({}, { timeouts: { connect: '500ms', start: '500ms' } });
    await modern(url, 'tools/list');
    await sleep(20);
    if (how === 'stop') await backend.stop();
    else if (how === 'initialize')
      backend.on('initialize', ({ res }) => void res.writeHead(503).end() as undefined);
    else if (how === '401')
      backend.on('resources/subscribe', ({ res }) => {
        res.writeHead(401, { 'www-authenticate': 'Bearer' }).end();
        return undefined;
      });
    else backend.on('resources/subscribe', () => undefined);
    if (how !== '401' && how !== 'hang') backend.forget();
    const params = { notifications: { resourceSubscriptions: [uri(1)] } };
    const answer = await modern(url, 'subscriptions/listen', params, { id: 4 });
    expect(answer.json).toMatchObject({ id: 4, error: {} });
    if (how === '401') {
      expect(answer.status).toBe(401);
      expect(answer.headers['www-authenticate']).toBe('Bearer');
    } else expect(answer.status).toBeGreaterThanOrEqual(500);
  });

  test('one that is refused does not disturb those who listen', async () => {
    const { backend, url } = await startRoute({}, { timeouts: { connect: '500ms', start: '500ms' } });
    const filter = { toolsListChanged: true, resourceSubscriptions: [uri(1)] };
    const listener = opened.add(await listen(url, filter));
    backend.on('resources/subscribe', () => undefined);
    const params = { notifications: { resourceSubscriptions: [uri(2)] } };
    expect((await modern(url, 'subscriptions/listen', params)).status).toBeGreaterThanOrEqual(500);
    backend.on('resources/subscribe', () => ({ result: {} }));
    const later = opened.add(await listen(url, { resourceSubscriptions: [uri(3)] }));
    for (const n of [1, 2, 3]) backend.tell(UPDATED, { uri: uri(n) });
    backend.tell(TOOLS_CHANGED);
    expect(await heardBy(listener, 2)).toEqual([uri(1), TOOLS_CHANGED]);
    expect(await heardBy(later, 1)).toEqual([uri(3)]);
  });

  test('a client that leaves before its acknowledgement leaves nothing behind', async () => {
    let agree = () => {};
    const { backend, url } = await startRoute({
      on: {
        'resources/subscribe': () =>
          new Promise((resolve) => {
            agree = () => resolve({ result: {} });
          }),
      },
    });
    const leaving = new AbortController();
    const params = { notifications: { resourceSubscriptions: [uri(1)] } };
    const answer = modern(url, 'subscriptions/listen', params, { signal: leaving.signal });
    await until(() => backend.received('resources/subscribe').length === 1, 'the subscription');
    leaving.abort();
    await expect(answer).rejects.toThrow();
    agree();
    await until(() => backend.received('resources/unsubscribe').length === 1, 'its end');
  });
});

test.each([
  ['legacy', 'resources/subscribe'],
  ['legacy', 'GET'],
  ['modern', 'subscriptions/listen'],
] as const)('a dead connection to a %s backend keeps nobody from %s', async (era, asked) => {
  let dies = true;
  const backend = opened.add(
    await startTelling[era]({
      intercept: ({ json, method, res }: Loose) => {
        if (!dies || (json?.method ?? method) !== asked) return false;
        dies = false;
        res.socket.destroy();
        return true;
      },
    }),
  );
  const gateway = opened.add(await startGateway({ '/mcp': backend.url }));
  if (era === 'legacy') {
    const listener = opened.add(await listen(gateway.url(), { resourceSubscriptions: [uri(1)] }));
    expect(listener.ack.params.notifications).toEqual({ resourceSubscriptions: [uri(1)] });
    await until(() => backend.listeners().length === 1, 'the stream');
  } else {
    const session = await legacy(gateway.url());
    expect((await session.request('resources/subscribe', { uri: uri(1) })).json.result).toEqual({});
    dies = true;
    opened.add(await listen(gateway.url(), { resourceSubscriptions: [uri(1)] }));
  }
  expect(dies).toBe(false);
});

test('a legacy client and the listeners of modern ones do not share subscriptions', async () => {
  const { backend, url, asked } = await startRoute();
  const session = await legacy(url);
  await session.request('resources/subscribe', { uri: uri(1) });
  const listener = await listen(url, { resourceSubscriptions: [uri(1)] });
  expect(asked('subscribe')).toEqual([uri(1), uri(1)]);
  listener.close();
  await until(() => asked('unsubscribe').length === 1, 'one to be undone');
  expect(backend.subscribed()).toEqual({ [uri(1)]: 1 });
});
