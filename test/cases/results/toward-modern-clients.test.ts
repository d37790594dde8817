import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Rig, startCell } from '../../support/cells.js';
import { problemsOf } from '../../support/schema.js';

const SERVER = { name: 'scripted-legacy', version: '1.0.0' };
const SERVER_INFO = 'io.modelcontextprotocol/serverInfo';
const REVISION = '2026-07-28';

/** Requests, the results of a legacy backend (without any member of the modern era), and whether they may be kept. */
const ROWS: [method: string, params: object, result: string, cacheable: boolean][] = [
  ['tools/list', {}, '{"tools":[{"name":"t","inputSchema":{"type":"object"}}],"nextCursor":"c"}', true],
  ['tools/list', {}, '{"tools":[]}', true],
  ['tools/call', { name: 't' }, '{"content":[{"type":"text","text":"x"}]}', false],
  ['tools/call', { name: 't' }, '{"content":[{"type":"text","text":"x"}],"isError":true}', false],
  ['tools/call', { name: 't' }, '{"content":[],"structuredContent":{"a":1},"isError":false}', false],
  ['prompts/list', {}, '{"prompts":[{"name":"p"}]}', true],
  ['prompts/get', { name: 'p' }, '{"messages":[]}', false],
  ['resources/list', {}, '{"resources":[]}', true],
  ['resources/templates/list', {}, '{"resourceTemplates":[]}', true],
  ['resources/read', { uri: 'file:///a' }, '{"contents":[{"uri":"file:///a","text":"x"}]}', true],
  [
    'completion/complete',
    { ref: { type: 'ref/prompt', name: 'p' }, argument: { name: 'a', value: '' } },
    '{"completion":{"values":[]}}',
    false,
  ],
  ['acme/search', { q: 1 }, '{}', false],
  ['acme/search', { q: 1 }, '{"hits":[]}', false],
];

describe.each([
  ['JSON', false],
  ['an event stream', true],
])('a result of a legacy backend as %s', (_as, sse) => {
  let rig: Rig;
  beforeAll(async () => {
    rig = await startCell('ML', {
      script: { sse, capabilities: { tools: {}, prompts: {}, resources: {}, completions: {} } },
    });
  });
  afterAll(() => rig.close());

  test.each(ROWS)(
    'of %s %j is complete, and cacheable by its method: %s',
    async (method, params, text, cacheable) => {
      rig.answer(method, text);
      const { json, status, headers } = await rig.call(method, params);
      expect(status).toBe(200);
      expect(headers['mcp-session-id']).toBeUndefined();
      const { resultType, ttlMs, cacheScope, _meta, ...rest } = json.result;
      expect(resultType).toBe('complete');
      expect({ ttlMs, cacheScope }).toEqual(
        cacheable ? { ttlMs: 0, cacheScope: 'private' } : { ttlMs: undefined, cacheScope: undefined },
      );
      expect(_meta).toEqual({ [SERVER_INFO]: SERVER });
      expect(rest).toEqual(JSON.parse(text));
      const frame = { message: json, direction: 's2c', revision: REVISION, requestMethod: method } as const;
      expect(problemsOf(frame)).toEqual([]);
    },
  );

  test.each([
    '"resultType":"weird"',
    '"resultType":7',
    '"resultType":"input_required"',
    '"ttlMs":-1,"cacheScope":"everyone"',
    '"ttlMs":"60000","resultType":null',
    '"cacheScope":"public","ttlMs":60000',
  ])('has its own members of these names replaced: %s', async (members) => {
    rig.answer('tools/list', `{${members},"tools":[]}`);
    expect((await rig.call('tools/list')).json.result).toEqual({
      resultType: 'complete',
      ttlMs: 0,
      cacheScope: 'private',
      tools: [],
      _meta: { [SERVER_INFO]: SERVER },
    });
  });

  test('keeps its own _meta, and gets the server that it came from', async () => {
    rig.answer('tools/call', `{"content":[],"_meta":{"a":1.0,"${SERVER_INFO}":{"name":"forged"},"b":[ ]}}`);
    const { json, answer } = await rig.call('tools/call', { name: 't' });
    expect(json.result._meta).toEqual({ a: 1, b: [], [SERVER_INFO]: SERVER });
    expect(answer).toContain('"a":1.0');
    rig.answer('tools/call', '{"content":[],"_meta":null}');
    expect((await rig.call('tools/call', { name: 't' })).json.result._meta).toEqual({
      [SERVER_INFO]: SERVER,
    });
  });

  test.each(['{}', '{"content":null}', '{"structuredContent":{"a":1}}', '{"isError":true}'])(
    'of a call has content, although the backend wrote %s',
    async (text) => {
      rig.answer('tools/call', text);
      const { result } = (await rig.call('tools/call', { name: 't' })).json;
      expect(result).toMatchObject({ ...JSON.parse(text), content: [], resultType: 'complete' });
    },
  );

  test('lists tools without what only the legacy era has', async () => {
    const schema = (extra: string) =>
      `{"type":"object","properties":{"execution":{"type":"string"},"x-mcp-header":{"type":"string"},"a":{"type":"string"${extra}}}}`;
    rig.answer(
      'tools/list',
      `{"tools":[{"name":"a","execution":{"taskSupport":"forbidden"},"inputSchema":${schema('')}},{"name":"b","inputSchema":${schema(',"x-mcp-header":"not a token"')}},7,{"name":"execution"}]}`,
    );
    const { answer, json } = await rig.call('tools/list');
    expect(json.result.tools).toEqual([
      { name: 'a', inputSchema: JSON.parse(schema('')) },
      { name: 'b', inputSchema: JSON.parse(schema('')) },
      { name: 'execution' },
    ]);
    expect(answer).toContain(`"inputSchema":${schema('')}}`);
  });

  test('that ends a subscription is complete, and names the subscription', async () => {
    const { messages, json, status } = await rig.call(
      'subscriptions/listen',
      { notifications: { resourceSubscriptions: ['a:b'] } },
      { id: 's1' },
    );
    const subscription = { 'io.modelcontextprotocol/subscriptionId': 's1' };
    expect(status).toBe(200);
    // The server takes no subscriptions, so nothing is honoured, and there is nothing to wait for.
    expect(messages).toEqual([
      {
        jsonrpc: '2.0',
        method: 'notifications/subscriptions/acknowledged',
        params: { _meta: subscription, notifications: {} },
      },
    ]);
    expect(json).toMatchObject({ id: 's1', result: { resultType: 'complete', _meta: subscription } });
    expect(json.result).not.toHaveProperty('ttlMs');
  });

  test('shows no session and no event ids, whatever the client sends along', async () => {
    for (const headers of [{}, { 'mcp-session-id': 'stale' }, { 'last-event-id': '7' }]) {
      const answer = await rig.call('tools/list', {}, { headers });
      expect(answer.status).toBe(200);
      expect(answer.headers['mcp-session-id']).toBeUndefined();
      expect(answer.text).not.toMatch(/^(id|retry):/m);
    }
  });
});

test('server/discover is complete and tells of the backend in the words of the modern era', async () => {
  const serverInfo = { name: 's', version: '1', title: 'T', icons: [] };
  const instructions = 'Read "me" \u2028 first.';
  const rig = await startCell('ML', {
    script: {
      capabilities: {
        tools: {},
        prompts: { listChanged: false },
        tasks: { list: {} },
        experimental: { x: { y: 1 } },
      },
      instructions,
      serverInfo,
    },
  });
  try {
    const { json, status, headers } = await rig.call('server/discover', {}, { id: 'discover-1' });
    expect(status).toBe(200);
    expect(headers['mcp-session-id']).toBeUndefined();
    expect(json).toEqual({
      jsonrpc: '2.0',
      id: 'discover-1',
      result: {
        resultType: 'complete',
        supportedVersions: [REVISION],
        capabilities: { tools: {}, prompts: expect.any(Object), experimental: { x: { y: 1 } } },
        instructions,
        ttlMs: expect.any(Number),
        cacheScope: 'private',
        _meta: { [SERVER_INFO]: serverInfo },
      },
    });
    const requestMethod = 'server/discover';
    expect(problemsOf({ message: json, direction: 's2c', revision: REVISION, requestMethod })).toEqual([]);
  } finally {
    await rig.close();
  }
});
