import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CELLS, type Rig, raw, startCell } from '../../support/cells.js';
import { CLIENT_INFO } from '../../support/raw.js';

const KEY = 'io.modelcontextprotocol/';
const ENVELOPE = ['protocolVersion', 'clientInfo', 'clientCapabilities', 'logLevel'].map(
  (name) => KEY + name,
);
/** Keys of `_meta` that are nobody's envelope, with values that a parser would change. */
const FOREIGN = {
  traceparent: raw('"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"'),
  'com.example/x': raw('{"2":1.0,"1":"\\u0041"}'),
  [`${KEY}related-task`]: raw('{"taskId":"t"}'),
  'io.modelcontextprotocol.other/protocolVersion': raw('1E2'),
};
const FOREIGN_TEXT = Object.entries(FOREIGN)
  .map(([key, value]) => `${JSON.stringify(key)}:${value.text}`)
  .join(',');

const CALLS: [string, object][] = [
  ['tools/call', { name: 'echo', arguments: {} }],
  ['prompts/get', { name: 'p' }],
  ['resources/read', { uri: 'file:///a' }],
  ['tools/list', {}],
  ['completion/complete', {}],
  ['acme/search', {}],
];

describe.each(CELLS)('%s', (cell) => {
  let rig: Rig;
  beforeAll(async () => {
    rig = await startCell(cell, { script: { capabilities: { tools: {}, logging: {} } } });
    for (const [method] of CALLS) rig.answer(method, '{}');
  });
  afterAll(() => rig.close());

  test.each(CALLS)('%s carries the keys of _meta that are nobody’s envelope', async (method, params) => {
    await rig.call(method, { ...params, _meta: { progressToken: 'p', ...FOREIGN } });
    const sent = rig.backend.received(method).at(-1);
    expect(sent?.text).toContain(FOREIGN_TEXT);
    const keys = Object.keys(sent?.json.params._meta);
    const foreign = ['progressToken', ...Object.keys(FOREIGN)];
    // A modern backend gets the client's name with each request, a legacy one in the handshake alone.
    const envelope = rig.modernBackend ? ENVELOPE.slice(0, 3) : [];
    expect(keys.sort()).toEqual([...foreign, ...envelope].sort());
  });

  test.each(CALLS)('%s leaves no empty _meta behind', async (method, params) => {
    await rig.call(method, params);
    const sent = rig.backend.received(method).at(-1)?.json.params;
    if (rig.modernBackend) expect(Object.keys(sent._meta).sort()).toEqual(ENVELOPE.slice(0, 3).sort());
    else expect(sent).toEqual(params);
  });

  test('tells a modern backend who calls, in the words of the client', async () => {
    await rig.call('tools/call', { name: 'echo' });
    if (!rig.modernBackend) return;
    const meta = rig.backend.received('tools/call').at(-1)?.json.params._meta;
    expect(meta[`${KEY}protocolVersion`]).toBe('2026-07-28');
    expect(meta[`${KEY}clientInfo`]).toEqual(CLIENT_INFO);
    expect(meta[`${KEY}clientCapabilities`]).toEqual({});
  });

  test('passes a _meta that a legacy client made up, and one that is none', async () => {
    if (rig.modernClient) return;
    for (const meta of [
      'null',
      '7',
      '"x"',
      '[]',
      '{}',
      '{"progressToken":null}',
      '{"progressToken":{"a":1}}',
    ]) {
      await rig.call('tools/call', { name: 'echo', _meta: raw(meta) });
      const sent = rig.backend.received('tools/call').at(-1);
      if (rig.modernBackend)
        expect(Object.keys(sent?.json.params._meta)).toEqual(expect.arrayContaining(ENVELOPE.slice(0, 3)));
      else expect(sent?.text).toContain(`"params":{"name":"echo","_meta":${meta}}`);
    }
  });

  test('changes nothing where _meta or its keys come twice but what must be changed', async () => {
    const params = raw(
      `{"name":"echo","_meta":{"first":1},"arguments":{"a":1.0},"_meta":{"k":1,"progressToken":5,"k":2.0${
        rig.modernClient
          ? `,"${KEY}protocolVersion":"1999-01-01","${KEY}protocolVersion":"2026-07-28","${KEY}clientCapabilities":{}`
          : ''
      }},"name":"echo"}`,
    );
    const headers = { 'mcp-name': 'echo' };
    const { json } = await rig.call('tools/call', params, rig.modernClient ? { headers } : {});
    expect(json.error).toBeUndefined();
    const sent = rig.backend.received('tools/call').at(-1);
    expect(sent?.text).toContain('"arguments":{"a":1.0}');
    expect(sent?.text).toContain('"k":1,');
    expect(sent?.text).toContain('"k":2.0');
    expect(sent?.json.params._meta.k).toBe(2);
    if (!rig.modernBackend) expect(sent?.text).not.toContain(`${KEY}protocolVersion`);
  });

  test('drops members of the envelope of JSON-RPC that it does not have', async () => {
    rig.on('tools/call', ({ id, sendJson }) => {
      const { text } = rig.result('{"content":[]}').result;
      const body = `{"x-vendor":1,"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${text},"extra":{}}`;
      return void sendJson(body) as undefined;
    });
    const { json } = await rig.call('tools/call', { name: 'echo' }, { id: 1 });
    expect(Object.keys(json).sort()).toEqual(['id', 'jsonrpc', 'result']);
  });
});

describe('the level of log messages that a request asks for', () => {
  test.each(['MM', 'LM'] as const)('%s: reaches a modern backend with the request', async (cell) => {
    const rig = await startCell(cell, { script: { capabilities: { tools: {}, logging: {} } } });
    try {
      if (cell === 'LM') await (await rig.session()).request('logging/setLevel', { level: 'warning' });
      const meta = { [`${KEY}logLevel`]: 'warning' };
      await rig.call('tools/call', { name: 'echo' }, cell === 'MM' ? { meta } : {});
      const sent = rig.backend.received('tools/call').at(-1)?.json;
      expect(sent.params._meta[`${KEY}logLevel`]).toBe('warning');
    } finally {
      await rig.close();
    }
  });

  test('ML: is set on the session before the call, and is no part of it', async () => {
    const rig = await startCell('ML', { script: { capabilities: { tools: {}, logging: {} } } });
    try {
      await rig.call('tools/call', { name: 'echo' }, { meta: { [`${KEY}logLevel`]: 'warning' } });
      const [set] = rig.backend.received('logging/setLevel');
      expect(set?.json.params).toEqual({ level: 'warning' });
      expect(rig.sent('tools/call')).not.toContain('logLevel');
      const methods = rig.backend.requests.map(({ json }) => json?.method);
      expect(methods.indexOf('logging/setLevel')).toBeLessThan(methods.indexOf('tools/call'));
    } finally {
      await rig.close();
    }
  });

  test('ML: does not hold up the call when the backend does not answer to it', async () => {
    const rig = await startCell('ML', {
      script: { capabilities: { tools: {}, logging: {} } },
      route: { timeouts: { connect: '300ms', start: '300ms' } },
    });
    try {
      rig.on('logging/setLevel', () => undefined);
      const startedAt = Date.now();
      const { json } = await rig.call(
        'tools/call',
        { name: 'echo' },
        { meta: { [`${KEY}logLevel`]: 'info' } },
      );
      expect(json.result).toBeDefined();
      expect(Date.now() - startedAt).toBeLessThan(2_000);
    } finally {
      await rig.close();
    }
  });
});
