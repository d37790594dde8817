import { METHODS } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../../support/gateway.js';
import { type ScriptedBackend, startLegacyBackend, startModernBackend } from '../../support/misbehave.js';
import { CLIENT_INFO, LEGACY, legacy, MODERN, modern, open, send, wire } from '../../support/raw.js';
import { useVirtualTime } from '../../support/virtual-time.js';

useVirtualTime();

const HANDSHAKE = {
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion: LEGACY, capabilities: {}, clientInfo: CLIENT_INFO },
};

describe.each(['legacy', 'modern'] as const)('in front of a %s backend', (era) => {
  let backend: ScriptedBackend;
  let gateway: TestGateway;
  beforeAll(async () => {
    backend = await (era === 'legacy' ? startLegacyBackend : startModernBackend)();
    gateway = await startGateway({ '/mcp': backend.url, '/team/tools': backend.url });
  });
  afterAll(async () => {
    await gateway.close();
    await backend.close();
  });

  describe.each(['/mcp', '/mcp/', '/mcp?x=1', '/mcp/?x=1&y=%20', '/%6dcp', '/team/tools', '/team/tools/'])(
    'a route asked for as %s',
    (path) => {
      test('answers POST of both eras as on its own path', async () => {
        const discovered = await modern(gateway.url(path), 'server/discover');
        expect(discovered.status).toBe(200);
        expect(discovered.json.result.supportedVersions).toEqual([MODERN]);
        const session = await legacy(gateway.url(path));
        expect(session.initialize.status).toBe(200);
        expect((await session.request('tools/list')).json.result.tools).toHaveLength(1);
      });

      test('takes a session from any spelling of its path', async () => {
        const { id } = await legacy(gateway.url(path.startsWith('/team') ? '/team/tools' : '/mcp'));
        const stream = await open(gateway.url(path), {
          headers: { accept: 'text/event-stream', 'mcp-session-id': id },
        });
        expect(stream.status).toBe(200);
        const ended = await send(gateway.url(path), { method: 'DELETE', headers: { 'mcp-session-id': id } });
        expect(ended.status).toBe(200);
        await stream.done;
      });
    },
  );

  test('the query of the client travels on to the path of the backend', () => {
    const urls = backend.requests.map(({ url }) => url);
    expect(new Set(urls)).toEqual(new Set(['/mcp', '/mcp?x=1', '/mcp?x=1&y=%20']));
  });

  const others = METHODS.filter(
    (name) => !['GET', 'POST', 'DELETE', 'OPTIONS', 'CONNECT', 'HEAD'].includes(name),
  );
  test.each(others)('%s is refused with 405 and the methods that there are', async (method) => {
    const head = `${method} /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}`;
    const [answer = '', body = ''] = (await wire(gateway.url(), head)).split('\r\n\r\n');
    expect(answer).toMatch(/^HTTP\/1\.1 405 /);
    expect(answer).toMatch(/^allow: GET, POST, DELETE, OPTIONS$/im);
    expect(JSON.parse(body)).toMatchObject({ jsonrpc: '2.0', id: null, error: { code: -32000 } });
  });

  test('HEAD is refused with 405 and no body', async () => {
    const answer = await send(gateway.url(), { method: 'HEAD' });
    expect(answer.status).toBe(405);
    expect(answer.headers.allow).toContain('POST');
    expect(answer.text).toBe('');
  });

  test('OPTIONS that is no preflight tells the methods', async () => {
    const answer = await send(gateway.url(), { method: 'OPTIONS' });
    expect(answer.status).toBe(204);
    expect(answer.headers.allow).toBe('GET, POST, DELETE, OPTIONS');
    expect(answer.text).toBe('');
  });

  test('CONNECT gets no tunnel', async () => {
    const answer = await wire(gateway.url(), 'CONNECT /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n');
    expect(answer).not.toMatch(/^HTTP\/1\.1 [123]/);
  });

  test('an Upgrade is ignored: the request is answered as HTTP', async () => {
    const head =
      'GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\n\r\n';
    expect(await wire(gateway.url(), head)).toMatch(/^HTTP\/1\.1 200 /);
  });

  test.each(['GET', 'DELETE'])(
    '%s of a modern client is refused with 405, whatever session it names',
    async (method) => {
      const { id } = await legacy(gateway.url());
      for (const session of [undefined, id, 'unknown']) {
        const headers = { 'mcp-protocol-version': MODERN, 'mcp-session-id': session, 'last-event-id': '7' };
        const answer = await send(gateway.url(), { method, headers });
        expect(answer.status).toBe(405);
        expect(answer.headers.allow).toBe('POST');
        expect(answer.headers['mcp-session-id']).toBeUndefined();
      }
    },
  );

  test.each(['GET', 'DELETE'])(
    '%s without a session is refused with 405, with credentials or without',
    async (method) => {
      for (const authorization of [undefined, 'Bearer x']) {
        const headers = { authorization, accept: 'text/event-stream' };
        const answer = await send(gateway.url(), { method, headers });
        expect(answer.status).toBe(405);
        expect(answer.headers.allow).toBe('POST');
        expect(answer.headers['www-authenticate']).toBeUndefined();
        expect(answer.events).toEqual([]);
      }
    },
  );

  test.each(['GET', 'DELETE'])('%s of an unknown session is refused with 404', async (method) => {
    const answer = await send(gateway.url(), { method, headers: { 'mcp-session-id': 'unknown' } });
    expect(answer.status).toBe(404);
    expect(answer.json.error.code).toBe(-32001);
  });

  test('GET and DELETE may name a Content-Type and have no body', async () => {
    const session = await legacy(gateway.url(), { headers: { 'content-type': 'application/json' } });
    const stream = await session.listen();
    expect(stream.status).toBe(200);
    expect((await session.delete()).status).toBe(200);
    expect((await session.delete()).status).toBe(404);
  });

  test('a POST of a handshake to a path that looks like HTTP+SSE is answered, and GET there with no endpoint', async () => {
    const other = await startGateway({ '/sse': backend.url });
    try {
      const answer = await send(other.url(), { body: HANDSHAKE });
      expect(answer.status).toBe(200);
      const get = await send(other.url(), { headers: { accept: 'text/event-stream' } });
      expect(get.status).toBe(405);
    } finally {
      await other.close();
    }
  });

  describe.each([
    '/',
    '/mc',
    '/mcpx',
    '/MCP',
    '/mcp/x',
    '//mcp',
    '/mcp%2f',
    '/team',
    '/favicon.ico',
    '/mcp;x',
  ])('a path of no route, %s,', (path) => {
    test.each(['GET', 'POST', 'DELETE', 'PUT', 'HEAD'])(
      'gets 404 for %s, in the shape of JSON-RPC',
      async (method) => {
        const answer = await send(gateway.url(path), { method });
        expect(answer.status).toBe(404);
        if (method !== 'HEAD') expect(answer.json).toMatchObject({ id: null, error: { code: -32000 } });
      },
    );
  });

  test.each([
    ['POST', 'application/json', '{'],
    ['POST', 'application/json', ''],
    ['POST', 'application/json', '{"__proto__":{}}'],
    ['POST', 'text/plain', 'hello'],
    ['POST', undefined, 'hello'],
    ['POST', 'application/json', `"${'x'.repeat(5_000_000)}"`],
    ['DELETE', 'application/json', ''],
    ['DELETE', 'application/json', '{'],
    ['GET', 'application/json', ''],
  ])(
    'a path of no route gets 404 whatever the body of the request: %s %s %.20s',
    async (method, type, body) => {
      const answer = await send(gateway.url('/nowhere'), { method, headers: { 'content-type': type }, body });
      expect(answer.status).toBe(404);
      expect(answer.json).toMatchObject({
        id: null,
        error: { code: -32000, message: expect.stringContaining('no route') },
      });
    },
  );

  test('is told which path was asked for, without its query, since some clients add to what they are given', async () => {
    const { json } = await send(gateway.url('/mcp/mcp?token=secret'), { method: 'POST' });
    expect(json.error.message).toBe('Not Found: no route of the gateway has the path /mcp/mcp');
    const long = await send(gateway.url(`/${'x'.repeat(5_000)}`), { method: 'POST' });
    expect(long.json.error.message.length).toBeLessThan(300);
  });

  test('a path that cannot be decoded is refused with 400', async () => {
    const answer = await wire(
      gateway.url(),
      'GET /%zz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n',
    );
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(answer).toContain('"jsonrpc":"2.0"');
  });

  test('no answer was ever a redirect', async () => {
    for (const path of ['/mcp', '/mcp/', '/mcp?x=1', '/', '/MCP/']) {
      for (const method of ['GET', 'POST', 'DELETE']) {
        const { status } = await send(gateway.url(path), { method });
        expect(Math.floor(status / 100)).not.toBe(3);
      }
    }
  });

  test('the health check is to be read, and nothing else', async () => {
    expect((await send(gateway.url('/healthz'))).json).toEqual({ status: 'ok' });
    expect((await send(gateway.url('/healthz'), { method: 'POST' })).status).toBe(405);
  });
});
