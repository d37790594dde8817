import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Rig, raw, startCell } from '../../support/cells.js';
import { headerValue } from '../../support/raw.js';

const SCHEMA = {
  type: 'object',
  properties: {
    region: { type: 'string', 'x-mcp-header': 'Region' },
    n: { type: 'integer', 'x-mcp-header': 'N' },
    flag: { type: 'boolean', 'x-mcp-header': 'Flag' },
    a: { type: 'object', properties: { b: { type: 'string', 'x-mcp-header': 'A-B' } } },
    plain: { type: 'string' },
  },
};
const tool = (name: string, inputSchema: unknown) => ({ name, inputSchema });
const list = (...tools: unknown[]) => `{"tools":${JSON.stringify(tools)}}`;

const headersOf = (values: Record<string, string>) =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [`mcp-param-${name}`, value]));

describe('a legacy tool with annotated arguments', () => {
  let rig: Rig;
  beforeAll(async () => {
    rig = await startCell('ML');
    rig.answer('tools/list', list(tool('t', SCHEMA)));
    rig.answer('tools/call', '{"content":[]}');
    const { json } = await rig.call('tools/list');
    expect(json.result.tools).toEqual([tool('t', SCHEMA)]);
  });
  afterAll(() => rig.close());

  const call = (args: string, headers: Record<string, string>, name = 't') =>
    rig.call('tools/call', { name, arguments: raw(args) }, { id: 'c', headers: headersOf(headers) });

  test.each<[args: string, headers: Record<string, string>]>([
    ['{}', {}],
    ['{"region":null,"n":null,"flag":null,"a":null}', {}],
    ['{"region":"eu","n":5,"flag":true,"a":{"b":"x"}}', { region: 'eu', n: '5', flag: 'true', 'a-b': 'x' }],
    ['{"region":"eu"}', { region: headerValue('eu') }],
    ['{"region":"eu"}', { region: `=?base64?${Buffer.from('eu').toString('base64')}?=` }],
    ['{"region":"Zürich"}', { region: headerValue('Zürich') }],
    ['{"region":" padded "}', { region: headerValue(' padded ') }],
    ['{"region":""}', { region: headerValue('') }],
    ['{"region":"ZXU="}', { region: 'ZXU=' }],
    ['{"region":"=?base64?ZXU="}', { region: '=?base64?ZXU=' }],
    ['{"n":1e3}', { n: '1000' }],
    ['{"n":42.0}', { n: '42' }],
    ['{"n":9007199254740993}', { n: '9007199254740993' }],
    ['{"plain":"p"}', { unknown: 'is no concern of this tool' }],
    ['{"region":["not","a","string"]}', {}],
  ])('is called when the headers say what the arguments say: %s with %j', async (args, headers) => {
    const { json, status } = await call(args, headers);
    expect(status, JSON.stringify(json)).toBe(200);
    expect(json.result).toMatchObject({ content: [] });
    expect(rig.sent('tools/call')).toContain(`"arguments":${args}`);
  });

  test.each<[what: string, args: string, headers: Record<string, string>]>([
    ['missing', '{"region":"eu"}', {}],
    ['missing for a nested argument', '{"a":{"b":"x"}}', {}],
    ['missing for false', '{"flag":false}', {}],
    ['another text', '{"region":"eu"}', { region: 'us' }],
    ['another case of the text', '{"region":"eu"}', { region: 'EU' }],
    ['another number', '{"n":5}', { n: '6' }],
    ['no number', '{"n":0}', { n: headerValue('') }],
    ['another truth', '{"flag":true}', { flag: 'True' }],
    ['sent for an argument that is not there', '{}', { region: 'eu' }],
    ['sent for null', '{"region":null}', { region: 'null' }],
    ['base64 without its padding', '{"region":"Hello"}', { region: '=?base64?SGVsbG8?=' }],
    ['no base64', '{"region":"Hello"}', { region: '=?base64?SGVs!!!bG8=?=' }],
  ])('is not called when a header is %s', async (_what, args, headers) => {
    const before = rig.backend.received('tools/call').length;
    const { json, status } = await call(args, headers);
    expect(status).toBe(400);
    expect(json).toMatchObject({ id: 'c', error: { code: -32020 } });
    expect(json.error.message).toMatch(/mcp-param-/);
    expect(rig.backend.received('tools/call').length).toBe(before);
  });

  test('that is listed no more as it was is called as it is listed now', async () => {
    rig.answer('tools/list', list(tool('t', { type: 'object' }), tool('u', SCHEMA)));
    await rig.call('tools/list');
    expect((await call('{"region":"eu"}', {})).status).toBe(200);
    expect((await call('{"region":"eu"}', {}, 'u')).status).toBe(400);
    rig.answer('tools/list', list(tool('t', SCHEMA)));
    await rig.call('tools/list');
    expect((await call('{"region":"eu"}', {})).status).toBe(400);
  });

  test('is called as the arguments have it by clients that never listed it', async () => {
    const own = await startCell('ML');
    try {
      own.answer('tools/call', '{"content":[]}');
      const { status } = await own.call('tools/call', { name: 't', arguments: { region: 'eu' } });
      expect(status).toBe(200);
    } finally {
      await own.close();
    }
  });

  test('is known from each page, also when the list is served again from what was kept', async () => {
    const own = await startCell('ML', { route: { cache: { 'tools/list': '1m' } } });
    try {
      own.on('tools/list', ({ params }) => {
        const page = Number(params?.cursor ?? 1);
        const next = page < 2 ? `,"nextCursor":"${page + 1}"` : '';
        return own.result(`{"tools":${JSON.stringify([tool(`t${page}`, SCHEMA)])}${next}}`);
      });
      own.answer('tools/call', '{"content":[]}');
      for (const authorization of [undefined, 'Bearer other']) {
        const headers = authorization === undefined ? {} : { authorization };
        for (const params of [{}, { cursor: '2' }]) await own.call('tools/list', params, { headers });
        for (const name of ['t1', 't2']) {
          const { status } = await own.call('tools/call', { name, arguments: { region: 'eu' } }, { headers });
          expect(status, `${name} ${authorization}`).toBe(400);
        }
      }
    } finally {
      await own.close();
    }
  });
});

test('a legacy tool whose annotations break the rules is listed without them, and called without headers', async () => {
  const rig = await startCell('ML');
  try {
    const annotated = (property: object) => ({
      type: 'object',
      properties: { p: property, q: { type: 'string' } },
    });
    const bad: [name: string, property: object, listed: object][] = [
      ['number', { type: 'number', 'x-mcp-header': 'P' }, { type: 'number' }],
      ['object', { type: 'object', 'x-mcp-header': 'P' }, { type: 'object' }],
      ['untyped', { 'x-mcp-header': 'P' }, {}],
      ['empty', { type: 'string', 'x-mcp-header': '' }, { type: 'string' }],
      ['spaced', { type: 'string', 'x-mcp-header': 'a b' }, { type: 'string' }],
      ['no-text', { type: 'string', 'x-mcp-header': 7 }, { type: 'string' }],
      [
        'items',
        { type: 'array', items: [{ type: 'string', 'x-mcp-header': 'P' }, true] },
        { type: 'array', items: [{ type: 'string' }, true] },
      ],
      [
        'called-like-it',
        { type: 'object', 'x-mcp-header': 'P', properties: { 'x-mcp-header': { type: 'string' } } },
        { type: 'object', properties: { 'x-mcp-header': { type: 'string' } } },
      ],
    ];
    rig.answer('tools/list', list(...bad.map(([name, property]) => tool(name, annotated(property)))));
    rig.answer('tools/call', '{"content":[]}');
    const { json } = await rig.call('tools/list');
    expect(json.result.tools).toEqual(bad.map(([name, , listed]) => tool(name, annotated(listed))));
    for (const [name] of bad) {
      const { status } = await rig.call('tools/call', { name, arguments: { p: 'x' } });
      expect(status, name).toBe(200);
    }
  } finally {
    await rig.close();
  }
});
