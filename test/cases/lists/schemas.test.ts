import { describe, expect, test } from 'vitest';
import { CELLS, startCell } from '../../support/cells.js';
import { connectV1, connectV2 } from '../../support/clients.js';
import type { Loose } from '../../support/net.js';

const DRAFT_07 =
  '{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"t":{"type":"array","items":[{"type":"string"},{"minimum":1.0}]}},"definitions":{"a":{}}}';
const DRAFT_2020 =
  '{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"t":{"prefixItems":[{"$ref":"#/$defs/a"}],"unevaluatedItems":false}},"$defs":{"a":{"type":"string"}},"oneOf":[{},{"not":{}}]}';
const UNKNOWN =
  '{"$schema":"https://example.com/my-dialect","type":"object","x-unknown":[1.0,{"2":1,"1":2}]}';
const REMOTE =
  '{"type":"object","properties":{"r":{"$ref":"http://127.0.0.1:9/never.json"}},"$ref":"https://schemas.invalid/x.json#/a"}';
const ODD =
  '{"type":"object","properties":{"a":{"type":"no-such-type","pattern":"([","minimum":"x"}},"required":"a"}';

const SCHEMAS = { draft07: DRAFT_07, draft2020: DRAFT_2020, unknown: UNKNOWN, remote: REMOTE, odd: ODD };
const LIST = Object.entries(SCHEMAS)
  .map(([name, schema]) => `{"name":"${name}","inputSchema":${schema},"outputSchema":${schema}}`)
  .join(',');

describe.each(CELLS)('%s', (cell) => {
  test('passes schemas of any dialect as they are, and reads none of what they refer to', async () => {
    const rig = await startCell(cell);
    try {
      rig.answer('tools/list', `{"tools":[${LIST}]}`);
      const { answer } = await rig.call('tools/list');
      expect(answer).toContain(`"tools":[${LIST}]`);
    } finally {
      await rig.close();
    }
  });

  test('judges neither arguments nor results by them', async () => {
    const rig = await startCell(cell);
    try {
      rig.answer(
        'tools/list',
        '{"tools":[{"name":"t","inputSchema":{"type":"object","required":["a"]},"outputSchema":{"type":"object","required":["b"]}}]}',
      );
      for (const members of [
        '"content":[]',
        '"content":[],"structuredContent":{"c":1}',
        '"content":[],"structuredContent":{},"isError":true',
      ]) {
        rig.answer('tools/call', `{${members}}`);
        const { answer, json } = await rig.call('tools/call', { name: 't', arguments: { wrong: 1 } });
        expect(json.error).toBeUndefined();
        expect(answer).toContain(members);
      }
    } finally {
      await rig.close();
    }
  });
});

/** Tools of a modern backend, some of which earlier revisions cannot have. */
const MODERN_TOOLS: Record<string, Loose> = {
  plain: { inputSchema: { type: 'object' } },
  list: {
    inputSchema: { type: 'object' },
    outputSchema: { type: 'array', items: { $ref: '#/$defs/n' }, $defs: { n: { type: 'integer' } } },
  },
  number: { inputSchema: { type: 'object' }, outputSchema: { type: 'number' } },
  nullable: { inputSchema: { type: 'object' }, outputSchema: { type: ['object', 'null'] } },
  either: { inputSchema: { type: 'object' }, outputSchema: { anyOf: [{ type: 'string' }, { $ref: '#' }] } },
  anything: { inputSchema: { type: 'object' }, outputSchema: true },
  nothing: { inputSchema: { type: 'object' }, outputSchema: null },
  typeless: { inputSchema: { properties: {} } },
  array: { inputSchema: { type: 'array' } },
  schemaless: {},
  booleans: {
    inputSchema: { type: 'object', properties: { any: true, none: false, a: { type: 'string' } } },
    outputSchema: { type: 'object', properties: { any: true } },
  },
  last: { inputSchema: { type: 'object' }, outputSchema: { type: 'object' } },
};

describe('a legacy client of a modern backend', () => {
  const tools = Object.entries(MODERN_TOOLS).map(([name, tool]) => ({ name, ...tool }));

  test('sees every tool that its revision can have, in a form that it can have', async () => {
    const rig = await startCell('LM');
    try {
      rig.answer('tools/list', `{"tools":${JSON.stringify(tools)}}`);
      const listed = (await rig.call('tools/list')).json.result.tools as Loose[];
      const by = Object.fromEntries(listed.map((tool) => [tool.name, tool]));
      expect(Object.keys(by)).toEqual(
        Object.keys(MODERN_TOOLS).filter((name) => !['typeless', 'array', 'schemaless'].includes(name)),
      );
      const wrapped = (result: Loose) => ({ type: 'object', properties: { result }, required: ['result'] });
      expect(by['list'].outputSchema).toEqual(
        wrapped({
          type: 'array',
          items: { $ref: '#/properties/result/$defs/n' },
          $defs: { n: { type: 'integer' } },
        }),
      );
      expect(by['number'].outputSchema).toEqual(wrapped({ type: 'number' }));
      expect(by['nullable'].outputSchema).toEqual(wrapped({ type: ['object', 'null'] }));
      expect(by['either'].outputSchema).toEqual(
        wrapped({ anyOf: [{ type: 'string' }, { $ref: '#/properties/result' }] }),
      );
      expect(by['anything'].outputSchema).toEqual(wrapped({}));
      expect(by['nothing']).not.toHaveProperty('outputSchema');
      expect(by['booleans'].inputSchema.properties).toEqual({
        any: {},
        none: { not: {} },
        a: { type: 'string' },
      });
      expect(by['booleans'].outputSchema.properties).toEqual({ any: {} });
      expect(by['last']).toEqual({ name: 'last', ...MODERN_TOOLS['last'] });
    } finally {
      await rig.close();
    }
  });

  test.each([
    ['SDK 1.x', connectV1],
    ['SDK 2.x', (url: string) => connectV2(url, 'legacy')],
  ])('gets the whole list, as %s', async (_kind, connect) => {
    const rig = await startCell('LM');
    try {
      rig.answer('tools/list', `{"tools":${JSON.stringify(tools)}}`);
      const client = await connect(rig.gateway.url());
      expect(await client.listTools()).toHaveLength(9);
      await client.close();
    } finally {
      await rig.close();
    }
  });
});

test.each(['LM', 'ML'] as const)(
  '%s: a schema of great depth costs neither the list nor the time of others',
  async (cell) => {
    const rig = await startCell(cell);
    try {
      const depth = 4_500;
      const nested = `${'{"items":['.repeat(depth)}{"x-mcp-header":"A"}${']}'.repeat(depth)}`;
      const filler = `"description":"${'x'.repeat(500_000)}"`;
      const deep = `{"name":"deep",${filler},"inputSchema":{"type":"object","not":${nested}},"outputSchema":${nested}}`;
      rig.answer('tools/list', `{"tools":[${deep},{"name":"t","inputSchema":{"type":"object"}}]}`);
      const startedAt = Date.now();
      const { json } = await rig.call('tools/list');
      expect(json.result.tools.map(({ name }: Loose) => name)).toContain('t');
      expect(Date.now() - startedAt).toBeLessThan(3_000);
    } finally {
      await rig.close();
    }
  },
);
