import { afterEach, describe, expect, test } from 'vitest';
import type { BackendStream } from '../support/backend.js';
import { startGateway } from '../support/gateway.js';
import { type Loose, sleep, until } from '../support/net.js';
import { legacy, modern, openModern } from '../support/raw.js';
import { record } from '../support/tap.js';
import { useVirtualTime } from '../support/virtual-time.js';
import {
  ALL_LISTS,
  heardBy,
  type Listener,
  listen,
  listenLegacy,
  nameOf,
  Opened,
  PROMPTS_CHANGED,
  RESOURCES_CHANGED,
  startTelling,
  startTellingLegacy,
  startTellingModern,
  TELLS_ALL,
  TOOLS_CHANGED,
  UPDATED,
} from './rig.js';

useVirtualTime();

const opened = new Opened();
afterEach(() => opened.closeAll());

const A = 'file:///a';
const LISTS = [TOOLS_CHANGED, PROMPTS_CHANGED, RESOURCES_CHANGED];
const ASKABLE = { elicitation: { form: {} } };

/** A tool that tells of changes on the stream of its call. */
const tellsOnCall =
  (...messages: Loose[]) =>
  (step: Loose) => {
    const stream: BackendStream = step.stream();
    for (const message of messages) stream.event({ jsonrpc: '2.0', ...message });
    const resultType = step.headers['mcp-method'] === undefined ? {} : { resultType: 'complete' };
    stream.event(step.frame({ result: { ...resultType, content: [] } }));
    stream.end();
    return undefined;
  };

async function routeTo(backend: Awaited<ReturnType<(typeof startTelling)['legacy']>>, route: Loose = {}) {
  const recording = record();
  opened.add(backend);
  const gateway = opened.add(await startGateway({ '/mcp': { backend: { url: backend.url }, ...route } }));
  const front = opened.add(await recording.client(gateway.url()));
  return { url: front.url, gateway, recording };
}

describe.each(['legacy', 'modern'] as const)('a %s backend that tells of a change', (era) => {
  test('is heard once by each client that listens, and does not trouble the others', async () => {
    const backend = await startTelling[era]();
    const { url, gateway, recording } = await routeTo(backend);
    const sessions = await Promise.all([legacy(url), legacy(url), legacy(url)]);
    const [withStream, subscribed, silent] = sessions as [Loose, Loose, Loose];
    const listeners: Record<string, Listener> = {
      legacy: opened.add(await listenLegacy(withStream)),
      subscribed: opened.add(await listenLegacy(subscribed)),
      modern: opened.add(await listen(url, ALL_LISTS)),
      resource: opened.add(await listen(url, { resourceSubscriptions: [A] })),
    };
    expect((await subscribed.request('resources/subscribe', { uri: A })).json.result).toEqual({});
    // One that subscribes and holds no stream.
    expect((await silent.request('resources/subscribe', { uri: A })).json.result).toEqual({});
    await modern(url, 'tools/list');
    // A legacy client's GET is answered before the backend's is.
    await until(() => backend.listeners().length >= (era === 'legacy' ? 3 : 1), 'the streams upstream');
    await sleep(100);
    for (const method of LISTS) backend.tell(method);
    backend.tell(UPDATED, { uri: A });
    const legacyHears = era === 'legacy' ? [...LISTS, A] : LISTS;
    expect(await heardBy(listeners['legacy'] as Listener, legacyHears.length)).toEqual(legacyHears);
    expect(await heardBy(listeners['subscribed'] as Listener, 4)).toEqual([...LISTS, A]);
    expect(await heardBy(listeners['modern'] as Listener, 3)).toEqual(LISTS);
    expect(await heardBy(listeners['resource'] as Listener, 1)).toEqual([A]);
    expect((await silent.request('tools/list')).messages).toEqual([]);
    expect((await modern(url, 'tools/list')).messages).toEqual([]);
    expect(gateway.logs.filter(({ level }) => level >= 40)).toEqual([]);
    expect(recording.violations).toEqual([]);
  });
});

describe('a legacy backend that tells of a change on the stream of a tool call', () => {
  const change = [{ method: TOOLS_CHANGED }, { method: UPDATED, params: { uri: A } }];

  test.each([
    ['that can be asked nothing', {}],
    ['that can be asked', ASKABLE],
  ])(
    'is heard once by the listeners of the modern client %s, and not by the call',
    async (_what, capabilities) => {
      const backend = await startTellingLegacy({ on: { 'tools/call': tellsOnCall(...change) } });
      const { url, recording } = await routeTo(backend);
      const filter = { toolsListChanged: true, resourceSubscriptions: [A] };
      const listener = opened.add(await listen(url, filter, { capabilities }));
      const call = await modern(url, 'tools/call', { name: 'echo', arguments: {} }, { capabilities });
      expect(call.json.result.content).toEqual([]);
      expect(call.messages).toEqual([]);
      expect(await heardBy(listener, 2)).toEqual([TOOLS_CHANGED, A]);
      expect(recording.violations).toEqual([]);
    },
  );

  test('passes it to the legacy client on that stream, whether or not it listens elsewhere', async () => {
    const backend = await startTellingLegacy({ on: { 'tools/call': tellsOnCall(...change) } });
    const { url, recording } = await routeTo(backend);
    const session = await legacy(url);
    const call = () => session.request('tools/call', { name: 'echo', arguments: {} });
    expect((await call()).messages.map(nameOf)).toEqual([TOOLS_CHANGED, A]);
    const listener = opened.add(await listenLegacy(session));
    expect((await call()).messages.map(nameOf)).toEqual([TOOLS_CHANGED, A]);
    await sleep(60);
    expect(listener.heard()).toEqual([]);
    expect(recording.violations).toEqual([]);
  });
});

describe('a legacy backend that tells the session of a call alone', () => {
  test.each([
    ['during the call', 0],
    ['right after it', 30],
  ])('%s is heard by the listeners of that client, and of no other', async (_when, pauseMs) => {
    const backend = await startTellingLegacy({
      on: {
        'tools/call': async ({ session }) => {
          const getStream = await until(
            () => backend.streams.find((one) => one.session === session && !one.stream.closed),
            'the stream of the session',
          );
          const tell = () => getStream.stream.event({ jsonrpc: '2.0', method: TOOLS_CHANGED });
          if (pauseMs === 0) tell();
          else setTimeout(tell, pauseMs);
          return { result: { content: [] } };
        },
      },
    });
    const { url } = await routeTo(backend);
    const mine = opened.add(await listen(url, ALL_LISTS, { capabilities: ASKABLE }));
    const meta = { 'io.modelcontextprotocol/clientInfo': { name: 'Other', version: '1' } };
    const others = opened.add(await listen(url, ALL_LISTS, { capabilities: ASKABLE, meta }));
    const params = { name: 'echo', arguments: {} };
    await modern(url, 'tools/call', params, { capabilities: ASKABLE });
    expect(await heardBy(mine, 1)).toEqual([TOOLS_CHANGED]);
    expect(others.heard()).toEqual([]);
  });
});

describe('a modern backend that tells of a change where it should not', () => {
  test('passes it on the stream on which it came, and to no listener', async () => {
    const backend = await startTellingModern({
      on: { 'tools/call': tellsOnCall({ method: TOOLS_CHANGED }) },
    });
    const { url } = await routeTo(backend);
    const session = await legacy(url);
    const call = await session.request('tools/call', { name: 'echo', arguments: {} });
    expect(call.json.result.content).toEqual([]);
    expect(call.messages.map(nameOf)).toEqual([TOOLS_CHANGED]);
  });

  test('with another subscription id, or none, is heard all the same', async () => {
    const backend = await startTellingModern();
    const { url } = await routeTo(backend);
    const session = await legacy(url);
    const listener = opened.add(await listenLegacy(session));
    await until(() => backend.listeners().length === 1, 'the subscription upstream');
    const key = 'io.modelcontextprotocol/subscriptionId';
    for (const _meta of [undefined, { [key]: 'other', kept: 1 }])
      backend.listeners()[0]?.event({ jsonrpc: '2.0', method: TOOLS_CHANGED, params: { _meta } });
    expect(await heardBy(listener, 2)).toEqual([TOOLS_CHANGED, TOOLS_CHANGED]);
    expect(JSON.stringify(listener.changes())).not.toContain('subscriptionId');
    expect(listener.changes()[1].params).toEqual({ _meta: { kept: 1 } });
  });
});

describe('a backend without subscriptions/listen', () => {
  test('refuses a modern client in its own words, with its own status', async () => {
    const backend = opened.add(
      await startTellingModern({
        on: {
          'subscriptions/listen': ({ sendJson, id }) => {
            sendJson({ jsonrpc: '2.0', id, error: { code: -32601, message: 'Method not found: here' } }, 404);
            return undefined;
          },
        },
      }),
    );
    const { url } = await routeTo(backend);
    const params = { notifications: ALL_LISTS };
    const { status, json } = await modern(url, 'subscriptions/listen', params, { id: 3 });
    expect([status, json]).toEqual([
      404,
      { jsonrpc: '2.0', id: 3, error: { code: -32601, message: 'Method not found: here' } },
    ]);
  });

  test.each([
    [401, { 'www-authenticate': 'Bearer realm="x"' }],
    [429, { 'retry-after': '7' }],
  ])('that answers HTTP %s does so to the client, with what it needs to act', async (status, headers) => {
    const backend = await startTellingModern({
      on: {
        'subscriptions/listen': ({ res }) => {
          res.writeHead(status, headers as Loose).end();
          return undefined;
        },
      },
    });
    const { url } = await routeTo(backend);
    const answer = await modern(url, 'subscriptions/listen', { notifications: ALL_LISTS });
    expect(answer.status).toBe(status);
    expect(answer.headers).toMatchObject(headers);
  });

  test('is told apart from one whose stream breaks: the client is not left waiting', async () => {
    const backend = await startTellingModern();
    const { url } = await routeTo(backend);
    const stream = await openModern(url, 'subscriptions/listen', { notifications: ALL_LISTS }, { id: 'm' });
    await stream.next();
    backend.forget();
    const { json } = await stream.done;
    expect(json).toMatchObject({ id: 'm', error: { code: -32603 } });
  });
});

test('what the backend declares is what TELLS_ALL says', async () => {
  const { url } = await routeTo(await startTellingLegacy());
  const { json } = await modern(url, 'server/discover');
  expect(json.result.capabilities).toEqual(TELLS_ALL);
});
