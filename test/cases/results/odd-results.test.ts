import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CELLS, type Rig, startCell } from '../../support/cells.js';

const CALLS: [string, object][] = [
  ['tools/call', { name: 'echo' }],
  ['tools/list', {}],
  ['resources/read', { uri: 'a:b' }],
  ['acme/search', {}],
];

describe.each(CELLS)('%s', (cell) => {
  let rig: Rig;
  beforeAll(async () => {
    rig = await startCell(cell);
  });
  afterAll(() => rig.close());

  const give = (method: string, result: string) =>
    rig.on(
      method,
      ({ json, sendJson }) =>
        void sendJson(`{"jsonrpc":"2.0","id":${JSON.stringify(json.id)},"result":${result}}`) as undefined,
    );

  describe.each(CALLS)('%s %j', (method, params) => {
    test.each(['[]', '[{}]', '"x"', '7', 'true', 'false', '-0.5'])(
      'a result that is %s is an error of the backend',
      async (result) => {
        give(method, result);
        const { json, text } = await rig.call(method, params, { id: 4 });
        expect(() => JSON.parse(text)).not.toThrow();
        expect(json).toEqual({
          jsonrpc: '2.0',
          id: 4,
          error: { code: -32603, message: expect.stringContaining('result') },
        });
      },
    );

    test('a result that is null is an empty one', async () => {
      give(method, 'null');
      const { json } = await rig.call(method, params, { id: 4 });
      expect(json.error).toBeUndefined();
      expect(json.result).toEqual(expect.any(Object));
    });
  });

  test('members that come twice are changed once, and the last one counts', async () => {
    give(
      'tools/call',
      '{"resultType":"complete","resultType":"complete","content":[1],"content":[],"_meta":{"a":1},"_meta":{"b":2.0}}',
    );
    const { text, json } = await rig.call(
      'tools/call',
      { name: 'echo' },
      { headers: { accept: 'application/json' } },
    );
    expect(json.result.content).toEqual([]);
    expect(json.result._meta.b).toBe(2);
    expect(json.result.resultType).toBe(
      rig.modernClient ? 'complete' : cell === 'LL' ? 'complete' : undefined,
    );
    expect(text).toContain('"b":2.0');
  });

  test('a result of nothing but white space between its braces can be dressed', async () => {
    give('acme/search', '{ \n }');
    const { json } = await rig.call('acme/search', {}, { id: 4 });
    expect(json.result).toEqual(rig.modernClient ? expect.objectContaining({ resultType: 'complete' }) : {});
  });
});
