import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../../support/gateway.js';
import { fixture, type Peer, startV1, startV2 } from '../../support/peers/index.js';
import { type LegacySession, legacy, modern, send } from '../../support/raw.js';
import { record, type Tap } from '../../support/tap.js';
import { useVirtualTime } from '../../support/virtual-time.js';

useVirtualTime();

/** The exchanges by which MCP is explained, each with a real server of either era behind the gateway. */
const PEERS = [
  ['SDK 1.x', 'legacy', () => startV1()],
  ['SDK 1.x without sessions', 'legacy', () => startV1({ stateless: true })],
  ['SDK 1.x with JSON', 'legacy', () => startV1({ json: true })],
  ['SDK 2.x', 'modern', () => startV2({ legacy: 'reject' })],
  ['SDK 2.x for both eras', 'both', () => startV2()],
] as const;

const META = 'io.modelcontextprotocol/';
const FULL_META = {
  [`${META}protocolVersion`]: '2026-07-28',
  [`${META}clientInfo`]: { name: 'ExampleClient', version: '1.0.0' },
  [`${META}clientCapabilities`]: { elicitation: { form: {} } },
};

describe.each(PEERS)('%s', (_name, era, start) => {
  const recording = record();
  let peer: Peer;
  let back: Tap;
  let gateway: TestGateway;
  let session: LegacySession;
  beforeAll(async () => {
    peer = await start();
    back = await recording.backend(peer.url);
    gateway = await startGateway({ '/mcp': back.url });
    session = await legacy(gateway.url());
  });
  afterAll(async () => {
    await gateway.close();
    await back.close();
    await peer.close();
  });

  test('a modern client asks for the weather', async () => {
    const { json, status } = await modern(
      gateway.url(),
      'tools/call',
      { name: 'get_weather', arguments: { location: 'New York' }, _meta: FULL_META },
      { id: 1, capabilities: { elicitation: { form: {} } } },
    );
    expect(status).toBe(200);
    expect(json).toMatchObject({
      jsonrpc: '2.0',
      id: 1,
      result: {
        resultType: 'complete',
        content: [{ type: 'text', text: '72°F, partly cloudy' }],
        isError: false,
        _meta: { [`${META}serverInfo`]: { name: era === 'legacy' ? 'fixture-v1' : 'fixture-v2' } },
      },
    });
    const call = recording.exchanges.findLast(({ body }) => body?.method === 'tools/call');
    const keys = Object.keys(call?.body.params._meta ?? {}).filter((key) => key.startsWith(META));
    expect(keys.length).toBe(era === 'legacy' ? 0 : 3);
  });

  test.each([
    [
      'PT-1041',
      3,
      {
        content: [{ type: 'text', text: '{"status":"shipped","carrier":"Delhivery","eta":"2026-08-05"}' }],
        structuredContent: { status: 'shipped', carrier: 'Delhivery', eta: '2026-08-05' },
        isError: false,
      },
    ],
    ['PT-9999', 4, { content: [{ type: 'text', text: 'Order PT-9999 was not found.' }], isError: true }],
  ])('a legacy client asks for the order %s', async (order_id, id, expected) => {
    const { json, status } = await session.request(
      'tools/call',
      { name: 'order_status', arguments: { order_id } },
      { id },
    );
    expect(status).toBe(200);
    expect(json).toEqual({ jsonrpc: '2.0', id, result: expected });
  });

  test('a modern client asks for the order, and for one that is not there', async () => {
    const ask = async (order_id: string) =>
      (await modern(gateway.url(), 'tools/call', { name: 'order_status', arguments: { order_id } })).json;
    expect((await ask('PT-1041')).result).toMatchObject({
      resultType: 'complete',
      structuredContent: fixture.ORDERS['PT-1041'],
      isError: false,
    });
    const missing = await ask('PT-9999');
    expect(missing.error).toBeUndefined();
    expect(missing.result).toMatchObject({ resultType: 'complete', isError: true });
  });

  test('a modern client discovers the server', async () => {
    const { json, status } = await modern(gateway.url(), 'server/discover', {}, { id: 'discover-1' });
    expect(status).toBe(200);
    expect(json).toMatchObject({
      id: 'discover-1',
      result: {
        resultType: 'complete',
        supportedVersions: ['2026-07-28'],
        instructions: fixture.INSTRUCTIONS,
        ttlMs: expect.any(Number),
        cacheScope: expect.stringMatching(/^(private|public)$/),
        _meta: { [`${META}serverInfo`]: { name: expect.stringContaining('fixture') } },
      },
    });
    for (const capability of ['tools', 'prompts', 'resources'])
      expect(json.result.capabilities[capability]).toEqual(expect.any(Object));
    expect(json.result).not.toHaveProperty('serverInfo');
    expect(json.result).not.toHaveProperty('protocolVersion');
  });

  test('a request of a version that nobody has is told which there are', async () => {
    const { json, status } = await modern(gateway.url(), 'tools/list', {}, { id: 5, version: '1900-01-01' });
    expect(status).toBe(400);
    expect(json).toMatchObject({
      id: 5,
      error: { code: -32022, data: { supported: ['2026-07-28'], requested: '1900-01-01' } },
    });
  });

  test('a legacy client of 2025-03-26 handshakes', async () => {
    const { initialize, initialized, request } = await legacy(gateway.url(), {
      version: '2025-03-26',
      capabilities: { roots: { listChanged: true }, sampling: {} },
      clientInfo: { name: 'ExampleClient', version: '1.0.0' },
    });
    expect(initialize.status).toBe(200);
    expect(initialize.json).toEqual({
      jsonrpc: '2.0',
      id: 0,
      result: {
        protocolVersion: '2025-03-26',
        capabilities: expect.objectContaining({
          tools: expect.any(Object),
          prompts: expect.any(Object),
          resources: expect.any(Object),
        }),
        serverInfo: expect.objectContaining({ name: expect.stringContaining('fixture') }),
        instructions: fixture.INSTRUCTIONS,
      },
    });
    expect(initialize.headers['mcp-session-id']).toMatch(/^[\x21-\x7e]+$/);
    expect([initialized?.status, initialized?.text]).toEqual([202, '']);
    expect((await request('tools/list', {})).json.result.tools.length).toBeGreaterThan(5);
  });

  test('a legacy client adds two numbers', async () => {
    const params = { name: 'add', arguments: { a: 3, b: 4 } };
    const { json } = await session.request('tools/call', params, { id: 2 });
    expect(json).toEqual({
      jsonrpc: '2.0',
      id: 2,
      result: { content: [{ type: 'text', text: 'The sum of 3 and 4 is 7.' }] },
    });
  });

  test('either client reads the configuration', async () => {
    const params = { uri: 'file:///config.json' };
    const contents = [{ uri: params.uri, mimeType: 'application/json', text: fixture.CONFIG_TEXT }];
    const fromLegacy = (await session.request('resources/read', params)).json.result;
    expect(fromLegacy).toEqual({ contents });
    const fromModern = (await modern(gateway.url(), 'resources/read', params)).json.result;
    expect(fromModern).toMatchObject({ contents, resultType: 'complete', ttlMs: expect.any(Number) });
    expect(['private', 'public']).toContain(fromModern.cacheScope);
  });

  test('either client reads what is not there', async () => {
    const params = { uri: fixture.MISSING_URI };
    const fromModern = await modern(gateway.url(), 'resources/read', params);
    expect(fromModern.json.error).toMatchObject({ code: -32602, data: { uri: params.uri } });
    const fromLegacy = await session.request('resources/read', params);
    expect(fromLegacy.status).toBe(200);
    expect(fromLegacy.json.error).toMatchObject({ code: -32002, data: { uri: params.uri } });
  });

  test('a call in flight does not suffer from a second one of the same id', async () => {
    const first = session.request('tools/call', { name: 'slow', arguments: { ms: 200 } }, { id: 77 });
    const second = await session.request(
      'tools/call',
      { name: 'add', arguments: { a: 1, b: 2 } },
      { id: 77 },
    );
    expect(second.json.id).toBe(77);
    expect(second.json.error?.code ?? -32600).toBe(-32600);
    expect((await first).json).toMatchObject({ id: 77, result: { content: [{ type: 'text' }] } });
    // Free again.
    const third = await session.request('tools/call', { name: 'add', arguments: { a: 1, b: 2 } }, { id: 77 });
    expect(third.json.result).toBeDefined();
  });

  test('words of other protocols are dropped as notifications, and unknown as requests', async () => {
    for (const method of ['$/cancelRequest', '$/progress']) {
      const body = { jsonrpc: '2.0', method, params: {} };
      const headers = { 'mcp-protocol-version': '2026-07-28' };
      expect((await send(gateway.url(), { body, headers })).status).toBe(202);
      expect((await session.notify(method, {})).status).toBe(202);
      const asked = await modern(gateway.url(), method, {}, { id: 8 });
      expect([asked.status, asked.json.error.code, asked.json.id]).toEqual([404, -32601, 8]);
      const inSession = await session.request(method, {}, { id: 9 });
      expect([inSession.status, inSession.json.error.code, inSession.json.id]).toEqual([200, -32601, 9]);
    }
    const initialized = await modern(gateway.url(), 'notifications/initialized', {}, { id: 8 });
    expect([initialized.status, initialized.json.error.code]).toEqual([404, -32601]);
  });

  test('an id of null is refused in either era', async () => {
    const refused = await modern(gateway.url(), 'tools/list', {}, { id: null });
    expect([refused.status, refused.json.error.code]).toEqual([400, -32600]);
    const inSession = await session.request('tools/list', {}, { id: null });
    expect([inSession.status, inSession.json.error.code]).toEqual([400, -32600]);
  });

  test('shows the backend only frames that fit the schema of their revision', () => {
    // What the test itself made up is passed on as it is.
    const own = recording.violations.filter((problem) => !/\$\/|listChanged/.test(problem));
    expect(own).toEqual([]);
  });
});
