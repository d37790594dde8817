import { afterEach, describe, expect, test } from 'vitest';
import { startGateway } from '../support/gateway.js';
import { type Loose, sleep, until } from '../support/net.js';
import { type ModernOptions, modern, RawJson, send, wire } from '../support/raw.js';
import { record } from '../support/tap.js';
import { useVirtualTime } from '../support/virtual-time.js';
import {
  ACKNOWLEDGED,
  ALL_LISTS,
  heardBy,
  listen,
  Opened,
  PROMPTS_CHANGED,
  RESOURCES_CHANGED,
  SUBSCRIPTION_ID,
  startTellingLegacy,
  startTellingModern,
  type TellingBackend,
  TOOLS_CHANGED,
  UPDATED,
} from './rig.js';

useVirtualTime();

const opened = new Opened();
afterEach(() => opened.closeAll());

const A = 'file:///a';
const FILTER = { toolsListChanged: true, resourceSubscriptions: [A] };

async function routeTo(backend: TellingBackend, route: Loose = {}, config: Loose = {}) {
  const recording = record();
  opened.add(backend);
  const tapped = opened.add(await recording.backend(backend.url));
  const gateway = opened.add(
    await startGateway({ '/mcp': { backend: { url: tapped.url }, ...route } }, config),
  );
  const front = opened.add(await recording.client(gateway.url()));
  return { url: front.url, gateway, recording };
}

const subscriptionId = ({ params }: Loose) => params._meta[SUBSCRIPTION_ID];

describe.each([
  ['legacy', startTellingLegacy],
  ['modern', startTellingModern],
] as const)('on a %s backend', (era, start) => {
  test('a subscription begins with its acknowledgement, and every change carries its id', async () => {
    const backend = await start();
    const { url, recording } = await routeTo(backend);
    const listener = opened.add(await listen(url, FILTER, { id: 's1' }));
    expect(listener.stream.status).toBe(200);
    expect(listener.stream.headers['content-type']).toBe('text/event-stream');
    expect(listener.stream.headers['cache-control']).toMatch(/no-store|no-cache/);
    expect(listener.ack).toEqual({
      jsonrpc: '2.0',
      method: ACKNOWLEDGED,
      params: { notifications: FILTER, _meta: { [SUBSCRIPTION_ID]: 's1' } },
    });
    backend.tell(TOOLS_CHANGED);
    backend.tell(UPDATED, { uri: A });
    expect(await heardBy(listener, 2)).toEqual([TOOLS_CHANGED, A]);
    expect(listener.changes()).toEqual([
      { jsonrpc: '2.0', method: TOOLS_CHANGED, params: { _meta: { [SUBSCRIPTION_ID]: 's1' } } },
      { jsonrpc: '2.0', method: UPDATED, params: { uri: A, _meta: { [SUBSCRIPTION_ID]: 's1' } } },
    ]);
    expect(recording.violations).toEqual([]);
  });

  test.each([
    ['1', '"1"'],
    ['0', '"0"'],
    ['-7', '"-7"'],
    ['"listen:0"', '"LISTEN:0"'],
  ])('subscriptions with the ids %s and %s keep them apart, to the letter', async (one, other) => {
    const backend = await start();
    const { url } = await routeTo(backend);
    const ids = [one, other];
    const listeners = await Promise.all(
      ids.map(async (id) => opened.add(await listen(url, FILTER, { id: new RawJson(id) }))),
    );
    backend.tell(TOOLS_CHANGED);
    for (const [index, listener] of listeners.entries()) {
      await heardBy(listener, 1);
      for (const { data } of listener.stream.events.filter(({ data }) => data !== ''))
        expect(data).toContain(`"${SUBSCRIPTION_ID}":${ids[index]}`);
    }
  });

  test('nothing comes that was not asked for', async () => {
    const backend = await start();
    const { url } = await routeTo(backend);
    const prompts = opened.add(await listen(url, { promptsListChanged: true, toolsListChanged: false }));
    const resource = opened.add(await listen(url, { resourceSubscriptions: [A] }));
    for (const stream of backend.listeners()) {
      stream.event({
        jsonrpc: '2.0',
        method: 'notifications/message',
        params: { level: 'error', data: 'x' },
      });
      stream.event({
        jsonrpc: '2.0',
        method: 'notifications/progress',
        params: { progressToken: 1, progress: 1 },
      });
      stream.event({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 99 } });
      stream.event({ jsonrpc: '2.0', method: 'notifications/example/unknown', params: {} });
    }
    for (const method of [TOOLS_CHANGED, RESOURCES_CHANGED, PROMPTS_CHANGED]) backend.tell(method);
    for (const uri of ['file:///ab', 'file:///', 'other:///a', A]) backend.tell(UPDATED, { uri });
    if (era === 'modern') {
      // What a modern backend puts on a stream is its own to answer for.
      expect(await heardBy(prompts, 1)).toContain(PROMPTS_CHANGED);
      return;
    }
    expect(await heardBy(prompts, 1)).toEqual([PROMPTS_CHANGED]);
    expect(await heardBy(resource, 1)).toEqual([A]);
  });

  test.each([
    ['missing', {}],
    ['null', { notifications: null }],
    ['an array', { notifications: [] }],
    ['a string', { notifications: 'all' }],
    ['with a flag that is none', { notifications: { toolsListChanged: 'yes' } }],
    ['with resources that are no list', { notifications: { resourceSubscriptions: A } }],
    ['with resources that are no strings', { notifications: { resourceSubscriptions: [1] } }],
  ])('a filter that is %s is refused', async (_what, params) => {
    const backend = await start();
    const { url } = await routeTo(backend);
    const { status, json, headers } = await modern(url, 'subscriptions/listen', params, { id: 'bad' });
    expect(status).toBe(400);
    expect(headers['content-type']).toMatch(/application\/json/);
    expect(json).toMatchObject({ jsonrpc: '2.0', id: 'bad', error: { code: -32602 } });
    expect(backend.received('subscriptions/listen')).toEqual([]);
    expect(backend.received('resources/subscribe')).toEqual([]);
  });

  test('a filter of more resources than the gateway follows for one client is refused', async () => {
    const { url } = await routeTo(await start());
    const resourceSubscriptions = Array.from({ length: 1_001 }, (_, n) => `file:///${n}`);
    const { status, json } = await modern(url, 'subscriptions/listen', {
      notifications: { resourceSubscriptions },
    });
    expect([status, json.error.code]).toEqual([400, -32602]);
  });

  test('what belongs to the streams of other eras is neither heeded nor shown', async () => {
    const { url } = await routeTo(await start());
    const headers = { 'mcp-session-id': 'stale', 'last-event-id': '7' };
    const listener = opened.add(await listen(url, FILTER, { headers }));
    expect(listener.stream.headers['mcp-session-id']).toBeUndefined();
    expect(listener.stream.events.map(({ id }) => id)).toEqual([undefined]);
    for (const method of ['GET', 'DELETE']) {
      const answer = await send(url, {
        method,
        headers: { 'mcp-protocol-version': '2026-07-28', ...headers },
      });
      expect([answer.status, answer.headers.allow]).toEqual([405, 'POST']);
    }
  });

  test('a client that takes no event stream is told so', async () => {
    const { url } = await routeTo(await start());
    const options: ModernOptions = { headers: { accept: 'application/json' }, id: 5 };
    const { status, json } = await modern(url, 'subscriptions/listen', { notifications: FILTER }, options);
    expect([status, json.id]).toEqual([406, 5]);
    expect(json.error.message).toContain('text/event-stream');
  });

  test('the stream begins at once, and comments keep it alive', async () => {
    const { url } = await routeTo(await start(), {}, { keepAlive: '300ms' });
    const listener = opened.add(await listen(url, FILTER));
    const before = listener.stream.comments.length;
    await until(() => listener.stream.comments.length >= before + 2, 'two comments');
    expect(listener.stream.ended).toBe(false);
  });

  test('a client that closes its stream is left alone, and what was asked for it is undone', async () => {
    const backend = await start();
    const { url } = await routeTo(backend);
    const listener = await listen(url, FILTER);
    const other = opened.add(await listen(url, { resourceSubscriptions: ['file:///b'] }));
    expect(backend.subscribed()).toEqual({ [A]: 1, 'file:///b': 1 });
    listener.close();
    await until(() => backend.subscribed()[A] === undefined, 'the end of the subscription');
    expect(backend.subscribed()).toEqual({ 'file:///b': 1 });
    backend.tell(UPDATED, { uri: 'file:///b' });
    await heardBy(other, 1);
  });

  test('a notification that cancels it, as clients send beside closing the stream, is taken', async () => {
    const { url } = await routeTo(await start());
    const listener = opened.add(await listen(url, FILTER, { id: 'listen:0' }));
    const note = {
      jsonrpc: '2.0',
      method: 'notifications/cancelled',
      params: { requestId: 'listen:0', _meta: { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' } },
    };
    const { host } = new URL(url);
    const body = JSON.stringify(note);
    const head = [
      'POST /mcp HTTP/1.1',
      `host: ${host}`,
      'content-type: application/json',
      'accept: application/json, text/event-stream',
      'mcp-protocol-version: 2026-07-28',
      'connection: close',
      `content-length: ${body.length}`,
    ];
    expect(await wire(url, `${head.join('\r\n')}\r\n\r\n${body}`)).toMatch(/^HTTP\/1\.1 202/);
    listener.close();
  });

  test('the end of the gateway ends it gracefully', async () => {
    const { url, gateway, recording } = await routeTo(await start());
    const listeners = await Promise.all([1, 'one'].map((id) => listen(url, FILTER, { id })));
    const closing = gateway.close();
    for (const [index, { stream }] of listeners.entries()) {
      const { json } = await stream.done;
      const id = [1, 'one'][index];
      expect(json).toEqual({
        jsonrpc: '2.0',
        id,
        result: { resultType: 'complete', _meta: { [SUBSCRIPTION_ID]: id } },
      });
    }
    await closing;
    expect(recording.violations).toEqual([]);
  });
});

test.each(['9007199254740993', '"\\u00e9\\"é"', '""'])(
  'the id %s stands on every change as the client wrote it',
  async (id) => {
    const backend = await startTellingLegacy();
    const { url } = await routeTo(backend);
    const listener = opened.add(await listen(url, FILTER, { id: new RawJson(id) }));
    backend.tell(TOOLS_CHANGED);
    await heardBy(listener, 1);
    for (const { data } of listener.stream.events) expect(data).toContain(`"${SUBSCRIPTION_ID}":${id}`);
  },
);

test('of a resource below one that was subscribed to, its listener hears as well', async () => {
  const backend = await startTellingLegacy();
  const { url } = await routeTo(backend);
  const dir = opened.add(await listen(url, { resourceSubscriptions: ['file:///dir'] }));
  const slashed = opened.add(await listen(url, { resourceSubscriptions: ['file:///dir/'] }));
  const below = opened.add(await listen(url, { resourceSubscriptions: ['file:///dir/sub'] }));
  for (const uri of ['file:///dir/sub/x', 'file:///dir', 'file:///directory', 'file:///dir/other'])
    backend.tell(UPDATED, { uri });
  expect(await heardBy(dir, 3)).toEqual(['file:///dir/sub/x', 'file:///dir', 'file:///dir/other']);
  expect(await heardBy(slashed, 2)).toEqual(['file:///dir/sub/x', 'file:///dir/other']);
  expect(await heardBy(below, 1)).toEqual(['file:///dir/sub/x']);
});

test('what a change says beside its uri reaches the listener byte for byte', async () => {
  const backend = await startTellingLegacy();
  const { url } = await routeTo(backend);
  const listener = opened.add(await listen(url, FILTER, { id: 7 }));
  const params = `{ "uri" : "${A}","n":1.0,"big":12345678901234567890,"_meta":{"k":[ 1 ]},"title":"é" }`;
  for (const stream of backend.listeners())
    stream.event(`{"jsonrpc":"2.0","method":"${UPDATED}","params":${params}}`);
  await heardBy(listener, 1);
  const text = listener.stream.events.at(-1)?.data ?? '';
  expect(text).toContain('"n":1.0,"big":12345678901234567890,');
  expect(text).toContain(`{"k":[ 1 ],"${SUBSCRIPTION_ID}":7}`);
});

test('changes that come before the acknowledgement follow it, each once', async () => {
  let agree = (_yes: boolean) => {};
  const backend = await startTellingLegacy({
    on: {
      'resources/subscribe': async ({ params }) => {
        if (params.uri !== A) return { result: {} };
        const yes = await new Promise<boolean>((resolve) => {
          agree = resolve;
        });
        return yes ? { result: {} } : { error: { code: -32602, message: 'No such resource' } };
      },
    },
  });
  const { url } = await routeTo(backend);
  for (const yes of [true, false]) {
    const asked = backend.received('resources/subscribe').length;
    const opening = listen(url, { ...FILTER, resourceSubscriptions: [A, 'file:///b'] }, { id: 's' });
    await until(() => backend.received('resources/subscribe').length === asked + 2, 'both to be asked for');
    for (const method of [TOOLS_CHANGED, PROMPTS_CHANGED, TOOLS_CHANGED]) backend.tell(method);
    for (const uri of [A, 'file:///b', 'file:///c', A]) backend.tell(UPDATED, { uri });
    await sleep(50);
    agree(yes);
    const listener = await opening;
    backend.tell(UPDATED, { uri: 'file:///b' });
    const honoured = yes ? [A, 'file:///b'] : ['file:///b'];
    expect(listener.ack.params.notifications).toEqual({
      toolsListChanged: true,
      resourceSubscriptions: honoured,
    });
    expect((await heardBy(listener, 2 + honoured.length)).sort()).toEqual(
      [TOOLS_CHANGED, ...honoured, 'file:///b'].sort(),
    );
    expect(listener.changes().map(subscriptionId)).toEqual(listener.changes().map(() => 's'));
    listener.close();
    await until(() => backend.received('resources/unsubscribe').length >= (yes ? 2 : 3), 'the undoing');
  }
});

describe('the acknowledgement names what will be told of, and no more', () => {
  const everything = { ...ALL_LISTS, resourceSubscriptions: [A] };

  test.each([
    ['nothing', {}, {}],
    ['tools alone, and no changes', { tools: {} }, {}],
    ['changes of the tools', { tools: { listChanged: true }, resources: {} }, { toolsListChanged: true }],
    [
      'changes of all lists, but no subscriptions',
      { tools: { listChanged: true }, prompts: { listChanged: true }, resources: { listChanged: true } },
      ALL_LISTS,
    ],
    ['subscriptions alone', { resources: { subscribe: true } }, { resourceSubscriptions: [A] }],
    ['flags that are none', { tools: { listChanged: 'yes' }, resources: { subscribe: 1 } }, {}],
  ])('on a legacy backend that declares %s', async (_what, capabilities, honoured) => {
    const backend = await startTellingLegacy({ capabilities });
    const { url, recording } = await routeTo(backend);
    const listener = opened.add(await listen(url, everything, { id: 1 }));
    expect(listener.ack.params.notifications).toEqual(honoured);
    const subscribes = backend.received('resources/subscribe').map(({ json }) => json.params.uri);
    expect(subscribes).toEqual('resourceSubscriptions' in honoured ? [A] : []);
    backend.tell(UPDATED, { uri: A });
    await sleep(60);
    expect(listener.heard()).toEqual('resourceSubscriptions' in honoured ? [A] : []);
    expect(recording.violations).toEqual([]);
  });

  test('on a legacy backend that refuses one resource', async () => {
    const backend = await startTellingLegacy({
      on: {
        'resources/subscribe': ({ params }) =>
          params.uri === A ? { error: { code: -32002, message: 'Resource not found' } } : { result: {} },
      },
    });
    const { url } = await routeTo(backend);
    const filter = { resourceSubscriptions: ['file:///b', A, 'file:///c'] };
    const listener = opened.add(await listen(url, filter));
    expect(listener.ack.params.notifications).toEqual({ resourceSubscriptions: ['file:///b', 'file:///c'] });
    for (const uri of [A, 'file:///c']) backend.tell(UPDATED, { uri });
    expect(await heardBy(listener, 1)).toEqual(['file:///c']);
    // Another one asks anew: by now it may be there.
    const before = backend.received('resources/subscribe').length;
    backend.on('resources/subscribe', () => ({ result: {} }));
    const later = opened.add(await listen(url, { resourceSubscriptions: [A] }));
    expect(later.ack.params.notifications).toEqual({ resourceSubscriptions: [A] });
    expect(backend.received('resources/subscribe')).toHaveLength(before + 1);
  });

  test('on a legacy backend whose GET is no stream', async () => {
    const gets: ((res: Loose) => void)[] = [
      (res) => res.writeHead(405, { allow: 'POST' }).end(),
      (res) => res.writeHead(404).end('Cannot GET /mcp'),
      (res) => res.writeHead(400).end('Bad Request'),
      (res) => res.writeHead(403).end('Forbidden'),
      (res) => res.writeHead(200, { 'content-type': 'text/html' }).end('<p>MCP server</p>'),
      (res) => res.writeHead(200, { 'content-type': 'application/json' }).end('{"ok":true}'),
    ];
    const found = await Promise.all(
      gets.map(async (get) => {
        const backend = await startTellingLegacy({ on: { GET: ({ res }) => get(res) as undefined } });
        const { url } = await routeTo(backend);
        const listener = opened.add(await listen(url, everything));
        expect(backend.received('resources/subscribe')).toEqual([]);
        await sleep(700);
        return [
          listener.ack.params.notifications,
          backend.requests.filter(({ method }) => method === 'GET').length,
        ];
      }),
    );
    expect(found).toEqual(gets.map(() => [{}, 1]));
  });

  test('where nothing can be told of, the subscription ends at once', async () => {
    const { url } = await routeTo(await startTellingLegacy({ capabilities: { resources: {} } }));
    for (const filter of [{}, { toolsListChanged: false }, { resourceSubscriptions: [A] }]) {
      const { stream, ack } = await listen(url, filter, { id: 'n' });
      expect(ack.params.notifications).toEqual({});
      expect((await stream.done).json).toMatchObject({ id: 'n', result: { resultType: 'complete' } });
    }
  });

  test('a list that a server tells of without having said so reaches every client that asked for it', async () => {
    const backend = await startTellingLegacy({ capabilities: { tools: {} } });
    const { url } = await routeTo(backend);
    const listener = opened.add(await listen(url, { toolsListChanged: true }));
    const other = opened.add(await listen(url, { promptsListChanged: true }));
    backend.tell(TOOLS_CHANGED);
    expect(await heardBy(listener, 1)).toEqual([TOOLS_CHANGED]);
    expect(other.heard()).toEqual([]);
  });
});
