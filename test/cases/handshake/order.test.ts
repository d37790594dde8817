import { describe, expect, test } from 'vitest';
import { connect } from '../../support/clients.js';
import { detailOf } from '../../support/error-detail.js';
import { startGateway, type TestGateway } from '../../support/gateway.js';
import { keeper } from '../../support/keeper.js';
import { type ScriptedBackend, startLegacyBackend, startModernBackend } from '../../support/misbehave.js';
import { type Loose, sleep, until } from '../../support/net.js';
import { LEGACY, legacy, modern, send } from '../../support/raw.js';
import { useVirtualTime } from '../../support/virtual-time.js';

useVirtualTime();

const keep = keeper();
const gatewayTo = (url: string, more: Loose = {}): Promise<TestGateway> =>
  keep(startGateway({ '/mcp': { backend: { url }, ...more } }));

const echo = { name: 'echo', arguments: { a: 1 } };

/**
 * A server that takes nothing on a session until it has answered `notifications/initialized` there, for which it takes
 * its time; whatever comes sooner ends the session, as it does at rmcp.
 */
async function strict(delayMs = 100): Promise<ScriptedBackend & { violations: string[] }> {
  const ready = new Set<Loose>();
  const violations: string[] = [];
  const backend: ScriptedBackend = await keep(
    startLegacyBackend({
      intercept: ({ json, method, headers, res, sendText }) => {
        const id = headers['mcp-session-id'];
        if (id === undefined || method === 'DELETE') return false;
        if (json?.method === 'notifications/initialized') {
          setTimeout(() => {
            ready.add(id);
            res.writeHead(202).end();
          }, delayMs);
          return true;
        }
        if (ready.has(id)) return false;
        violations.push(`${method} ${json?.method}`);
        backend.sessions.delete(String(id));
        sendText('Expected notifications/initialized', 422);
        return true;
      },
    }),
  );
  return { ...backend, violations };
}

describe('a server that wants notifications/initialized first', () => {
  test('gets it first, though the requests of the client overtake that of the client', async () => {
    const backend = await strict();
    backend.on('prompts/list', () => ({ result: { prompts: [] } }));
    const gateway = await gatewayTo(backend.url);
    const session = await legacy(gateway.url(), { initialized: false });
    const listening = session.listen();
    const answers = await Promise.all([
      session.request('tools/list'),
      session.request('prompts/list'),
      session.request('tools/call', echo),
      sleep(100).then(() => session.notify('notifications/initialized')),
    ]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 202]);
    expect(answers[0]?.json.result.tools).toHaveLength(1);
    const stream = await listening;
    expect(stream.status).toBe(200);
    stream.abort();
    expect(backend.violations).toEqual([]);
    // The client's own notification is for the gateway; a second one would be one too many.
    expect(backend.received('notifications/initialized')).toHaveLength(1);
  });

  test('gets it first from modern clients too, with many calls at once', async () => {
    const backend = await strict();
    const gateway = await gatewayTo(backend.url);
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => modern(gateway.url(), 'tools/call', echo)),
    );
    for (const { json } of answers) expect(json.result.structuredContent).toEqual({ a: 1 });
    expect(backend.violations).toEqual([]);
    expect(backend.received('initialize')).toHaveLength(1);
  });

  test('gets it first also on a session that replaces a lost one', async () => {
    const backend = await strict();
    const gateway = await gatewayTo(backend.url);
    const session = await legacy(gateway.url());
    const calls = () => Promise.all(Array.from({ length: 5 }, () => session.request('tools/call', echo)));
    await calls();
    backend.forget();
    for (const { json } of await calls()) expect(json.result.structuredContent).toEqual({ a: 1 });
    expect(backend.received('notifications/initialized')).toHaveLength(2);
  });

  test.each(['v1', 'v2 legacy', 'v2 auto'] as const)('suits a real client (%s)', async (kind) => {
    const backend = await strict();
    const gateway = await gatewayTo(backend.url);
    const client = await keep(connect(kind, gateway.url()));
    expect((await client.callTool('echo', { a: 1 })).structuredContent).toEqual({ a: 1 });
    expect(backend.violations).toEqual([]);
  });
});

test('notifications/initialized is answered with exactly 202, so that clients open their stream', async () => {
  for (const start of [startLegacyBackend, startModernBackend]) {
    const backend = await keep(start());
    const gateway = await gatewayTo(backend.url);
    const session = await legacy(gateway.url());
    expect(session.initialized?.status).toBe(202);
    expect(session.initialized?.text).toBe('');
  }
});

test.each([
  [400, 'Bad Request'],
  [500, 'Internal Server Error'],
])(
  'a server that refuses notifications/initialized (%i) is an error, and its session is ended',
  async (status, text) => {
    const backend = await keep(
      startLegacyBackend({
        on: { 'notifications/initialized': ({ sendText }) => void sendText(text, status) as undefined },
      }),
    );
    const gateway = await gatewayTo(backend.url);
    const answer = await modern(gateway.url(), 'tools/call', echo);
    expect(answer.json.error.data).toEqual({ eragate: 'ERAGATE_HANDSHAKE_REFUSED' });
    expect(detailOf(gateway, answer)).toContain(text);
    await until(() => backend.sessions.size === 0, 'the end of the session');
    expect(backend.received('tools/call')).toEqual([]);
  },
);

test('a server that answers notifications/initialized with 200, 204 or an empty stream is served', async () => {
  const ways: Record<string, (step: Loose) => void> = {
    '200': ({ res }) => res.writeHead(200).end(),
    '204': ({ res }) => res.writeHead(204).end(),
    'JSON null': ({ sendText }) => sendText('null', 200, { 'content-type': 'application/json' }),
    'an empty stream': ({ stream }) => stream().end(),
  };
  for (const [name, answer] of Object.entries(ways)) {
    const backend = await keep(
      startLegacyBackend({ on: { 'notifications/initialized': (step) => void answer(step) as undefined } }),
    );
    const gateway = await gatewayTo(backend.url);
    expect((await modern(gateway.url(), 'tools/call', echo)).json.result?.structuredContent, name).toEqual({
      a: 1,
    });
  }
});

describe('a request of a legacy client before any handshake', () => {
  const METHODS = [
    'tools/list',
    'tools/call',
    'ping',
    'logging/setLevel',
    'resources/read',
    'no/such/method',
  ];

  test.each(METHODS)('(%s) is refused at once, under its id', async (method) => {
    for (const start of [startLegacyBackend, startModernBackend]) {
      const backend = await keep(start());
      const gateway = await gatewayTo(backend.url);
      await until(() => backend.received('server/discover').length > 0, 'the probe');
      const sent = backend.requests.length;
      for (const headers of [{}, { 'mcp-protocol-version': LEGACY }]) {
        const before = Date.now();
        const body = { jsonrpc: '2.0', id: 'early', method, params: echo };
        const { status, json } = await send(gateway.url(), { headers, body });
        expect(status).toBe(400);
        expect(json).toMatchObject({
          id: 'early',
          error: { code: -32000, message: expect.stringMatching(/session/i) },
        });
        expect(Date.now() - before).toBeLessThan(500);
      }
      expect(backend.requests).toHaveLength(sent);
    }
  });

  test('is refused whatever it is: notification, answer, stream, end', async () => {
    const backend = await keep(startLegacyBackend());
    const gateway = await gatewayTo(backend.url);
    const post = (body: unknown) => send(gateway.url(), { body });
    expect((await post({ jsonrpc: '2.0', method: 'notifications/initialized' })).status).toBe(400);
    expect((await post({ jsonrpc: '2.0', id: 1, result: {} })).status).toBe(400);
    expect((await post([{ jsonrpc: '2.0', id: 1, method: 'tools/list' }])).status).toBe(400);
    const get = await send(gateway.url(), { headers: { accept: 'text/event-stream' } });
    expect(get.status).toBe(405);
    expect(get.headers).toHaveProperty('allow');
    expect((await send(gateway.url(), { method: 'DELETE' })).status).toBe(405);
  });
});

test.each([
  ['of no session', undefined],
  ['of a session that is not there', 'gone'],
])(
  'an answer %s is refused under no id: its own is one of the server, and could be one of the client too',
  async (_what, sessionId) => {
    const backend = await keep(startLegacyBackend());
    const gateway = await gatewayTo(backend.url);
    for (const answer of [{ result: {} }, { error: { code: -32603, message: 'm' } }]) {
      const headers = { 'mcp-session-id': sessionId };
      const { status, json } = await send(gateway.url(), {
        headers,
        body: { jsonrpc: '2.0', id: 1, ...answer },
      });
      expect(status).toBe(sessionId === undefined ? 400 : 404);
      expect(json).toMatchObject({ id: null, error: { code: expect.any(Number) } });
    }
  },
);

describe('calls that come while the handshake with the backend takes its time', () => {
  test('wait for it, and share it', async () => {
    const backend = await keep(
      startLegacyBackend({
        on: {
          initialize: async ({ params }) => {
            await sleep(400);
            const serverInfo = { name: 'slow', version: '1' };
            return {
              result: { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo },
            };
          },
        },
      }),
    );
    const gateway = await gatewayTo(backend.url);
    const answers = await Promise.all(
      Array.from({ length: 5 }, (_, i) =>
        modern(gateway.url(), i % 2 === 0 ? 'tools/call' : 'tools/list', echo),
      ),
    );
    for (const { status } of answers) expect(status).toBe(200);
    expect(backend.received('initialize')).toHaveLength(1);
  });

  test('are told when it takes too long, each under its id, and another one is tried by the next', async () => {
    let silent = true;
    const backend = await keep(
      startLegacyBackend({ intercept: ({ json }) => silent && json?.method === 'initialize' }),
    );
    const gateway = await gatewayTo(backend.url, { timeouts: { connect: '300ms', start: '300ms' } });
    const before = Date.now();
    const answers = await Promise.all(
      [1, 2, 3].map((id) => modern(gateway.url(), 'tools/call', echo, { id })),
    );
    for (const [i, { status, json }] of answers.entries()) {
      expect(status).toBe(504);
      expect(json).toMatchObject({ id: i + 1, error: { message: expect.stringContaining('initialize') } });
    }
    expect(Date.now() - before).toBeLessThan(3_000);
    expect(backend.received('initialize')).toHaveLength(1);
    const { initialize } = await legacy(gateway.url());
    expect(initialize.json).toMatchObject({
      id: 0,
      error: { message: expect.stringContaining('initialize') },
    });
    expect(initialize.headers).not.toHaveProperty('mcp-session-id');
    silent = false;
    expect((await modern(gateway.url(), 'tools/list')).status).toBe(200);
  });
});

test('a second initialize on a session begins another one; the first goes on', async () => {
  const backend = await keep(startLegacyBackend());
  const gateway = await gatewayTo(backend.url);
  const first = await legacy(gateway.url());
  const params = { protocolVersion: '2025-03-26', capabilities: {}, clientInfo: { name: 'c', version: '1' } };
  const second = await first.request('initialize', params);
  expect(second.json.result.protocolVersion).toBe('2025-03-26');
  expect(second.headers['mcp-session-id']).not.toBe(first.id);
  expect((await first.request('tools/call', echo)).status).toBe(200);
});
