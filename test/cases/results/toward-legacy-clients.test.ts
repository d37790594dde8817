import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Rig, raw, startCell } from '../../support/cells.js';
import { problemsOf } from '../../support/schema.js';

const MODERN_META = '"io.modelcontextprotocol/serverInfo":{"name":"m","version":"1"}';
/** What a modern backend writes around a result; a legacy client must see none of it. */
const DRESSES = [
  ['"resultType":"complete"', ''],
  ['"resultType":"complete","ttlMs":60000,"cacheScope":"public"', `,"_meta":{${MODERN_META}}`],
  ['"ttlMs":0', `,"cacheScope":"private","resultType":"complete","_meta":{"a":1.0,${MODERN_META}}`],
] as const;

const ROWS: [method: string, params: object, members: string][] = [
  ['tools/list', {}, '"tools":[{"name":"t","inputSchema":{"type":"object"}}]'],
  ['tools/call', { name: 'echo' }, '"content":[{"type":"text","text":"x"}]'],
  ['tools/call', { name: 'echo' }, '"content":[],"isError":true'],
  ['prompts/list', {}, '"prompts":[]'],
  ['prompts/get', { name: 'p' }, '"messages":[]'],
  ['resources/list', {}, '"resources":[]'],
  ['resources/templates/list', {}, '"resourceTemplates":[]'],
  ['resources/read', { uri: 'file:///a' }, '"contents":[{"uri":"file:///a","text":"x"}]'],
  [
    'completion/complete',
    { ref: { type: 'ref/prompt', name: 'p' }, argument: { name: 'a', value: '' } },
    '"completion":{"values":[]}',
  ],
];

describe.each([
  ['JSON', false],
  ['an event stream', true],
])('a result of a modern backend as %s', (_as, sse) => {
  let rig: Rig;
  beforeAll(async () => {
    rig = await startCell('LM', { script: { sse, capabilities: { tools: {}, logging: {} } } });
  });
  afterAll(() => rig.close());

  test.each(ROWS)('of %s %j shows nothing of the modern era: %s', async (method, params, members) => {
    for (const [index, [before, after]] of DRESSES.entries()) {
      rig.on(method, () => ({ result: raw(`{${before},${members}${after}}`) }));
      // Results that may be kept are served again to equal requests.
      const { json } = await rig.call(method, { ...params, 'x-request': index });
      const { _meta, ...rest } = json.result;
      expect(rest).toEqual(JSON.parse(`{${members}}`));
      expect(_meta).toEqual(after.includes('"a"') ? { a: 1 } : undefined);
      const frame = { message: json, revision: '2025-11-25', requestMethod: method };
      expect(problemsOf({ ...frame, direction: 's2c' })).toEqual([]);
    }
  });

  test('that is empty stays empty: clients of this era refuse one that is not', async () => {
    const session = await rig.session();
    expect((await session.request('ping')).json.result).toEqual({});
    expect((await session.request('logging/setLevel', { level: 'warning' })).json.result).toEqual({});
    rig.on('acme/empty', () => ({ result: raw(`{"resultType":"complete","_meta":{${MODERN_META}}}`) }));
    expect((await session.request('acme/empty', {})).json.result).toEqual({});
  });

  test('keeps members that no table names', async () => {
    rig.on('tools/call', () => ({ result: raw('{"resultType":"complete","content":[],"x-vendor":1.0}') }));
    const { answer, json } = await rig.call('tools/call', { name: 'echo' });
    expect(json.result).toEqual({ content: [], 'x-vendor': 1 });
    expect(answer).toContain('"x-vendor":1.0');
  });

  test.each(['"weird"', '"task"', '7', 'null', '{}'])(
    'of the type %s is an error, and no fake of a result',
    async (type) => {
      rig.on('tools/call', () => ({ result: raw(`{"resultType":${type},"content":[]}`) }));
      const { json, status } = await rig.call('tools/call', { name: 'echo' }, { id: 3 });
      expect(status).toBe(200);
      const data = { eragate: 'ERAGATE_RESULT_TYPE' };
      const error = { code: -32603, message: expect.stringContaining('resultType'), data };
      expect(json).toEqual({ jsonrpc: '2.0', id: 3, error });
    },
  );
});
