import { expect, test } from 'vitest';
import { until } from '../support/net.js';
import { legacy, type ModernOptions, modern, openModern, RawJson } from '../support/raw.js';
import { isAlive, startRig, textOf } from './rig.js';

const backend = { era: 'modern' };
const server = { era: 'modern' };
const call = (url: string, name: string, args = {}, options: ModernOptions & { meta?: object } = {}) =>
  modern(url, 'tools/call', { name, arguments: args }, options);
const LOG_LEVEL = 'io.modelcontextprotocol/logLevel';
const SUBSCRIPTION = 'io.modelcontextprotocol/subscriptionId';

test('all callers share one process, and their equal ids do not collide', async () => {
  const { url, started, received } = await startRig({ backend, server });
  const answers = await Promise.all(
    Array.from({ length: 8 }, (_, i) =>
      call(url, 'slow', { ms: 100 - 10 * i }, { id: 0, headers: { authorization: `Bearer ${i % 2}` } }),
    ),
  );
  for (const { status, json } of answers) {
    expect(status).toBe(200);
    expect(json.id).toBe(0);
  }
  expect(started()).toHaveLength(1);
  const ids = received('tools/call').map(({ id }) => id);
  expect(new Set(ids).size).toBe(8);
  // Credentials are not passed to the process.
  expect(JSON.stringify(received())).not.toContain('Bearer');
});

test('ids come back as their callers wrote them', async () => {
  const { url } = await startRig({ backend, server });
  for (const id of ['7', '"a\\u0041"', '9007199254740993', '-1']) {
    const { answer } = await call(url, 'echo', {}, { id: new RawJson(id) });
    expect(answer).toContain(`"id":${id}`);
  }
});

test('progress goes to the request that asked for it, under its own token', async () => {
  const { url } = await startRig({ backend, server });
  const answers = await Promise.all(
    ['same', 'same', 7].map((progressToken) =>
      call(url, 'slow', { ms: 60, steps: 3 }, { meta: { progressToken } }),
    ),
  );
  for (const [i, { messages }] of answers.entries()) {
    expect(messages.map(({ params }) => params.progress)).toEqual([1, 2, 3]);
    expect(messages.every(({ params }) => params.progressToken === (i < 2 ? 'same' : 7))).toBe(true);
  }
});

test('numbers in results keep their digits under another id', async () => {
  const { url } = await startRig({ backend, server });
  expect((await call(url, 'numbers')).answer).toContain('{"n":12345678901234567890, "f":1.0,"e":1E400}');
});

test('log messages go to the only call that asks for them, and are dropped where several do', async () => {
  const { url } = await startRig({ backend, server });
  const wanting = { meta: { [LOG_LEVEL]: 'debug' } };
  const [silent, told] = await Promise.all([
    call(url, 'slow', { ms: 200 }),
    call(url, 'log', { data: 'secret' }, wanting),
  ]);
  expect(silent.messages).toEqual([]);
  expect(told.messages.map(({ params }) => params.data)).toEqual(['secret']);
  const both = await Promise.all([
    call(url, 'slow', { ms: 300 }, wanting),
    call(url, 'log', { data: 'secret' }, wanting),
  ]);
  expect(both.flatMap(({ messages }) => messages)).toEqual([]);
});

test('a disconnected caller has its request cancelled, under the id that the server knows', async () => {
  const { url, received } = await startRig({ backend, server });
  const stream = await openModern(
    url,
    'tools/call',
    { name: 'slow', arguments: { ms: 10_000, steps: 100 } },
    { meta: { progressToken: 1 } },
  );
  await stream.next();
  stream.abort();
  await until(() => received('notifications/cancelled').length === 1, 'the cancellation');
  const [request] = received('tools/call');
  const [{ params }] = received('notifications/cancelled') as [{ params: Record<string, never> }];
  expect(params['requestId']).toBe(request.id);
  expect(params['_meta']).toMatchObject({ 'io.modelcontextprotocol/protocolVersion': '2026-07-28' });
  expect(params['_meta']).not.toHaveProperty('progressToken');
});

test('each listener gets changes under the id of its own subscription', async () => {
  const { url, received } = await startRig({ backend, server });
  const filter = { notifications: { toolsListChanged: true } };
  const streams = [];
  for (const authorization of ['Bearer a', 'Bearer b'])
    streams.push(
      await openModern(url, 'subscriptions/listen', filter, { id: 'listen:0', headers: { authorization } }),
    );
  for (const stream of streams) {
    const { json } = await stream.next();
    expect(json.method).toBe('notifications/subscriptions/acknowledged');
    expect(json.params._meta[SUBSCRIPTION]).toBe('listen:0');
  }
  await call(url, 'change');
  for (const stream of streams) {
    const { json } = await stream.next();
    expect(json.method).toBe('notifications/tools/list_changed');
    expect(json.params._meta[SUBSCRIPTION]).toBe('listen:0');
  }
  const [first, second] = streams;
  first?.abort();
  await until(() => received('notifications/cancelled').length === 1, 'the end of the subscription');
  await call(url, 'change');
  expect((await second?.next())?.json.method).toBe('notifications/tools/list_changed');
  await call(url, 'endListening');
  await second?.done;
});

test('changes without a subscription id go to every listener that asked for them', async () => {
  const { url } = await startRig({ backend, server });
  const listen = (authorization: string, notifications: object) =>
    openModern(
      url,
      'subscriptions/listen',
      { notifications },
      { id: authorization, headers: { authorization } },
    );
  const tools = await listen('Bearer a', { toolsListChanged: true });
  const both = await listen('Bearer b', { toolsListChanged: true, resourceSubscriptions: ['a:b'] });
  for (const stream of [tools, both]) await stream.next();
  await call(url, 'untagged', { method: 'notifications/resources/updated', params: { uri: 'a:b/c' } });
  await call(url, 'untagged', { method: 'notifications/tools/list_changed', params: null });
  await call(url, 'untagged', { method: 'notifications/prompts/list_changed' });
  const updated = (await both.next()).json;
  expect(updated).toMatchObject({ method: 'notifications/resources/updated', params: { uri: 'a:b/c' } });
  expect(updated.params._meta[SUBSCRIPTION]).toBe('Bearer b');
  for (const stream of [tools, both])
    expect((await stream.next()).json.method).toBe('notifications/tools/list_changed');
});

test('a legacy client gets results and changes from a modern server', async () => {
  const { url } = await startRig({ backend, server });
  const session = await legacy(url);
  const stream = await session.listen();
  expect(textOf((await session.request('tools/call', { name: 'echo', arguments: { a: 1 } })).json)).toContain(
    '"a":1',
  );
  await until(async () => {
    await session.request('tools/call', { name: 'change', arguments: {} });
    return stream.events.some(({ json }) => json?.method === 'notifications/tools/list_changed');
  }, 'the change');
});

test('calls fail with their process, and the next one starts another', async () => {
  const { url, running } = await startRig({ backend, server });
  const hanging = call(url, 'hang', {}, { id: 'h' });
  const [dead] = await Promise.all([call(url, 'kill', {}, { id: 'k' }), hanging]);
  expect(dead).toMatchObject({ status: 502, json: { id: 'k' } });
  expect((await hanging).json).toMatchObject({
    id: 'h',
    error: { message: expect.stringContaining('The connection to the server behind route /mcp broke') },
  });
  expect((await call(url, 'echo')).status).toBe(200);
  expect(running()).toHaveLength(1);
});

test('an idle process is ended, and started again on demand', async () => {
  const { url, running } = await startRig({ backend, server, route: { sessions: { idle: '200ms' } } });
  expect((await call(url, 'echo')).status).toBe(200);
  const [pid] = running();
  await until(() => !isAlive(pid ?? 0), 'the process to end');
  expect((await call(url, 'echo')).status).toBe(200);
});

test('a slow reader does not delay others', async () => {
  const { url } = await startRig({ backend, server });
  const flood = await openModern(
    url,
    'tools/call',
    { name: 'slow', arguments: { ms: 60_000, steps: 60_000 } },
    { meta: { progressToken: 'p'.repeat(10_000) } },
  );
  expect((await call(url, 'echo')).status).toBe(200);
  flood.abort();
});
