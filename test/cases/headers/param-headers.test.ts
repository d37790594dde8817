import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Rig, raw, startCell } from '../../support/cells.js';
import { headerValue } from '../../support/raw.js';
import { useVirtualTime } from '../../support/virtual-time.js';

useVirtualTime();

const SCHEMA = {
  type: 'object',
  properties: {
    region: { type: 'string', 'x-mcp-header': 'Region' },
    n: { type: 'integer', 'x-mcp-header': 'N' },
    flag: { type: 'boolean', 'x-mcp-header': 'Flag' },
    a: { type: 'object', properties: { b: { type: 'string', 'x-mcp-header': 'A-B' } } },
    // A property that is only called like the annotation.
    'x-mcp-header': { type: 'string' },
    plain: { type: 'string' },
  },
};
const TOOLS = `"tools":[{"name":"t","inputSchema":${JSON.stringify(SCHEMA)}}],"ttlMs":0,"cacheScope":"private"`;

/** Arguments as JSON text, and the headers that go with them, without their prefix. */
const ROWS: [args: string, headers: Record<string, string>][] = [
  ['{"region":"eu","n":5,"flag":true,"a":{"b":"x"}}', { region: 'eu', n: '5', flag: 'true', 'a-b': 'x' }],
  ['{"region":"eu","n":null,"flag":null,"a":null}', { region: 'eu' }],
  ['{"a":{"b":null},"region":null}', {}],
  ['{}', {}],
  ['{"n":0,"flag":false,"region":""}', { n: '0', flag: 'false', region: '' }],
  ['{"n":-7}', { n: '-7' }],
  ['{"n":9007199254740991}', { n: '9007199254740991' }],
  ['{"n":-9007199254740991}', { n: '-9007199254740991' }],
  ['{"n":5.0}', { n: '5' }],
  ['{"n":1e3}', { n: '1000' }],
  ['{"region":" padded "}', { region: ' padded ' }],
  ['{"region":"Zürich"}', { region: 'Zürich' }],
  ['{"region":"\\u0041\\n"}', { region: 'A\n' }],
  ['{"region":"=?base64?YQ==?="}', { region: '=?base64?YQ==?=' }],
  ['{"x-mcp-header":"v","plain":"p"}', {}],
  ['{"region":"first","region":"last"}', { region: 'last' }],
  ['{"region":{"not":"a string"},"n":[1],"flag":"yes"}', { flag: 'yes' }],
];

const paramHeaders = (headers: object) =>
  Object.fromEntries(
    Object.entries(headers)
      .filter(([name]) => name.startsWith('mcp-param-'))
      .map(([name, value]) => [name.slice('mcp-param-'.length), value]),
  );

describe('a legacy client that calls a tool of a modern backend with annotated arguments', () => {
  let rig: Rig;
  beforeAll(async () => {
    rig = await startCell('LM');
    rig.answer('tools/list', `{${TOOLS}}`);
    rig.answer('tools/call', '{"content":[]}');
  });
  afterAll(() => rig.close());

  test.each(ROWS)('has the headers written for it: %s', async (args, headers) => {
    const { json } = await rig.call('tools/call', { name: 't', arguments: raw(args) });
    expect(json.result).toBeDefined();
    const received = rig.backend.received('tools/call').at(-1);
    expect(received?.text).toContain(`"arguments":${args}`);
    const expected = Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name, headerValue(value)]),
    );
    expect(paramHeaders(received?.headers ?? {})).toEqual(expected);
  });

  test.each(['9007199254740993', '-9007199254740992', '1.5', '1e400', '12345678901234567890'])(
    'is told so when an integer does not fit a header: %s',
    async (n) => {
      const before = rig.backend.received('tools/call').length;
      const { json, status } = await rig.call(
        'tools/call',
        { name: 't', arguments: raw(`{"n":${n}}`) },
        { id: 4 },
      );
      expect(status).toBe(200);
      expect(json).toMatchObject({ id: 4, error: { code: -32602, message: expect.stringContaining(n) } });
      expect(json.error.message).toContain('argument n');
      expect(rig.backend.received('tools/call').length).toBe(before);
    },
  );

  test('sends no such headers for a tool that has none, or that is not listed', async () => {
    for (const params of [{ name: 'unlisted', arguments: { region: 'eu' } }, { name: 't' }]) {
      expect((await rig.call('tools/call', params)).json.result).toBeDefined();
      expect(paramHeaders(rig.backend.received('tools/call').at(-1)?.headers ?? {})).toEqual({});
    }
  });

  test('copies none of the headers that the client sends', async () => {
    const headers = { 'mcp-param-region': 'us', 'mcp-param-x': '1', 'mcp-name': 'other', 'mcp-method': 'x' };
    await rig.call('tools/call', { name: 't', arguments: { region: 'eu' } }, { headers });
    const sent = rig.backend.received('tools/call').at(-1)?.headers;
    expect(paramHeaders(sent ?? {})).toEqual({ region: 'eu' });
    expect(sent).toMatchObject({ 'mcp-name': 't', 'mcp-method': 'tools/call' });
  });

  test('sees the tool, and not one whose annotations break the rules', async () => {
    const tool = (name: string, schema: unknown) => ({ name, inputSchema: schema });
    const annotated = (property: unknown) => ({ type: 'object', properties: { p: property } });
    const bad = {
      number: annotated({ type: 'number', 'x-mcp-header': 'P' }),
      object: annotated({ type: 'object', 'x-mcp-header': 'P' }),
      untyped: annotated({ 'x-mcp-header': 'P' }),
      empty: annotated({ type: 'string', 'x-mcp-header': '' }),
      spaced: annotated({ type: 'string', 'x-mcp-header': 'a b' }),
      items: annotated({ type: 'array', items: { type: 'string', 'x-mcp-header': 'P' } }),
      root: { type: 'object', 'x-mcp-header': 'P' },
      twice: {
        type: 'object',
        properties: {
          p: { type: 'string', 'x-mcp-header': 'P' },
          q: { type: 'string', 'x-mcp-header': 'p' },
        },
      },
    };
    const tools = [...Object.entries(bad).map(([name, schema]) => tool(name, schema)), tool('good', SCHEMA)];
    rig.answer('tools/list', `{"tools":${JSON.stringify(tools)},"ttlMs":0,"cacheScope":"private"}`);
    const { json } = await rig.call('tools/list');
    expect(json.result.tools).toEqual([tool('good', SCHEMA)]);
    rig.answer('tools/list', `{${TOOLS}}`);
  });

  test('calls a tool that is on the last of several pages', async () => {
    const own = await startCell('LM');
    try {
      own.on('tools/list', ({ params }) => {
        const page = Number(params.cursor ?? 1);
        const name = JSON.stringify(`t${page}`);
        const tool = `{"name":${name},"inputSchema":${JSON.stringify(SCHEMA)}}`;
        const next = page < 3 ? `,"nextCursor":"${page + 1}"` : '';
        return own.result(`{"tools":[${tool}],"ttlMs":0,"cacheScope":"private"${next}}`);
      });
      own.answer('tools/call', '{"content":[]}');
      await own.call('tools/call', { name: 't3', arguments: { region: 'eu' } });
      await own.call('tools/call', { name: 't2', arguments: { region: 'us' } });
      const sent = own.backend.received('tools/call').map(({ headers }) => headers['mcp-param-region']);
      expect(sent).toEqual(['eu', 'us']);
      // The list is read once, to its end.
      expect(own.backend.received('tools/list').map(({ json }) => json.params.cursor)).toEqual([
        undefined,
        '2',
        '3',
      ]);
    } finally {
      await own.close();
    }
  });

  test.each([
    ['an error', () => ({ error: { code: -32601, message: 'no lists' } })],
    ['a list that is none', () => ({ result: raw('{"resultType":"complete","tools":7}') })],
    [
      'a cursor that leads back to itself',
      () => ({ result: raw('{"resultType":"complete","tools":[],"nextCursor":"x"}') }),
    ],
  ])('calls a tool all the same when the list gives %s', async (_what, list) => {
    const own = await startCell('LM');
    try {
      own.on('tools/list', list);
      own.answer('tools/call', '{"content":[]}');
      expect((await own.call('tools/call', { name: 't', arguments: {} })).json.result).toBeDefined();
      expect(own.backend.received('tools/list').length).toBeLessThan(5);
    } finally {
      await own.close();
    }
  });

  test('does not wait long for a list that does not come', async () => {
    const own = await startCell('LM', { route: { timeouts: { connect: '300ms', start: '300ms' } } });
    try {
      own.on('tools/list', () => undefined);
      own.answer('tools/call', '{"content":[]}');
      const startedAt = Date.now();
      expect((await own.call('tools/call', { name: 't', arguments: {} })).json.result).toBeDefined();
      expect(Date.now() - startedAt).toBeLessThan(2_000);
    } finally {
      await own.close();
    }
  });
});

describe('a modern client that calls a tool with annotated arguments', () => {
  test('has its own headers passed on to a modern backend, known and unknown ones', async () => {
    const rig = await startCell('MM');
    try {
      rig.answer('tools/list', `{${TOOLS}}`);
      rig.answer('tools/call', '{"content":[]}');
      expect((await rig.call('tools/list')).json.result.tools[0].inputSchema).toEqual(SCHEMA);
      const values = { region: '=?base64?IHBhZGRlZCA=?=', n: '5', future: 'x' };
      const headers = Object.fromEntries(
        Object.entries(values).map(([name, value]) => [`Mcp-Param-${name}`, value]),
      );
      await rig.call('tools/call', { name: 't', arguments: { region: ' padded ', n: 5 } }, { headers });
      expect(paramHeaders(rig.backend.received('tools/call').at(-1)?.headers ?? {})).toEqual(values);
      // No list is read for it: the client has it.
      expect(rig.backend.received('tools/list')).toHaveLength(1);
    } finally {
      await rig.close();
    }
  });

  test('has none passed on to a legacy backend', async () => {
    const rig = await startCell('ML');
    try {
      await rig.call(
        'tools/call',
        { name: 'echo', arguments: {} },
        { headers: { 'mcp-param-region': 'eu' } },
      );
      const headers = rig.backend.received('tools/call').at(-1)?.headers ?? {};
      expect(Object.keys(headers).filter((name) => /^mcp-(param|name|method)/.test(name))).toEqual([]);
    } finally {
      await rig.close();
    }
  });
});
