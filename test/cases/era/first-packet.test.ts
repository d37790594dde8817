import { Client } from 'undici';
import { describe, expect, test } from 'vitest';
import { connectV2 } from '../../support/clients.js';
import { startGateway } from '../../support/gateway.js';
import { keeper } from '../../support/keeper.js';
import { startLegacyBackend, startModernBackend } from '../../support/misbehave.js';
import { until } from '../../support/net.js';
import { startV1, startV2 } from '../../support/peers/index.js';
import { LEGACY, legacy, MODERN, modern, modernRequest } from '../../support/raw.js';
import { useVirtualTime } from '../../support/virtual-time.js';

useVirtualTime();

const keep = keeper();

const BACKENDS = {
  legacy: () => startLegacyBackend({ instructions: 'Read the manual.' }),
  modern: () => startModernBackend({ instructions: 'Read the manual.' }),
};

describe.each(Object.entries(BACKENDS))(
  'server/discover as the very first packet, with a %s backend',
  (_era, start) => {
    test('is answered as by a modern server, and counted as such', async () => {
      const backend = await keep(start());
      const gateway = await keep(startGateway({ '/mcp': backend.url }));
      const { status, headers, json } = await modern(
        gateway.url(),
        'server/discover',
        {},
        { id: 'discover-1' },
      );
      expect(status).toBe(200);
      expect(headers).not.toHaveProperty('mcp-session-id');
      expect(json.id).toBe('discover-1');
      expect(json.result).toMatchObject({
        resultType: 'complete',
        supportedVersions: expect.arrayContaining([MODERN]),
        capabilities: { tools: {} },
        instructions: 'Read the manual.',
        cacheScope: 'private',
        ttlMs: expect.any(Number),
        _meta: { 'io.modelcontextprotocol/serverInfo': { name: expect.stringContaining('scripted') } },
      });
      expect(json.result.ttlMs).toBeGreaterThanOrEqual(0);
      const line = await until(
        () => gateway.logs.find(({ method }) => method === 'server/discover'),
        'the log line',
      );
      expect(line.cell[0]).toBe('M');
    });

    test('leaves nothing modern on the connection: the handshake works on it, and after it a plain request', async () => {
      const backend = await keep(start());
      const gateway = await keep(startGateway({ '/mcp': backend.url }));
      const client = new Client(gateway.origin, { pipelining: 1 });
      await keep({ close: () => client.close() });
      const post = async (body: unknown, more: Record<string, string> = {}) => {
        const headers = {
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          ...more,
        };
        const sent = { path: '/mcp', method: 'POST' as const, headers, body: JSON.stringify(body) };
        const answer = await client.request(sent);
        const text = await answer.body.text();
        return {
          status: answer.statusCode,
          headers: answer.headers,
          json: text === '' ? undefined : JSON.parse(text),
        };
      };
      const probe = modernRequest('server/discover');
      const probed = await post(JSON.parse(String(probe.body)), probe.headers as Record<string, string>);
      expect(probed.status).toBe(200);
      // One that is refused leaves nothing either.
      const refused = await post({ jsonrpc: '2.0', id: 'p', method: 'server/discover', params: {} });
      expect(refused).toMatchObject({ status: 400, json: { id: 'p' } });

      const initialized = await post({
        jsonrpc: '2.0',
        id: 0,
        method: 'initialize',
        params: { protocolVersion: LEGACY, capabilities: {}, clientInfo: { name: 'c', version: '1' } },
      });
      expect(initialized.json.result.protocolVersion).toBe(LEGACY);
      const session = { 'mcp-session-id': String(initialized.headers['mcp-session-id']) };
      expect(await post({ jsonrpc: '2.0', method: 'notifications/initialized' }, session)).toMatchObject({
        status: 202,
      });
      const listed = await post({ jsonrpc: '2.0', id: 1, method: 'tools/list' }, session);
      expect(listed.json.result.tools).toHaveLength(1);
      // And an era is a matter of the message, also from one client on one connection.
      const again = await post(JSON.parse(String(probe.body)), probe.headers as Record<string, string>);
      expect(again.json.result.supportedVersions).toContain(MODERN);
    });
  },
);

test('a modern call as the first and only packet opens a session with a server that demands one', async () => {
  const backend = await keep(startLegacyBackend());
  const gateway = await keep(startGateway({ '/mcp': backend.url }));
  const params = { name: 'echo', arguments: { city: 'Łódź' } };
  const { status, headers, json } = await modern(gateway.url(), 'tools/call', params, { id: 7 });
  expect(status).toBe(200);
  expect(headers).not.toHaveProperty('mcp-session-id');
  expect(json).toMatchObject({
    id: 7,
    result: { resultType: 'complete', structuredContent: { city: 'Łódź' } },
  });

  const posts = backend.requests.filter(({ method }) => method === 'POST');
  const afterProbe = posts.filter(({ json }) => json.method !== 'server/discover');
  expect(afterProbe.map(({ json }) => json.method)).toEqual([
    'initialize',
    'notifications/initialized',
    'tools/call',
  ]);
  const [session] = backend.sessions;
  expect(afterProbe.map((request) => request.headers['mcp-session-id'])).toEqual([
    undefined,
    session,
    session,
  ]);
  expect(afterProbe[2]?.json.params).toEqual(params);

  // The next one finds the session open.
  await modern(gateway.url(), 'tools/call', params);
  expect(backend.received('initialize')).toHaveLength(1);
  expect(backend.received('tools/call').at(-1)?.headers['mcp-session-id']).toBe(session);
});

describe('routes to servers of different eras on one origin', () => {
  test('answer the probe alike, and each serves clients of both eras', async () => {
    const legacyPeer = await keep(startV1());
    const modernPeer = await keep(startV2({ legacy: 'reject' }));
    const bothPeer = await keep(startV2());
    const gateway = await keep(
      startGateway({
        '/pinned': { backend: { url: legacyPeer.url, era: 'legacy' } },
        '/legacy': legacyPeer.url,
        '/modern': modernPeer.url,
        '/both': bothPeer.url,
      }),
    );
    const routes = ['/pinned', '/legacy', '/modern', '/both'];
    for (const path of routes) {
      const { status, json } = await modern(gateway.url(path), 'server/discover');
      expect(status, path).toBe(200);
      expect(json.result.supportedVersions, path).toEqual([MODERN]);
      const session = await legacy(gateway.url(path));
      expect(session.initialize.json.result.protocolVersion, path).toBe(LEGACY);
    }
    for (const path of routes) {
      const client = await keep(connectV2(gateway.url(path), 'auto'));
      expect(client.era, path).toBe('modern');
      expect((await client.listTools()).length, path).toBeGreaterThan(0);
    }
  });
});

describe('while the backend cannot be reached', () => {
  test('the probe is put off, in no way that could be taken for the older revisions', async () => {
    const backend = await keep(startLegacyBackend());
    await backend.stop();
    const gateway = await keep(startGateway({ '/mcp': backend.url }));
    for (let i = 0; i < 2; i++) {
      const { status, headers, json } = await modern(gateway.url(), 'server/discover', {}, { id: i });
      expect(status).toBe(503);
      expect(headers['retry-after']).toMatch(/^\d+$/);
      expect(json).toMatchObject({
        id: i,
        error: { message: expect.stringContaining('Cannot reach the server behind route') },
      });
    }
    await expect(connectV2(gateway.url(), 'auto')).rejects.toThrow();

    // Nothing was concluded from it.
    await backend.start();
    expect((await modern(gateway.url(), 'server/discover')).status).toBe(200);
    const client = await keep(connectV2(gateway.url(), 'auto'));
    expect(client.era).toBe('modern');
    expect(await client.listTools()).toHaveLength(1);
  });

  test('the probe is put off where the backend takes connections and says nothing', async () => {
    const backend = await keep(startLegacyBackend({ intercept: () => true }));
    const timeouts = { probe: '200ms', connect: '300ms', start: '300ms' };
    const gateway = await keep(startGateway({ '/mcp': { backend: { url: backend.url }, timeouts } }));
    const { status, headers } = await modern(gateway.url(), 'server/discover');
    expect(status).toBe(503);
    expect(headers).toHaveProperty('retry-after');
  });

  test('a client that has its answer already gets the same again', async () => {
    const backend = await keep(startLegacyBackend());
    const gateway = await keep(
      startGateway({ '/mcp': { backend: { url: backend.url }, sessions: { idle: '100ms' } } }),
    );
    const before = await modern(gateway.url(), 'server/discover', {}, { id: 1 });
    await backend.stop();
    await new Promise((resolve) => setTimeout(resolve, 400));
    const after = await modern(gateway.url(), 'server/discover', {}, { id: 1 });
    expect(after.json).toEqual(before.json);
  });

  test('a legacy client hears of it in its own way', async () => {
    const backend = await keep(startModernBackend());
    await backend.stop();
    const gateway = await keep(startGateway({ '/mcp': backend.url }));
    const { initialize } = await legacy(gateway.url());
    expect(initialize.status).toBe(502);
    expect(initialize.headers).not.toHaveProperty('mcp-session-id');
    expect(initialize.json).toMatchObject({
      id: 0,
      error: { message: expect.stringContaining('Cannot reach the server behind route') },
    });
    await backend.start();
    const session = await legacy(gateway.url());
    expect((await session.request('tools/list')).json.result.tools).toHaveLength(1);
  });
});
