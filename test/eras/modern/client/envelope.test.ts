import { describe, expect, test } from 'vitest';
import { type McpHeaders, readMcpHeaders } from '../../../../src/downstream/mcp-headers.js';
import { EnvelopeReader } from '../../../../src/eras/modern/client/envelope.js';
import { parseFrame, type RequestFrame } from '../../../../src/jsonrpc/index.js';

const KEY = 'io.modelcontextprotocol/';
const META = `"${KEY}protocolVersion":"2026-07-28","${KEY}clientCapabilities":{"x":{}}`;
const frameOf = (method: string, params: string): RequestFrame =>
  parseFrame(
    Buffer.from(`{"jsonrpc":"2.0","id":1,"method":${JSON.stringify(method)},"params":${params}}`),
  ) as RequestFrame;
const headersOf = (more: Record<string, string> = {}): McpHeaders =>
  readMcpHeaders(Object.entries({ 'MCP-Protocol-Version': '2026-07-28', ...more }).flat());
const reader = new EnvelopeReader();
const read = (method: string, params: string, headers: Record<string, string> = {}) =>
  reader.read(frameOf(method, params), headersOf({ 'Mcp-Method': method, ...headers }));

describe('the envelope of a request', () => {
  test('describes the sender', () => {
    const info = '{"name":"a","version":"1","x":1.0}';
    const meta = `${META},"${KEY}clientInfo":${info},"${KEY}logLevel":"notice","progressToken":1.0`;
    const envelope = read('tools/call', `{"name":"é","_meta":{${meta}}}`, { 'Mcp-Name': '=?base64?w6k=?=' });
    expect(envelope).toMatchObject({
      sender: {
        version: '2026-07-28',
        clientInfo: info,
        logLevel: 'notice',
        capabilities: { value: { x: {} } },
      },
      progressToken: '1.0',
      name: 'é',
    });
  });

  test.each([
    ['no name for a method that has none', 'tools/list', '{"name":"x",@}', {}, undefined],
    ['the uri of a read', 'resources/read', '{"uri":"a:b","name":"n",@}', { 'Mcp-Name': 'a:b' }, 'a:b'],
    ['the id of a task', 'tasks/get', '{"taskId":"t",@}', { 'Mcp-Name': 't' }, 't'],
    ['the last of equal members', 'prompts/get', '{"name":"a","name":"b",@}', { 'Mcp-Name': 'b' }, 'b'],
    ['nothing of a method called like a member of objects', 'constructor', '{@}', {}, undefined],
  ])('names %s', (_what, method, params, headers, name) => {
    const envelope = read(
      method,
      params.replace('@', `"_meta":{${META}}`),
      headers as Record<string, string>,
    );
    expect('code' in envelope).toBe(false);
    expect((envelope as { name?: string }).name).toBe(name);
  });

  test.each(['null', '{"a":1}', 'true', '[1]'])('has no progress token in %s', (token) => {
    const envelope = read('tools/list', `{"_meta":{${META},"progressToken":${token}}}`);
    expect((envelope as { progressToken?: string }).progressToken).toBeUndefined();
  });

  test.each([
    ['{}', -32602, 400],
    ['{"_meta":{}}', -32602, 400],
    [`{"_meta":{"${KEY}protocolVersion":"2026-07-28"}}`, -32602, 400],
    [`{"_meta":{"${KEY}protocolVersion":null,"${KEY}clientCapabilities":{}}}`, -32602, 400],
    [`{"_meta":{"${KEY}protocolVersion":"2027-01-01","${KEY}clientCapabilities":{}}}`, -32020, 400],
    [`{"_meta":{${META},"${KEY}logLevel":"loud"}}`, -32602, 400],
    [`{"_meta":{${META},"${KEY}clientInfo":{"name":"a"}}}`, -32602, 400],
  ])('that is %s is refused with %i', (params, code, status) => {
    expect(read('tools/list', params)).toMatchObject({ code, status });
  });

  test('of another version is refused once the headers agree', () => {
    const meta = `"${KEY}protocolVersion":"2027-01-01","${KEY}clientCapabilities":{}`;
    const refusal = read('tools/list', `{"_meta":{${meta}}}`, { 'MCP-Protocol-Version': '2027-01-01' });
    expect(refusal).toMatchObject({
      code: -32022,
      status: 400,
      data: '{"supported":["2026-07-28"],"requested":"2027-01-01"}',
    });
  });

  test('is refused where a header is missing or contradicts the body', () => {
    const params = `{"name":"n","_meta":{${META}}}`;
    const frame = frameOf('tools/call', params);
    const all: Record<string, string> = {
      'MCP-Protocol-Version': '2026-07-28',
      'Mcp-Method': 'tools/call',
      'Mcp-Name': 'n',
    };
    for (const name of Object.keys(all)) {
      const { [name]: _left, ...others } = all;
      for (const headers of [others, { ...all, [name]: 'other' }]) {
        const refusal = reader.read(frame, readMcpHeaders(Object.entries(headers).flat()));
        expect(refusal).toMatchObject({ code: -32020, status: 400 });
        expect((refusal as { message: string }).message).toMatch(new RegExp(name, 'i'));
      }
    }
    expect('code' in reader.read(frame, readMcpHeaders(Object.entries(all).flat()))).toBe(false);
  });

  test.each([
    'ping',
    'initialize',
    'logging/setLevel',
    'resources/subscribe',
    'tasks/result',
    '$/x',
    'notifications/x',
  ])('is refused for the method %s, which the revision does not have', (method) => {
    expect(read(method, `{"_meta":{${META}}}`)).toMatchObject({ code: -32601, status: 404 });
  });
});
