import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CELLS, type Cell, type Rig, startCell } from '../../support/cells.js';
import { LEGACY, modernRequest, RawJson, rawStringify, send } from '../../support/raw.js';

const raw = (text: string): RawJson => new RawJson(text);
const members = (count: number): string =>
  `{${Array.from({ length: count }, (_, i) => `"m${i}":0`).join(',')}}`;
const nested = (levels: number): string => `${'{"a":'.repeat(levels)}0${'}'.repeat(levels)}`;

const INFO = '{"name":"c","version":"1"}';
/** What a client says of itself that is too much: capabilities, then client info. */
const TOO_MUCH: Record<string, readonly [capabilities: string, info: string]> = {
  'capabilities of 20 KB': [`{"experimental":{"${'x'.repeat(20_000)}":{}}}`, INFO],
  'capabilities of 4 MB': [`{"experimental":{"${'x'.repeat(4_000_000)}":{}}}`, INFO],
  'capabilities 3,000 levels deep': [nested(3_000), INFO],
  'capabilities 100 levels deep': [nested(100), INFO],
  'capabilities of 1,500 members': [members(1_500), INFO],
  'capabilities of as many elements of an array': [`{"experimental":[${'0,'.repeat(2_000)}0]}`, INFO],
  'a name of 100 KB': ['{}', `{"name":"${'n'.repeat(100_000)}","version":"1"}`],
  'client info 3,000 levels deep': ['{}', `{"name":"c","version":"1","icons":${nested(3_000)}}`],
};

/** What of a request is too much for any method. */
const TOO_MANY: Record<string, { params?: string; id?: string }> = {
  '5,000 members in _meta': { params: `{"_meta":${members(5_000)}}` },
  '300,000 members in _meta': { params: `{"_meta":${members(300_000)}}` },
  '5,000 members in params': { params: members(5_000) },
  'a progress token of 10 KB': { params: `{"_meta":{"progressToken":"${'t'.repeat(10_000)}"}}` },
  'an id of 10 KB': { id: `"${'i'.repeat(10_000)}"` },
};

const ENCODINGS: Record<string, (body: string) => { body: Buffer; headers: Record<string, string> }> = {
  plain: (body) => ({ body: Buffer.from(body), headers: {} }),
  gzip: (body) => ({ body: gzipSync(body), headers: { 'content-encoding': 'gzip' } }),
};

function declaring(url: string, cell: Cell, capabilities: string, info: string) {
  if (cell[0] === 'M') {
    return modernRequest(
      'tools/list',
      {},
      {
        id: 7,
        meta: {
          'io.modelcontextprotocol/clientCapabilities': raw(capabilities),
          'io.modelcontextprotocol/clientInfo': raw(info),
        },
      },
    );
  }
  const params = { protocolVersion: LEGACY, capabilities: raw(capabilities), clientInfo: raw(info) };
  return { headers: {}, body: rawStringify({ jsonrpc: '2.0', id: 7, method: 'initialize', params }), url };
}

describe.each(CELLS)('%s', (cell) => {
  let rig: Rig;
  beforeAll(async () => {
    rig = await startCell(cell);
  });
  afterAll(() => rig.close());

  describe.each(Object.keys(ENCODINGS))('sent as %s', (encoding) => {
    test.each(Object.entries(TOO_MUCH))('%s are refused under the id of the request', async (_what, said) => {
      const url = rig.gateway.url();
      const { headers, body } = declaring(url, cell, ...said);
      const encoded = ENCODINGS[encoding]?.(body as string);
      const sent = rig.backend.requests.length;
      const response = await send(url, {
        headers: { ...(headers as object), ...encoded?.headers },
        body: encoded?.body,
      });
      // A body that is larger than any may be is refused before it is read.
      if (response.status === 413) return;
      expect(response.status).toBe(400);
      expect(response.json).toMatchObject({ id: 7, error: { code: -32602 } });
      expect(
        rig.backend.requests
          .slice(sent)
          .map(({ text }) => text)
          .join(),
      ).not.toContain('xxxxxxxx');
    });
  });

  test.each(Object.entries(TOO_MANY))('%s are refused', async (_what, { params = '{}', id = '7' }) => {
    const meta = cell[0] === 'M' ? modernMeta(params) : params;
    const session = cell[0] === 'M' ? undefined : await rig.session();
    const response = await send(rig.gateway.url(), {
      headers: session?.headers ?? { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/list' },
      body: `{"jsonrpc":"2.0","id":${id},"method":"tools/list","params":${meta}}`,
    });
    expect(response.status).toBe(400);
    expect([-32600, -32602]).toContain(response.json.error.code);
    if (id === '7') expect(response.json.id).toBe(7);
  });

  test('what a real client may say passes', async () => {
    rig.answer('tools/list', '{"tools":[]}');
    const { headers, body } = declaring(
      rig.gateway.url(),
      cell,
      '{"experimental":{"a":{"b":{"c":[1,2,3]}}},"extensions":{"io.modelcontextprotocol/ui":{"mimeTypes":["text/html"]}}}',
      `{"name":"c","version":"1","icons":[{"src":"data:image/png;base64,${'A'.repeat(40_000)}"}]}`,
    );
    const response = await send(rig.gateway.url(), { headers: headers as Record<string, string>, body });
    expect(response.json.error).toBeUndefined();
    expect(response.json.result).toBeDefined();
  });
});

/** The params with the envelope of a modern request in their `_meta`. */
function modernMeta(params: string): string {
  const envelope =
    '"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}';
  if (params.includes('"_meta":{')) return params.replace('"_meta":{', `"_meta":{${envelope},`);
  return params === '{}' ? `{"_meta":{${envelope}}}` : params.replace('{', `{"_meta":{${envelope}},`);
}
