import { describe, expect, test } from 'vitest';
import { startGateway } from '../../support/gateway.js';
import { keeper } from '../../support/keeper.js';
import { type ScriptedBackend, startLegacyBackend, startModernBackend } from '../../support/misbehave.js';
import { type ReceivedRequest, until } from '../../support/net.js';
import { LEGACY, legacy, MODERN, modern, send } from '../../support/raw.js';

const keep = keeper();

const SECRET = 'leaks-if-seen-upstream';
/** What clients and proxies put on requests, and is for the gateway alone; all else is in headers/what-crosses. */
const PRIVATE = {
  'last-event-id': SECRET,
  'mcp-method': SECRET,
  'mcp-name': SECRET,
  'mcp-param-region': SECRET,
  'accept-encoding': `br, ${SECRET}`,
  cookie: `session=${SECRET}`,
  'proxy-authorization': `Basic ${SECRET}`,
  origin: 'http://localhost:1234',
  'sec-fetch-site': SECRET,
  'content-language': SECRET,
  te: 'trailers',
};
const echo = { name: 'echo', arguments: { a: 1 } };

/** Everything that may stand on a request to a backend. */
const ALLOWED = new Set([
  'accept',
  'accept-encoding',
  'authorization',
  'connection',
  'content-length',
  'content-type',
  'host',
  'mcp-method',
  'mcp-name',
  'mcp-protocol-version',
  'mcp-session-id',
  'traceparent',
  'tracestate',
  'transfer-encoding',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
]);

function expectClean(backend: ScriptedBackend, own: readonly (string | undefined)[]): void {
  expect(backend.requests.length).toBeGreaterThan(1);
  for (const request of backend.requests) {
    const { method, headers, rawHeaders, json } = request;
    const what = `${method} ${json?.method}`;
    expect(
      Object.keys(headers).filter((name) => !ALLOWED.has(name)),
      what,
    ).toEqual([]);
    expect(JSON.stringify(rawHeaders), what).not.toContain(SECRET);
    for (const id of own) if (id !== undefined) expect(JSON.stringify(rawHeaders), what).not.toContain(id);
    expect(headers.host, what).toBe(new URL(backend.url).host);
    expect(headers['accept-encoding'], what).toBe('identity');
    // Each header once.
    const names = rawHeaders.filter((_text, i) => i % 2 === 0).map((name) => name.toLowerCase());
    expect(new Set(names).size, what).toBe(names.length);
  }
}

const ofMethod = (backend: ScriptedBackend, name: string): ReceivedRequest[] =>
  backend.requests.filter(({ method, json }) => method === name || json?.method === name);

describe('of what a client sends beside its message', () => {
  test.each(['legacy', 'modern'])(
    'nothing reaches a legacy backend but what is meant for it (%s client)',
    async (era) => {
      const backend = await keep(startLegacyBackend());
      const gateway = await keep(startGateway({ '/mcp': backend.url }));
      const authorization = 'Bearer t1';
      let id: string | undefined;
      if (era === 'legacy') {
        const { 'mcp-method': _method, 'mcp-name': _name, ...headers } = { ...PRIVATE, authorization };
        const session = await legacy(gateway.url(), {
          headers: { ...headers, 'mcp-session-id': 'stale-session', traceparent: '00-aa-bb-01' },
        });
        expect(session.initialize.status).toBe(200);
        expect(session.id).not.toBe('stale-session');
        id = session.id;
        // An id of another server's would be refused here.
        const stream = await session.listen({ ...headers, 'last-event-id': undefined });
        await session.request('tools/call', echo);
        await until(() => backend.streams.length === 1, 'the stream');
        stream.abort();
        await session.delete();
        await until(() => ofMethod(backend, 'DELETE').length === 1, 'the DELETE');
      } else {
        const { 'mcp-method': _method, 'mcp-name': _name, ...headers } = PRIVATE;
        const options = { headers: { ...headers, authorization, 'mcp-session-id': 'stale-session' } };
        expect((await modern(gateway.url(), 'tools/call', echo, options)).status).toBe(200);
      }
      expectClean(backend, ['stale-session', id]);
      const [initialize] = ofMethod(backend, 'initialize');
      expect(initialize?.headers).not.toHaveProperty('mcp-session-id');
      expect(initialize?.headers).not.toHaveProperty('mcp-protocol-version');
      expect(initialize?.headers.authorization).toBe(authorization);
      for (const name of ['initialize', 'notifications/initialized', 'tools/call', 'GET', 'DELETE']) {
        for (const { headers } of ofMethod(backend, name)) {
          expect(headers).not.toHaveProperty('mcp-method');
          expect(headers).not.toHaveProperty('mcp-name');
        }
      }
    },
  );

  test.each(['legacy', 'modern'])(
    'nothing reaches a modern backend but what is meant for it (%s client)',
    async (era) => {
      const backend = await keep(startModernBackend());
      const gateway = await keep(startGateway({ '/mcp': backend.url }));
      const { 'mcp-method': _method, 'mcp-name': _name, 'mcp-param-region': _region, ...headers } = PRIVATE;
      const stale = { ...headers, 'mcp-session-id': 'stale-session' };
      let id: string | undefined;
      if (era === 'legacy') {
        const session = await legacy(gateway.url(), { headers: stale });
        id = session.id;
        expect((await session.request('tools/call', echo)).status).toBe(200);
      } else expect((await modern(gateway.url(), 'tools/call', echo, { headers: stale })).status).toBe(200);
      expectClean(backend, ['stale-session', id]);
      for (const { headers: sent } of ofMethod(backend, 'tools/call')) {
        expect(sent).not.toHaveProperty('mcp-session-id');
        expect(sent).toMatchObject({
          'mcp-method': 'tools/call',
          'mcp-name': 'echo',
          'mcp-protocol-version': MODERN,
        });
      }
    },
  );

  test('a browser page of an allowed origin does not show its origin to the backend', async () => {
    const backend = await keep(startLegacyBackend());
    const listen = { allowedOrigins: ['https://app.example.com'] };
    const gateway = await keep(startGateway({ '/mcp': backend.url }, { listen }));
    const headers = {
      origin: 'https://app.example.com',
      'sec-fetch-mode': 'cors',
      'sec-fetch-site': 'cross-site',
    };
    const session = await legacy(gateway.url(), { headers });
    expect((await session.request('tools/call', echo)).status).toBe(200);
    expectClean(backend, [session.id]);
  });
});

test('an id that the backend did not issue is no reason for it to refuse the handshake', async () => {
  const backend = await keep(
    startLegacyBackend({
      intercept: ({ headers, json, sendText }) => {
        if (json?.method !== 'initialize' || headers['mcp-session-id'] === undefined) return false;
        sendText('who gave you this id?', 404);
        return true;
      },
    }),
  );
  const gateway = await keep(startGateway({ '/mcp': backend.url }));
  const old = await legacy(gateway.url());
  // A client that begins anew on a connection of old sends the id that it still has.
  for (const id of ['stale', old.id]) {
    const { status, headers, json } = await send(gateway.url(), {
      headers: { 'mcp-session-id': id, 'mcp-protocol-version': LEGACY },
      body: {
        jsonrpc: '2.0',
        id: 1,
        method: 'initialize',
        params: { protocolVersion: LEGACY, capabilities: {}, clientInfo: { name: 'c', version: '1' } },
      },
    });
    expect(status).toBe(200);
    expect(json.result.protocolVersion).toBe(LEGACY);
    expect(headers['mcp-session-id']).not.toBe(id);
  }
  expect((await old.request('tools/call', echo)).status).toBe(200);
});
