import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Rig, startCell } from '../../support/cells.js';
import { headerValue, modernRequest, send, wire } from '../../support/raw.js';

const URI = 'file:///Załączniki/raport.pdf';
const b64 = (text: string | Buffer) => `=?base64?${Buffer.from(text).toString('base64')}?=`;

/** A header as it may be written: each of them names the URI, or the name, of the body. */
const RIGHT: [body: string, header: string][] = [
  [URI, b64(URI)],
  ['echo', 'echo'],
  ['echo', b64('echo')],
  ['', b64('')],
  ['a b', 'a b'],
  ['a b', b64('a b')],
  [' pad ', b64(' pad ')],
  ['\ttab', b64('\ttab')],
  ['天气', b64('天气')],
  ['🙂', b64('🙂')],
  ['=?base64?abc?=', b64('=?base64?abc?=')],
  ['=?BASE64?YQ==?=', '=?BASE64?YQ==?='],
  ['=?base64?', '=?base64?'],
  ['?=', '?='],
  ['a"b,c;d', 'a"b,c;d'],
  ['line\nend', b64('line\nend')],
  ['x'.repeat(5_000), 'x'.repeat(5_000)],
];

const WRONG: [what: string, body: string, header: string | undefined][] = [
  ['none at all', 'echo', undefined],
  ['an empty one', 'echo', ''],
  ['another name', 'echo', 'other'],
  ['another case', 'echo', 'Echo'],
  ['base64 of another name', 'echo', b64('other')],
  ['base64 that is none', 'echo', '=?base64?!!!!?='],
  ['base64 without its padding', 'echo', '=?base64?ZWNobw?='],
  ['base64 for URLs', '???>>>', '=?base64?Pz8_Pj4-?='],
  ['base64 with spaces', 'echo', '=?base64? ZWNobw== ?='],
  ['base64 of bytes that are no UTF-8', '\ufffd', b64(Buffer.from([0xff]))],
  ['the sentinel in capitals', 'echo', '=?BASE64?ZWNobw==?='],
  ['percent encoding', 'a b', 'a%20b'],
  ['the name with its ends cut off', ' pad ', 'pad'],
  ['raw UTF-8', URI, Buffer.from(URI).toString('latin1')],
  ['Latin-1', 'é', '\u00e9'],
  ['a name that merely looks encoded', '=?base64?abc?=', '=?base64?abc?='],
  ['a quoted name', 'echo', '"echo"'],
];

describe.each(['ML', 'MM'] as const)('%s', (cell) => {
  let rig: Rig;
  beforeAll(async () => {
    rig = await startCell(cell);
    rig.answer('tools/call', '{"content":[]}');
    rig.answer('prompts/get', '{"messages":[]}');
    rig.answer('resources/read', '{"contents":[]}');
  });
  afterAll(() => rig.close());

  const KINDS = [
    ['tools/call', 'name'],
    ['prompts/get', 'name'],
    ['resources/read', 'uri'],
  ] as const;

  test.each(RIGHT)('takes the name %j from the header %j', async (body, header) => {
    for (const [method, member] of KINDS) {
      const answer = await rig.call(method, { [member]: body }, { headers: { 'mcp-name': header } });
      expect(answer.status).toBe(200);
      expect(answer.json.result).toBeDefined();
      const { json, headers } = rig.backend.received(method).at(-1) ?? {};
      expect(json.params[member]).toBe(body);
      // Written anew for a modern backend, and unknown to a legacy one.
      expect(headers?.['mcp-name']).toBe(rig.modernBackend ? headerValue(body) : undefined);
    }
  });

  test.each(WRONG)('refuses %s beside the name %j', async (_what, body, header) => {
    for (const [method, member] of KINDS) {
      const before = rig.backend.requests.length;
      const { status, json } = await rig.call(
        method,
        { [member]: body },
        { id: 'n', headers: { 'mcp-name': header } },
      );
      expect(status).toBe(400);
      expect(json).toMatchObject({
        id: 'n',
        error: { code: -32020, message: expect.stringContaining('Mcp-Name') },
      });
      expect(rig.backend.requests.length).toBe(before);
    }
  });

  test('looks at the member that the method is named by', async () => {
    const request = { uri: 'a:b', name: 'other' };
    expect((await rig.call('resources/read', request, { headers: { 'mcp-name': 'a:b' } })).status).toBe(200);
    expect((await rig.call('tools/call', request, { headers: { 'mcp-name': 'other' } })).status).toBe(200);
    expect((await rig.call('resources/read', request, { headers: { 'mcp-name': 'other' } })).status).toBe(
      400,
    );
    for (const params of [{}, { name: 7 }, { name: null }]) {
      const { status, json } = await rig.call('tools/call', params, { headers: { 'mcp-name': '7' } });
      expect(status).toBe(400);
      expect(json.error.code).toBe(-32602);
    }
  });

  test('asks for no name where the method has none, and passes by one that is there', async () => {
    rig.answer('acme/search', '{}');
    for (const headers of [{}, { 'mcp-name': 'anything' }]) {
      expect((await rig.call('tools/list', {}, { headers })).status).toBe(200);
      expect((await rig.call('acme/search', { name: 'x' }, { headers })).status).toBe(200);
    }
  });

  test.each(['mcp-name', 'mcp-method', 'mcp-protocol-version', 'mcp-param-a'])(
    'refuses %s twice, even with equal values',
    async (name) => {
      const request = modernRequest(
        'tools/call',
        { name: 'echo' },
        { id: 'n', headers: { 'mcp-param-a': 'x' } },
      );
      const once = Object.entries(request.headers ?? {}) as [string, string][];
      const headers = [...once, ...once.filter(([key]) => key === name)];
      const { status, json } = await send(rig.gateway.url(), { ...request, headers });
      expect(status).toBe(400);
      expect(json).toMatchObject({
        id: 'n',
        error: { code: -32020, message: expect.stringContaining(name) },
      });
    },
  );

  test('reads header names in any case', async () => {
    const { body, headers } = modernRequest('tools/call', { name: 'echo' });
    const shouted = Object.entries(headers ?? {}).map(([key, value]) => [key.toUpperCase(), value] as const);
    const pairs = shouted.filter((pair): pair is readonly [string, string] => pair[1] !== undefined);
    expect((await send(rig.gateway.url(), { body, headers: pairs })).status).toBe(200);
  });

  test('does not mind white space around a header value', async () => {
    const { body, headers } = modernRequest('tools/call', { name: 'echo' });
    const lines = Object.entries({ ...headers, 'mcp-name': '  echo \t' })
      .map(([key, value]) => `${key}: ${value}\r\n`)
      .join('');
    const { host } = new URL(rig.gateway.url());
    const text = String(body);
    const answer = await wire(
      rig.gateway.url(),
      `POST /mcp HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: ${Buffer.byteLength(text)}\r\n${lines}\r\n${text}`,
    );
    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
  });
});

// The name that the backend reads is that of the body that the gateway sends.
describe.each(['LM', 'MM'] as const)('%s', (cell) => {
  test.each(['echo', '天气', ' pad ', '=?base64?abc?=', 'line\nend', 'é', '', 'a:b/c?d=e', 'a%20b'])(
    'names the tool %j to a strict backend as the specification has it',
    async (name) => {
      const rig = await startCell(cell);
      try {
        rig.answer('tools/call', '{"content":[]}');
        const { json } = await rig.call('tools/call', { name, arguments: {} });
        expect(json.result).toBeDefined();
        const { headers } = rig.backend.received('tools/call').at(-1) ?? {};
        expect(headers).toMatchObject({
          'mcp-name': headerValue(name),
          'mcp-method': 'tools/call',
          'mcp-protocol-version': '2026-07-28',
        });
      } finally {
        await rig.close();
      }
    },
  );
});
