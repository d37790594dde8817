import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Rig, raw, startCell } from '../../support/cells.js';

const CACHEABLE: [string, object][] = [
  ['tools/list', {}],
  ['prompts/list', {}],
  ['resources/list', {}],
  ['resources/templates/list', {}],
  ['resources/read', { uri: 'file:///a' }],
];
const TASKS = { extensions: { 'io.modelcontextprotocol/tasks': {} } };

describe.each([
  ['JSON', false],
  ['an event stream', true],
])('a result between modern parties as %s', (_as, sse) => {
  let rig: Rig;
  beforeAll(async () => {
    rig = await startCell('MM', { script: { sse } });
  });
  afterAll(() => rig.close());

  const give = (method: string, text: string) => rig.on(method, () => ({ result: raw(text) }));
  // Results that may be kept are served again to equal requests.
  let requests = 0;
  const another = (params: object) => ({ ...params, 'x-request': requests++ });

  test.each([
    '{"resultType":"complete","content":[],"x-vendor":{"1":1.0},"_meta":{"com.example/k":1e2}}',
    '{"content":[ ],"resultType":"complete","isError":true}',
    '{"resultType":"input_required","requestState":"é\\u00e9","inputRequests":{"a":{"method":"roots/list","params":{}}}}',
    '{ "resultType" : "complete" , "content" : [ ] , "content":[{"type":"new"}] }',
  ])('of a call comes out byte for byte: %s', async (text) => {
    give('tools/call', text);
    const { answer, headers } = await rig.call('tools/call', { name: 'echo' }, { id: 'i' });
    expect(answer).toBe(`{"jsonrpc":"2.0","id":"i","result":${text}}`);
    expect(headers['mcp-session-id']).toBeUndefined();
  });

  test('that may be kept goes out as it came, and from then on with what is left of its time', async () => {
    const text =
      '{"ttlMs":60000,"tools":[{"name":"t","inputSchema":{"type":"object"},"x":1.0}],"cacheScope":"public","resultType":"complete"}';
    give('tools/list', text);
    const params = another({});
    const first = await rig.call('tools/list', params, { id: 'a' });
    expect(first.answer).toBe(`{"jsonrpc":"2.0","id":"a","result":${text}}`);
    const second = await rig.call('tools/list', params, { id: 'b' });
    expect(second.json).toEqual({
      jsonrpc: '2.0',
      id: 'b',
      result: { ...JSON.parse(text), ttlMs: expect.any(Number) },
    });
    expect(second.json.result.ttlMs).toBeLessThanOrEqual(60_000);
    expect(second.json.result.ttlMs).toBeGreaterThan(30_000);
    expect(second.answer).toContain('"x":1.0');
  });

  test('without resultType is complete, and the log says so once', async () => {
    const list = '"tools":[],"ttlMs":5,"cacheScope":"public"';
    for (let n = 0; n < 3; n++) {
      give('tools/call', '{"content":[]}');
      const called = (await rig.call('tools/call', { name: 'echo' })).json.result;
      expect(called).toEqual({ content: [], resultType: 'complete' });
      give('tools/list', `{${list}}`);
      const listed = (await rig.call('tools/list', another({}))).json.result;
      expect(listed).toEqual({ ...JSON.parse(`{${list}}`), resultType: 'complete' });
    }
    expect(rig.gateway.logs.filter(({ deviation }) => /resultType/.test(deviation))).toHaveLength(1);
  });

  test.each(['"weird"', '"COMPLETE"', '"task"', '""', '7', 'null', '["complete"]'])(
    'of the type %s is an error, and no fake of a result',
    async (type) => {
      for (const [method, params] of [
        ['tools/call', { name: 'echo' }],
        ['tools/list', {}],
      ] as const) {
        give(method, `{"resultType":${type},"content":[],"tools":[],"ttlMs":0,"cacheScope":"private"}`);
        const { json } = await rig.call(method, another(params), { id: 3 });
        const error = { code: -32603, message: expect.stringContaining('resultType') };
        expect(json).toEqual({ jsonrpc: '2.0', id: 3, error });
      }
    },
  );

  test('of the type "task" goes to a client that declared tasks', async () => {
    const text = '{"resultType":"task","taskId":"t1","status":"working","ttlMs":null,"createdAt":"x"}';
    give('tools/call', text);
    const { answer } = await rig.call('tools/call', { name: 'echo' }, { id: 3, capabilities: TASKS });
    expect(answer).toBe(`{"jsonrpc":"2.0","id":3,"result":${text}}`);
  });

  describe.each(CACHEABLE)('%s %j', (method, params) => {
    test.each([
      ['"ttlMs":0,"cacheScope":"private"', 0, 'private'],
      ['"ttlMs":86400000,"cacheScope":"public"', 86_400_000, 'public'],
      ['"ttlMs":9007199254740991,"cacheScope":"public"', Number.MAX_SAFE_INTEGER, 'public'],
      ['"ttlMs":99999999999999999999,"cacheScope":"public"', Number.MAX_SAFE_INTEGER, 'public'],
      ['"ttlMs":-1,"cacheScope":"public"', 0, 'public'],
      ['"ttlMs":1.5,"cacheScope":"private"', 0, 'private'],
      ['"ttlMs":"60000","cacheScope":"private"', 0, 'private'],
      ['"ttlMs":null,"cacheScope":null', 0, 'private'],
      ['"ttlMs":true,"cacheScope":"everyone"', 0, 'private'],
      ['"cacheScope":["public"]', 0, 'private'],
      ['"ttlMs":7', 7, 'private'],
      ['"x":1', 0, 'private'],
    ])('with %s may be kept for %i ms, %s', async (members, ttlMs, cacheScope) => {
      give(method, `{"resultType":"complete",${members},"tools":[]}`);
      const { result } = (await rig.call(method, another(params))).json;
      expect(result).toMatchObject({ ttlMs, cacheScope, tools: [] });
    });
  });

  test('that nobody may keep gets no cache hints', async () => {
    for (const [method, params] of [
      ['tools/call', { name: 'echo' }],
      ['prompts/get', { name: 'p' }],
      ['completion/complete', {}],
    ] as const) {
      give(method, '{"resultType":"complete"}');
      expect((await rig.call(method, params)).json.result).toEqual({ resultType: 'complete' });
    }
    const asking = '{"resultType":"input_required","requestState":"s"}';
    give('resources/read', asking);
    expect((await rig.call('resources/read', { uri: 'a:b' })).json.result).toEqual(JSON.parse(asking));
  });
});
