import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { RequestIds } from '../../src/http/request-id.js';
import { TrustedProxies } from '../../src/http/trusted-proxies.js';
import { startGateway, type TestGateway } from '../support/gateway.js';
import { type ScriptedBackend, startLegacyBackend } from '../support/misbehave.js';
import { until } from '../support/net.js';
import { legacy, modern, open, send, wire } from '../support/raw.js';

describe('trusted proxies', () => {
  test.each([
    [['127.0.0.0/8', '::1'], '127.0.0.1', true],
    [['127.0.0.0/8', '::1'], '127.8.7.6', true],
    [['127.0.0.0/8', '::1'], '::1', true],
    // The form of an IPv4 address on a socket that takes both families.
    [['127.0.0.0/8', '::1'], '::ffff:127.0.0.1', true],
    [['127.0.0.0/8', '::1'], '10.0.0.1', false],
    [['127.0.0.0/8', '::1'], '::2', false],
    [['10.1.2.3'], '10.1.2.3', true],
    [['10.1.2.3'], '10.1.2.4', false],
    [['fd00::/8'], 'fd12::1', true],
    [['fd00::/8'], 'fe80::1', false],
    [['0.0.0.0/0'], '203.0.113.9', true],
    [[], '127.0.0.1', false],
    [['127.0.0.0/8'], undefined, false],
  ])('%j: %s is one: %s', (addresses, address, expected) => {
    const proxies = new TrustedProxies(addresses);
    expect([proxies.includes(address), proxies.includes(address)]).toEqual([expected, expected]);
  });

  test('are told apart from one request to the next', () => {
    const proxies = new TrustedProxies(['10.0.0.0/8']);
    expect(['10.0.0.1', '11.0.0.1', '10.0.0.1'].map((address) => proxies.includes(address))).toEqual([
      true,
      false,
      true,
    ]);
  });
});

describe('the id of a request', () => {
  const ids = new RequestIds(new TrustedProxies(['10.0.0.1']));
  const of = (id: string | undefined, remoteAddress: string | undefined = '10.0.0.1') =>
    ids.of({ headers: id === undefined ? {} : { 'x-request-id': id }, socket: { remoteAddress } });

  test.each(['a', 'f0/~!', 'with a space', '4bf92f3577b34da6a3ce929d0e0e4736', 'x'.repeat(128)])(
    'is taken over from a trusted proxy: %s',
    (id) => expect(of(id)).toBe(id),
  );

  test.each(['', 'x'.repeat(129), 'caf\u00e9', 'a\tb', 'a\u007fb'])(
    'is replaced where it is invalid: %j',
    (id) => {
      expect(of(id)).toMatch(/^[0-9a-f]{10}-[0-9a-z]+$/);
    },
  );

  test.each(['10.0.0.2', '::1', undefined])('is replaced where %s sends it', (address) => {
    expect(ids.of({ headers: { 'x-request-id': 'mine' }, socket: { remoteAddress: address } })).not.toBe(
      'mine',
    );
  });

  test('is another for each request, and in each process', () => {
    const others = new RequestIds(new TrustedProxies([]));
    const made = [of(undefined), of(undefined), ids.create(), others.create(), others.create()];
    expect(new Set(made).size).toBe(made.length);
  });
});

describe('in front of a backend', () => {
  let backend: ScriptedBackend;
  let gateway: TestGateway;
  let distrusting: TestGateway;
  beforeAll(async () => {
    backend = await startLegacyBackend();
    const routes = { '/mcp': { backend: { url: backend.url }, legacySse: true } };
    gateway = await startGateway(routes);
    distrusting = await startGateway(routes, { listen: { trustedProxies: ['10.0.0.0/8'] } });
  });
  afterAll(async () => {
    await gateway.close();
    await distrusting.close();
    await backend.close();
  });

  const logged = async (msg: string | undefined, id: unknown) => {
    const lines = () => gateway.logs.filter((line) => line.msg === msg && line.requestId === id);
    await until(() => lines().length > 0, 'the line');
    return lines();
  };

  test('the client gets the id that it sent, and the line of the exchange has it', async () => {
    const headers = { 'x-request-id': 'of-the-balancer' };
    const response = await modern(gateway.url(), 'tools/list', {}, { headers });
    expect(response.headers['x-request-id']).toBe('of-the-balancer');
    expect(await logged(undefined, 'of-the-balancer')).toMatchObject([{ cell: 'ML', method: 'tools/list' }]);
    expect(await logged('request', 'of-the-balancer')).toMatchObject([
      { httpMethod: 'POST', path: '/mcp', status: 200, complete: true },
    ]);
  });

  test('the client gets an id of the gateway where its own is not trusted', async () => {
    const headers = { 'x-request-id': 'mine' };
    const response = await modern(distrusting.url(), 'tools/list', {}, { headers });
    const id = response.headers['x-request-id'];
    expect(id).toMatch(/^[0-9a-f]{10}-[0-9a-z]+$/);
    expect(distrusting.logs.filter(({ method }) => method === 'tools/list')).toMatchObject([
      { requestId: id },
    ]);
  });

  test('each request of a session has its own, also those in a stream', async () => {
    const session = await legacy(gateway.url());
    const stream = await session.listen();
    const call = await session.request('tools/call', { name: 'echo', arguments: {} });
    const responses = [session.initialize, session.initialized, stream, call];
    const ids = responses.map((response) => response?.headers['x-request-id']);
    expect(new Set(ids).size).toBe(4);
    expect(ids).not.toContain(undefined);
    stream.abort();
    expect(await logged(undefined, ids[0])).toMatchObject([{ method: 'initialize' }]);
    expect(await logged(undefined, ids[3])).toMatchObject([{ method: 'tools/call' }]);
    expect(await logged('request', ids[2])).toMatchObject([{ httpMethod: 'GET', complete: false }]);
  });

  test('a message of HTTP+SSE has that of its POST', async () => {
    const stream = await open(gateway.url('/mcp/sse'), { headers: { accept: 'text/event-stream' } });
    const { data } = await stream.find(({ event }) => event === 'endpoint');
    const params = {
      protocolVersion: '2024-11-05',
      capabilities: {},
      clientInfo: { name: 'c', version: '1' },
    };
    const { headers } = await send(gateway.url(data), {
      body: { jsonrpc: '2.0', id: 1, method: 'initialize', params },
    });
    await stream.find(({ json }) => json?.id === 1);
    expect(await logged(undefined, headers['x-request-id'])).toMatchObject([{ method: 'initialize' }]);
    // The query names the session, which is not for the log.
    expect(await logged('request', headers['x-request-id'])).toMatchObject([{ path: '/mcp/messages' }]);
    stream.abort();
  });

  test('a refused request is logged under its id', async () => {
    const response = await send(gateway.url(), { headers: { origin: 'https://evil.example' }, body: {} });
    expect(response.status).toBe(403);
    expect(await logged('request refused', response.headers['x-request-id'])).toHaveLength(1);
  });

  test('a page may read it', async () => {
    const response = await send(gateway.url(), { headers: { origin: 'http://localhost' }, body: {} });
    expect(response.headers['access-control-expose-headers']).toContain('X-Request-Id');
    expect(response.headers['x-request-id']).toBeDefined();
  });

  test('bytes that are no request have one', async () => {
    expect(await wire(gateway.url(), 'what is this\r\n\r\n')).toMatch(/^X-Request-Id: [0-9a-f]{10}-/m);
  });
});
