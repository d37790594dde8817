import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CELLS, type Rig, startCell } from '../../support/cells.js';
import { connectV1, connectV2 } from '../../support/clients.js';

const SCHEMA = '"inputSchema":{"type":"object"}';
const NULLS = ['annotations', 'description', 'title', 'icons', '_meta', 'outputSchema', 'execution'];
const WRONG = [
  '"annotations":"x"',
  '"description":5',
  '"title":{}',
  '"icons":{}',
  '"_meta":[]',
  '"annotations":[]',
];

describe.each(CELLS)('%s', (cell) => {
  let rig: Rig;
  beforeAll(async () => {
    rig = await startCell(cell);
  });
  afterAll(() => rig.close());

  const give = (method: string, result: string) =>
    rig.on(method, ({ json, sendJson }) => {
      const stamp = rig.modernBackend ? '"resultType":"complete","ttlMs":0,"cacheScope":"private",' : '';
      sendJson(`{"jsonrpc":"2.0","id":${JSON.stringify(json.id)},"result":{${stamp}${result}}}`);
      return undefined;
    });

  test.each([...NULLS.map((key) => `"${key}":null`), ...WRONG])(
    'a tool with %s is listed without it, and the others byte for byte',
    async (member) => {
      const good = `{"name":"good", ${SCHEMA},"x":1.0}`;
      give('tools/list', `"tools":[${good},{"name":"odd",${member},${SCHEMA}}]`);
      const { answer } = await rig.call('tools/list');
      expect(answer).toContain(`[${good},{"name":"odd",${SCHEMA}}]`);
    },
  );

  test.each(['null', '7', '"x"', '{}', '[]', `{"name":null,${SCHEMA}}`, `{"name":"n","inputSchema":null}`])(
    'a tool that is %s costs no other',
    async (odd) => {
      give('tools/list', `"tools":[${odd},{"name":"good",${SCHEMA}}]`);
      const { json } = await rig.call('tools/list');
      const names = json.result.tools.map(({ name }: { name: string }) => name);
      expect(names).toContain('good');
      expect(names).not.toContain(null);
    },
  );

  test.each([
    ['tools/list', 'tools'],
    ['prompts/list', 'prompts'],
    ['resources/list', 'resources'],
    ['resources/templates/list', 'resourceTemplates'],
  ])('a list of %s that is null is empty, and a null cursor the end', async (method, key) => {
    give(method, `"${key}":null,"nextCursor":null`);
    const { json } = await rig.call(method);
    expect(json.result[key]).toEqual([]);
    expect(json.result).not.toHaveProperty('nextCursor');
  });

  test.each([
    ['prompts/list', 'prompts', '{"name":"p","description":null,"arguments":null}', { name: 'p' }],
    [
      'prompts/list',
      'prompts',
      '{"name":"p","arguments":[{"name":"a","required":null},null]}',
      { name: 'p', arguments: [{ name: 'a' }] },
    ],
    [
      'resources/list',
      'resources',
      '{"uri":"a:b","name":"r","mimeType":null,"size":null}',
      { uri: 'a:b', name: 'r' },
    ],
    [
      'resources/list',
      'resources',
      '{"uri":"a:b","name":"r","annotations":{"priority":null}}',
      { uri: 'a:b', name: 'r', annotations: {} },
    ],
    [
      'resources/templates/list',
      'resourceTemplates',
      '{"uriTemplate":"a:{b}","name":"t","title":null}',
      { uriTemplate: 'a:{b}', name: 't' },
    ],
  ])('of %s, %s: %s is listed as far as it is valid', async (method, key, item, expected) => {
    give(method, `"${key}":[${item}]`);
    const { json } = await rig.call(method);
    expect(json.result[key]).toEqual([expected]);
  });

  test('content that is null, or has null in it, costs no result', async () => {
    give(
      'tools/call',
      '"content":[{"type":"text","text":"t","annotations":null,"_meta":null},null],"isError":null',
    );
    const { json } = await rig.call('tools/call', { name: 'echo' });
    expect(json.result.content).toEqual([{ type: 'text', text: 't' }]);
    give('tools/call', '"content":null');
    expect((await rig.call('tools/call', { name: 'echo' })).json.result.content).toEqual([]);
  });

  test('the word null in a text is no null', async () => {
    const content = '[{"type":"text","text":"null, \\"annotations\\":null"}]';
    give('tools/call', `"content":${content}`);
    expect((await rig.call('tools/call', { name: 'echo' })).answer).toContain(content);
  });

  test('a real client lists what is valid', async () => {
    give(
      'tools/list',
      `"tools":[null,{"name":"odd","annotations":null,"title":null,"icons":null,"_meta":null,${SCHEMA}}]`,
    );
    const client = await (rig.modernClient ? connectV2 : connectV1)(rig.gateway.url());
    try {
      expect((await client.listTools()).map(({ name }) => name)).toEqual(['odd']);
    } finally {
      await client.close();
    }
  });
});
