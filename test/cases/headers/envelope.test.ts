import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Rig, raw, startCell } from '../../support/cells.js';
import { modernRequest, send } from '../../support/raw.js';

const KEY = 'io.modelcontextprotocol/';

interface Row {
  what: string;
  method?: string;
  meta?: Record<string, unknown>;
  headers?: Record<string, string | undefined>;
  version?: string;
  code: number;
  status: number;
  data?: unknown;
}

const supported = ['2026-07-28'];
const ROWS: Row[] = [
  // The envelope
  { what: 'no protocolVersion', meta: { [`${KEY}protocolVersion`]: undefined }, code: -32602, status: 400 },
  {
    what: 'no clientCapabilities',
    meta: { [`${KEY}clientCapabilities`]: undefined },
    code: -32602,
    status: 400,
  },
  ...[null, 7, 'x', [], true].map((value) => ({
    what: `clientCapabilities that are ${JSON.stringify(value)}`,
    meta: { [`${KEY}clientCapabilities`]: value },
    code: -32602,
    status: 400,
  })),
  ...[null, 7, {}, 'x', { name: 'a' }, { name: 'a', version: 1 }].map((value) => ({
    what: `clientInfo that is ${JSON.stringify(value)}`,
    meta: { [`${KEY}clientInfo`]: value },
    code: -32602,
    status: 400,
  })),
  ...[null, 7, 'loud', 'INFO', ''].map((value) => ({
    what: `logLevel that is ${JSON.stringify(value)}`,
    meta: { [`${KEY}logLevel`]: value },
    code: -32602,
    status: 400,
  })),
  {
    what: 'a protocolVersion that is a number',
    meta: { [`${KEY}protocolVersion`]: 2026 },
    code: -32602,
    status: 400,
  },
  // The version
  ...['1900-01-01', '2025-11-25', '2027-01-01', '', 'latest', '2026-07-28x'].map((version) => ({
    what: `the version ${JSON.stringify(version)}`,
    version,
    code: -32022,
    status: 400,
    data: { supported, requested: version },
  })),
  { what: 'no version header', headers: { 'mcp-protocol-version': undefined }, code: -32020, status: 400 },
  {
    what: 'a legacy version header',
    headers: { 'mcp-protocol-version': '2025-11-25' },
    code: -32020,
    status: 400,
  },
  {
    what: 'an unknown version header',
    headers: { 'mcp-protocol-version': '1900-01-01' },
    code: -32020,
    status: 400,
  },
  // The method
  { what: 'no Mcp-Method', headers: { 'mcp-method': undefined }, code: -32020, status: 400 },
  { what: 'another Mcp-Method', headers: { 'mcp-method': 'tools/call' }, code: -32020, status: 400 },
  { what: 'Mcp-Method in capitals', headers: { 'mcp-method': 'TOOLS/LIST' }, code: -32020, status: 400 },
  ...[
    'ping',
    'logging/setLevel',
    'resources/subscribe',
    'resources/unsubscribe',
    'tasks/list',
    'tasks/result',
    'initialize',
    '$/cancelRequest',
    '$/progress',
    'notifications/initialized',
    'notifications/cancelled',
  ].map((method) => ({ what: `the method ${method}`, method, code: -32601, status: 404 })),
];

describe.each(['ML', 'MM'] as const)('%s', (cell) => {
  let rig: Rig;
  beforeAll(async () => {
    rig = await startCell(cell);
    await rig.call('tools/list');
  });
  afterAll(() => rig.close());

  test.each(ROWS)('answers $code to $what, and asks the backend nothing', async (row) => {
    const before = rig.backend.requests.length;
    const { status, json, headers } = await rig.call(
      row.method ?? 'tools/list',
      {},
      {
        id: 'r',
        ...(row.meta ? { meta: row.meta } : {}),
        ...(row.headers ? { headers: row.headers } : {}),
        ...(row.version === undefined ? {} : { version: row.version }),
      },
    );
    expect(status).toBe(row.status);
    expect(headers['content-type']).toMatch(/^application\/json/);
    expect(json).toMatchObject({
      jsonrpc: '2.0',
      id: 'r',
      error: { code: row.code, message: expect.any(String) },
    });
    if (row.data !== undefined) expect(json.error.data).toEqual(row.data);
    expect(rig.backend.requests.length).toBe(before);
  });

  test('names what the envelope lacks', async () => {
    for (const [body, missing] of [
      [{}, ['protocolVersion', 'clientCapabilities']],
      [{ params: {} }, ['protocolVersion', 'clientCapabilities']],
      [{ params: { _meta: {} } }, ['protocolVersion', 'clientCapabilities']],
      [{ params: { _meta: null } }, ['protocolVersion', 'clientCapabilities']],
      [{ params: { _meta: { [`${KEY}protocolVersion`]: '2026-07-28' } } }, ['clientCapabilities']],
      [{ params: { _meta: { [`${KEY}clientCapabilities`]: {} } } }, ['protocolVersion']],
    ] as const) {
      const { status, json } = await send(rig.gateway.url(), {
        headers: { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/list' },
        body: { jsonrpc: '2.0', id: 0, method: 'tools/list', ...body },
      });
      expect(status).toBe(400);
      expect(json).toMatchObject({ id: 0, error: { code: -32602 } });
      for (const key of missing) expect(json.error.message).toContain(`${KEY}${key}`);
    }
  });

  test.each(['tools/list', 'tools/call', 'resources/read'])('takes %s without clientInfo', async (method) => {
    rig.answer(method, '{"content":[],"contents":[],"tools":[]}');
    const { status } = await rig.call(
      method,
      { name: 'echo', uri: 'a:b' },
      { meta: { [`${KEY}clientInfo`]: undefined } },
    );
    expect(status).toBe(200);
  });

  test.each([
    ['notifications/initialized', {}],
    ['notifications/cancelled', { requestId: 1 }],
    ['notifications/progress', { progressToken: 1, progress: 1 }],
    ['notifications/roots/list_changed', {}],
    ['$/cancelRequest', { id: 1 }],
    ['$/progress', {}],
    ['anything', {}],
  ])('takes the notification %s, and drops it', async (method, params) => {
    const before = rig.backend.requests.length;
    for (const claimed of [true, false]) {
      const request = modernRequest(method, params, { headers: { 'mcp-method': undefined } });
      const { id: _id, ...message } = JSON.parse(String(request.body));
      const body = claimed ? message : { ...message, params };
      const { status, text } = await send(rig.gateway.url(), { ...request, body });
      expect(status).toBe(202);
      expect(text).toBe('');
    }
    expect(rig.backend.requests.length).toBe(before);
  });

  test('has POST alone, and no sessions', async () => {
    const url = rig.gateway.url();
    for (const method of ['GET', 'DELETE']) {
      for (const more of [{}, { 'last-event-id': '7' }, { 'mcp-session-id': 'any' }]) {
        const headers = { 'mcp-protocol-version': '2026-07-28', accept: 'text/event-stream', ...more };
        const answer = await send(url, { method, headers });
        expect(answer.status).toBe(405);
        expect(answer.headers.allow).toContain('POST');
        expect(answer.json.error.code).toBe(-32000);
      }
    }
    const foreign = { 'mcp-session-id': 'any', 'last-event-id': '7' };
    const { status, headers } = await rig.call('tools/list', {}, { headers: foreign });
    expect(status).toBe(200);
    expect(headers['mcp-session-id']).toBeUndefined();
    const sent = rig.backend.received('tools/list').at(-1)?.headers;
    expect(sent?.['mcp-session-id']).not.toBe('any');
    expect(sent?.['last-event-id']).toBeUndefined();
  });

  test('answers what is neither a request nor a notification', async () => {
    for (const body of [
      { jsonrpc: '2.0', id: 1, result: {} },
      { jsonrpc: '2.0', id: 1, error: { code: 1, message: 'm' } },
      [],
      [JSON.parse(String(modernRequest('tools/list').body))],
    ]) {
      const { status, json } = await send(rig.gateway.url(), {
        headers: { 'mcp-protocol-version': '2026-07-28' },
        body,
      });
      expect(status).toBe(400);
      expect(json).toMatchObject({ id: null, error: { code: -32600 } });
    }
  });

  test('tells the first fault where there are several', async () => {
    const { json } = await rig.call('ping', {}, { version: '1900-01-01', headers: { 'mcp-method': 'x' } });
    expect(json.error.code).toBe(-32022);
    const envelope = await rig.call(
      'ping',
      {},
      {
        version: '1900-01-01',
        meta: { [`${KEY}clientCapabilities`]: raw('null') },
        headers: { 'mcp-protocol-version': '2026-07-28' },
      },
    );
    expect(envelope.json.error.code).toBe(-32602);
  });
});
