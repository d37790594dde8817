import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Rig, startCell } from '../../support/cells.js';
import { connectV1 } from '../../support/clients.js';

const input = '"inputSchema":{"type":"object"}';
const GOOD = [
  `{"name":"plain",${input}, "x":1.0}`,
  `{"outputSchema":{"type":"object","x":1E2},"name":"object",${input}}`,
];

describe('a legacy server that describes output as no object, for a legacy client', () => {
  let rig: Rig;
  beforeAll(async () => {
    rig = await startCell('LL');
  });
  afterAll(() => rig.close());

  const [first, last] = GOOD;

  test.each(['{"type":"array"}', '{"anyOf":[{"type":"object"}]}', '{}', 'true', 'null', '"x"', '[]'])(
    'loses that description alone: %s',
    async (schema) => {
      rig.answer(
        'tools/list',
        `{"tools":[${first},{"name":"odd","outputSchema":${schema},${input}},${last}]}`,
      );
      const { answer } = await rig.call('tools/list');
      expect(answer).toContain(`"tools":[${first},{"name":"odd",${input}},${last}]`);
    },
  );

  test('does not cost a real client the other tools, nor the results of that one', async () => {
    rig.answer(
      'tools/list',
      `{"tools":[${first},{"name":"odd",${input},"outputSchema":{"type":"array"}},${last}],"nextCursor":null}`,
    );
    const client = await connectV1(rig.gateway.url());
    try {
      const tools = await client.listTools();
      expect(tools.map(({ name }) => name)).toEqual(['plain', 'odd', 'object']);
      rig.answer('tools/call', '{"content":[{"type":"text","text":"[1]"}],"structuredContent":[1]}');
      expect((await client.callTool('odd')).structuredContent).toEqual({ result: [1] });
    } finally {
      await client.close();
    }
  });

  test.each(['[1,2.0]', '"a"', '7.0', 'false'])(
    'gives a value that is no object as one: %s',
    async (value) => {
      rig.answer('tools/call', `{"content":[],"structuredContent":${value},"x":1.0}`);
      const { answer } = await rig.call('tools/call', { name: 'odd' });
      expect(answer).toContain(`{"content":[],"structuredContent":{"result":${value}},"x":1.0}`);
    },
  );

  test('gives none where it says null', async () => {
    rig.answer('tools/call', '{"content":[],"structuredContent":null,"x":1.0}');
    expect((await rig.call('tools/call', { name: 'odd' })).answer).toContain('{"content":[],"x":1.0}');
  });

  test('passes everything else as it is', async () => {
    const tools = `{ "tools" : [ ${GOOD.join(' , ')} ] , "nextCursor":"1" }`;
    rig.answer('tools/list', tools);
    expect((await rig.call('tools/list')).answer).toContain(tools);
    const result = '{ "content":[ ] , "structuredContent": { "a" : 1.0 } }';
    rig.answer('tools/call', result);
    expect((await rig.call('tools/call', { name: 'object' })).answer).toContain(result);
  });
});
