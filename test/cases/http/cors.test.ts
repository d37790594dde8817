import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../../support/gateway.js';
import { type ScriptedBackend, startLegacyBackend, startModernBackend } from '../../support/misbehave.js';
import { legacy, MODERN, modern, type RawResponse, send } from '../../support/raw.js';

const ORIGIN = 'https://inspector.example.com';
const EXPOSED = ['Mcp-Session-Id', 'MCP-Protocol-Version', 'WWW-Authenticate'];

function words(value: string | string[] | undefined): string[] {
  return String(value ?? '')
    .split(',')
    .map((word) => word.trim())
    .filter((word) => word !== '');
}

/** The page may read the answer, and the headers that it needs. */
function expectReadable(answer: RawResponse, origin = ORIGIN): void {
  expect(answer.headers['access-control-allow-origin']).toBe(origin);
  expect(words(answer.headers['access-control-expose-headers'])).toEqual(expect.arrayContaining(EXPOSED));
  expect(words(answer.headers['vary'])).toContain('Origin');
  // Two headers of the name, or two values in one, are refused by browsers.
  const names = answer.rawHeaders.filter((_, index) => index % 2 === 0).map((name) => name.toLowerCase());
  expect(names.filter((name) => name === 'access-control-allow-origin')).toHaveLength(1);
}

describe.each(['legacy', 'modern'] as const)('in front of a %s backend', (era) => {
  let backend: ScriptedBackend;
  let gateway: TestGateway;
  beforeAll(async () => {
    backend = await (era === 'legacy' ? startLegacyBackend : startModernBackend)();
    gateway = await startGateway(
      { '/mcp': backend.url },
      { listen: { allowedOrigins: [ORIGIN] }, limits: { body: 2_000 } },
    );
  });
  afterAll(async () => {
    await gateway.close();
    await backend.close();
  });
  beforeEach(() => backend.on('tools/list', undefined));

  describe.each(['/mcp', '/mcp/', '/mcp?x=1', '/healthz', '/nothing'])('the preflight of %s', (path) => {
    const preflight = (asked: Record<string, string> = {}) =>
      send(gateway.url(path), {
        method: 'OPTIONS',
        headers: { origin: ORIGIN, 'access-control-request-method': 'POST', ...asked },
      });

    test('allows the methods and every header that MCP clients send', async () => {
      const headers =
        'authorization, content-type, mcp-protocol-version, mcp-session-id, mcp-method, mcp-name, mcp-param-region, last-event-id, accept, traceparent';
      const answer = await preflight({ 'access-control-request-headers': headers });
      expect(answer.status).toBe(204);
      expect(answer.headers['access-control-allow-origin']).toBe(ORIGIN);
      expect(words(answer.headers['access-control-allow-headers'])).toEqual(words(headers));
      const methods = words(answer.headers['access-control-allow-methods']);
      expect(methods).toEqual(expect.arrayContaining(['GET', 'POST', 'DELETE', 'OPTIONS']));
      expect(Number(answer.headers['access-control-max-age'])).toBeGreaterThan(0);
    });

    test('allows parameter headers of any name', async () => {
      const asked = 'mcp-param-region,Mcp-Param-Any_Thing,mcp-param-x.y';
      const answer = await preflight({ 'access-control-request-headers': asked });
      expect(words(answer.headers['access-control-allow-headers'])).toEqual(words(asked));
    });

    test('needs no credentials and asks no backend', async () => {
      const before = backend.requests.length;
      expect((await preflight()).status).toBe(204);
      expect(backend.requests).toHaveLength(before);
    });
  });

  test.each(['GET', 'POST', 'DELETE'])('the preflight of %s is answered', async (method) => {
    const headers = { origin: ORIGIN, 'access-control-request-method': method };
    expect((await send(gateway.url(), { method: 'OPTIONS', headers })).status).toBe(204);
  });

  test('pages of this machine may read answers without being allowed', async () => {
    const origin = 'http://localhost:6274';
    expectReadable(await modern(gateway.url(), 'tools/list', {}, { headers: { origin } }), origin);
  });

  const real: Record<string, [status: number, ask: () => Promise<RawResponse>]> = {
    'a result': [200, () => modern(gateway.url(), 'tools/list', {}, { headers: { origin: ORIGIN } })],
    'a stream': [
      200,
      () =>
        modern(gateway.url(), 'tools/list', {}, { headers: { origin: ORIGIN, accept: 'text/event-stream' } }),
    ],
    'a refused envelope': [
      400,
      () => modern(gateway.url(), 'tools/list', {}, { headers: { origin: ORIGIN }, version: '1900-01-01' }),
    ],
    'an unknown method': [
      404,
      () => modern(gateway.url(), 'resources/subscribe', {}, { headers: { origin: ORIGIN } }),
    ],
    'an unknown session': [
      404,
      () =>
        send(gateway.url(), {
          headers: { origin: ORIGIN, 'mcp-session-id': 'x' },
          body: { jsonrpc: '2.0', id: 1, method: 'ping' },
        }),
    ],
    'an unknown path': [404, () => send(gateway.url('/nothing'), { headers: { origin: ORIGIN } })],
    'a wrong method': [405, () => send(gateway.url(), { method: 'PUT', headers: { origin: ORIGIN } })],
    'a GET of the modern era': [
      405,
      () => send(gateway.url(), { headers: { origin: ORIGIN, 'mcp-protocol-version': MODERN } }),
    ],
    'a body that is too large': [
      413,
      () => modern(gateway.url(), 'tools/list', { pad: 'x'.repeat(3_000) }, { headers: { origin: ORIGIN } }),
    ],
    'a wrong type': [
      415,
      () =>
        modern(
          gateway.url(),
          'tools/list',
          {},
          { headers: { origin: ORIGIN, 'content-type': 'text/plain' } },
        ),
    ],
    'a body that is not JSON': [400, () => send(gateway.url(), { headers: { origin: ORIGIN }, body: '{' })],
    'the health check': [200, () => send(gateway.url('/healthz'), { headers: { origin: ORIGIN } })],
  };
  test.each(Object.keys(real))('%s can be read by an allowed page', async (name) => {
    const [status, ask] = real[name] as (typeof real)[string];
    const answer = await ask();
    expect(answer.status).toBe(status);
    expectReadable(answer);
  });

  test.each([401, 403, 429])('a %i of the backend can be read, with its challenge', async (status) => {
    backend.on('tools/list', ({ sendText }) => {
      sendText('denied', status, {
        'www-authenticate': 'Bearer error="invalid_token"',
        'retry-after': '7',
        // The backend's own idea of CORS.
        'access-control-allow-origin': '*',
        'access-control-expose-headers': 'X-Mine',
        'access-control-allow-credentials': 'true',
      });
      return undefined;
    });
    const answer = await modern(gateway.url(), 'tools/list', {}, { headers: { origin: ORIGIN } });
    expect(answer.status).toBe(status);
    expect(answer.headers['www-authenticate']).toBe('Bearer error="invalid_token"');
    expectReadable(answer);
    expect(words(answer.headers['access-control-expose-headers'])).not.toContain('X-Mine');
    expect(answer.headers['access-control-allow-credentials']).toBeUndefined();
  });

  test('a session of a page: its id, its stream and its end can all be read', async () => {
    const session = await legacy(gateway.url(), { headers: { origin: ORIGIN } });
    expectReadable(session.initialize);
    expect(session.id).toBeDefined();
    expectReadable(session.initialized as RawResponse);
    expectReadable(await session.request('tools/list'));
    const stream = await session.listen();
    expect(stream.headers['access-control-allow-origin']).toBe(ORIGIN);
    expectReadable(await session.delete());
  });

  test('what is refused on account of its Host can be read by the page that is allowed', async () => {
    const answer = await send(gateway.url(), { headers: { origin: ORIGIN, host: 'elsewhere.example.com' } });
    expect(answer.status).toBe(403);
    expectReadable(answer);
  });

  test('a client that is no page gets no headers for pages', async () => {
    const answer = await modern(gateway.url(), 'tools/list');
    expect(Object.keys(answer.headers).filter((name) => name.startsWith('access-control'))).toEqual([]);
  });

  test('a page that is not allowed can read nothing', async () => {
    const answer = await modern(
      gateway.url(),
      'tools/list',
      {},
      { headers: { origin: 'https://other.com' } },
    );
    expect(answer.status).toBe(403);
    expect(answer.headers['access-control-allow-origin']).toBeUndefined();
  });
});
