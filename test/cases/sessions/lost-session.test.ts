import { describe, expect, test } from 'vitest';
import { type ClientKind, connect } from '../../support/clients.js';
import { detailOf } from '../../support/error-detail.js';
import { startGateway, type TestGateway } from '../../support/gateway.js';
import { keeper } from '../../support/keeper.js';
import { type BackendExchange, type ScriptedBackend, startLegacyBackend } from '../../support/misbehave.js';
import { type Loose, until } from '../../support/net.js';
import { startV1 } from '../../support/peers/index.js';
import { legacy, modern, type RawResponse } from '../../support/raw.js';
import { useVirtualTime } from '../../support/virtual-time.js';

useVirtualTime();

const keep = keeper();

const SEAL_KEY = Buffer.alloc(32, 7).toString('base64');
const echo = { name: 'echo', arguments: { a: 1 } };
const handshakes = (backend: ScriptedBackend) =>
  backend.received('initialize').map(({ json }) => json.params);
const posts = (backend: ScriptedBackend) =>
  backend.requests
    .filter(({ method, json }) => method === 'POST' && json?.method !== 'server/discover')
    .map(({ json }) => json.method);

type Call = () => Promise<RawResponse>;

/** A client of each era that has made a call already, on a session of its own. */
const CLIENTS: Record<string, (gateway: TestGateway) => Promise<Call>> = {
  legacy: async (gateway) => {
    const capabilities = { roots: { listChanged: true }, experimental: { x: {} } };
    const session = await legacy(gateway.url(), { version: '2025-06-18', capabilities });
    const call = () => session.request('tools/call', echo);
    await call();
    return call;
  },
  modern: async (gateway) => {
    const call = () => modern(gateway.url(), 'tools/call', echo);
    await call();
    return call;
  },
};

describe.each(Object.entries(CLIENTS))('a %s client whose backend forgot its session', (_era, begin) => {
  test('does not notice: the session is opened again, once, as it was, and the refused call is sent on it', async () => {
    const backend = await keep(startLegacyBackend());
    const gateway = await keep(startGateway({ '/mcp': backend.url }));
    const call = await begin(gateway);
    const before = posts(backend).length;
    const [lost] = backend.sessions;
    backend.forget();
    expect((await call()).json.result.structuredContent).toEqual({ a: 1 });
    expect(posts(backend).slice(before)).toEqual([
      'tools/call',
      'initialize',
      'notifications/initialized',
      'tools/call',
    ]);
    const [first, second] = handshakes(backend);
    expect(second).toEqual(first);
    expect(backend.received('initialize')[1]?.headers).not.toHaveProperty('mcp-session-id');
    expect(backend.received('tools/call').at(-1)?.headers['mcp-session-id']).not.toBe(lost);
    // A session that is not known need not be ended.
    expect(backend.requests.filter(({ method }) => method === 'DELETE')).toEqual([]);
    expect((await call()).json.result.structuredContent).toEqual({ a: 1 });
    expect(handshakes(backend)).toHaveLength(2);
  });

  test('makes one new session with many calls at once', async () => {
    const backend = await keep(startLegacyBackend());
    const gateway = await keep(startGateway({ '/mcp': backend.url }));
    const call = await begin(gateway);
    for (let round = 0; round < 3; round++) {
      backend.forget();
      const answers = await Promise.all(Array.from({ length: 20 }, call));
      for (const { json } of answers) expect(json.result.structuredContent).toEqual({ a: 1 });
      expect(handshakes(backend)).toHaveLength(2 + round);
    }
  });

  test('is served again after the backend was away', async () => {
    const backend = await keep(startLegacyBackend());
    const gateway = await keep(startGateway({ '/mcp': backend.url }));
    const call = await begin(gateway);
    await backend.stop();
    backend.forget();
    const { status, json } = await call();
    expect(status).toBe(502);
    expect(json.error.message).toContain('Cannot reach the server behind route');
    await backend.start();
    expect((await call()).json.result.structuredContent).toEqual({ a: 1 });
  });

  test('hears of a backend that loses every session at once, and does not set it going in a loop', async () => {
    const backend = await keep(startLegacyBackend());
    const gateway = await keep(startGateway({ '/mcp': backend.url }));
    const call = await begin(gateway);
    backend.on('tools/call', ({ sendJson, id }) => {
      sendJson({ jsonrpc: '2.0', id, error: { code: -32001, message: 'Session not found' } }, 404);
      return undefined;
    });
    const before = posts(backend).length;
    const refused = await call();
    expect(refused.status).toBe(502);
    expect(refused.json.error.code).toBe(-32603);
    expect(refused.json.error.message).toContain('does not know the session that it has just opened');
    expect(detailOf(gateway, refused)).toContain('HTTP 404: Session not found');
    expect(posts(backend).length - before).toBe(4);
    backend.on('tools/call', undefined);
    expect((await call()).json.result.structuredContent).toEqual({ a: 1 });
  });

  test.each([409, 410, 422])(
    'hears the words of a %i that means the request, and keeps its new session',
    async (status) => {
      const backend = await keep(startLegacyBackend());
      const gateway = await keep(startGateway({ '/mcp': backend.url }));
      const call = await begin(gateway);
      await call();
      const words = '{"detail":[{"loc":["body","name"],"msg":"no such name"}]}';
      backend.on('tools/call', ({ sendJson }) => void sendJson(words, status) as undefined);
      const refused = await call();
      expect(refused.status).toBe(502);
      expect(refused.json.error.message).toContain(`answered HTTP ${status}`);
      expect(detailOf(gateway, refused)).toContain(`answered HTTP ${status}: ${words}`);
      const opened = handshakes(backend).length;
      backend.on('tools/call', undefined);
      expect((await call()).json.result.structuredContent).toEqual({ a: 1 });
      expect(handshakes(backend)).toHaveLength(opened);
    },
  );
});

/** Answers to a request on a session that has gone. */
type Refusal = (exchange: BackendExchange) => void;
const rpc =
  (status: number, code: number, message: string, data?: Loose): Refusal =>
  ({ sendJson, json }) =>
    sendJson({ jsonrpc: '2.0', id: json.id, error: { code, message, data } }, status);
const text =
  (status: number, body = '', type = 'text/plain'): Refusal =>
  ({ sendText }) =>
    sendText(body, status, { 'content-type': type });

const LOST: Record<string, Refusal> = {
  '404 in plain text': text(404, 'session not found'),
  '404 without a body': text(404),
  '404 in HTML': text(404, '<h1>Not Found</h1>', 'text/html'),
  '404 -32001': rpc(404, -32001, 'Session not found'),
  '404 -32600': rpc(404, -32600, 'Session not found'),
  '404 -32600, terminated': rpc(404, -32600, 'Not Found: Session has been terminated'),
  '404 with a code of the server': rpc(404, 404, 'Not Found'),
  '404 with the id null': ({ sendJson }) =>
    sendJson({ jsonrpc: '2.0', id: null, error: { code: -32001, message: 'Session not found' } }, 404),
  '400 -32000': rpc(400, -32000, 'Bad Request: No valid session ID provided'),
  '400 -32000, not initialized': rpc(400, -32000, 'Bad Request: Server not initialized'),
  '400 -32600': rpc(400, -32600, 'Bad Request: Invalid session'),
  '400 in plain text': text(400, 'Invalid or missing Mcp-Session-Id'),
  '400 in JSON of its own': text(400, '{"error":"Unknown session"}', 'application/json'),
  '409 without a body': text(409),
  '409 in words': rpc(409, -32000, 'Session expired'),
  '410': text(410, 'Gone'),
  '422 in plain text': text(422, 'Session not found'),
  '500 that wraps another error': rpc(500, -32603, 'Internal error', {
    detail: 'No valid session ID provided',
  }),
  '500 in words': rpc(500, -32603, 'session 1234 does not exist'),
  '503 that says so': text(503, '{"error":"Session expired"}', 'application/json'),
  '503 that says so in JSON-RPC': rpc(503, -32000, 'Your session is no longer valid'),
  '200 with an error': rpc(200, -32001, 'Session not found'),
  '200 with an error in other words': rpc(200, -32000, 'Error: session expired.'),
  '200 with an error that names the session': (exchange) =>
    rpc(200, -32000, `No transport: session ${exchange.headers['mcp-session-id']} is unknown here`)(exchange),
};

describe('a backend that tells of a lost session with', () => {
  test.each(Object.entries(LOST))('%s is understood', async (_name, refusal) => {
    const lost = new Set<Loose>();
    const backend = await keep(
      startLegacyBackend({
        intercept: (exchange) => {
          if (exchange.method !== 'POST' || !lost.has(exchange.headers['mcp-session-id'])) return false;
          refusal(exchange);
          return true;
        },
      }),
    );
    const gateway = await keep(startGateway({ '/mcp': backend.url }));
    for (const begin of Object.values(CLIENTS)) {
      const call = await begin(gateway);
      const before = handshakes(backend).length;
      for (const id of backend.sessions) lost.add(id);
      const { json } = await call();
      expect(json.result?.structuredContent, JSON.stringify(json)).toEqual({ a: 1 });
      expect(handshakes(backend).length - before).toBe(1);
    }
  });
});

const NOT_LOST: Record<string, Refusal> = {
  '503 alone': text(503, 'Service Unavailable'),
  '500 alone': rpc(500, -32603, 'Internal error'),
  '502': text(502, 'Bad Gateway'),
  '429 that speaks of sessions': text(429, 'Too many sessions'),
  '400 about the request': rpc(400, -32602, 'Invalid params: session_id must be a string'),
  '404 about the method': rpc(404, -32601, 'Method not found'),
  '404 about a resource': rpc(404, -32002, 'Resource not found'),
  '200 with an error about something else': rpc(200, -32000, 'Order PT-9999 not found'),
  '200 with an error of a tool with sessions of its own': rpc(
    200,
    -32000,
    'Browser session "b-17" not found; call open_browser first',
  ),
  '200 with invalid params': rpc(200, -32602, 'Invalid session'),
  '200 with a result that says so': ({ sendJson, json }) =>
    sendJson({
      jsonrpc: '2.0',
      id: json.id,
      result: { isError: true, content: [{ type: 'text', text: 'Session not found' }] },
    }),
};

describe('a backend that answers with', () => {
  test.each(Object.entries(NOT_LOST))(
    '%s keeps its session, and the call is not sent again',
    async (_name, answer) => {
      let failing = false;
      const backend = await keep(
        startLegacyBackend({
          intercept: (exchange) => {
            if (!failing || exchange.json?.method !== 'tools/call') return false;
            answer(exchange);
            return true;
          },
        }),
      );
      const gateway = await keep(startGateway({ '/mcp': backend.url }));
      for (const begin of Object.values(CLIENTS)) {
        failing = false;
        const call = await begin(gateway);
        const before = {
          handshakes: handshakes(backend).length,
          calls: backend.received('tools/call').length,
        };
        failing = true;
        await call();
        expect(backend.received('tools/call').length - before.calls).toBe(1);
        failing = false;
        await call();
        expect(handshakes(backend)).toHaveLength(before.handshakes);
      }
    },
  );
});

describe('a route that names further answers that mean a lost session', () => {
  const lost = [
    { status: 418 },
    { status: 503, message: 'Log In Again' },
    { status: 200, message: 'kein Zugang' },
  ];

  test.each<[string, Refusal, boolean]>([
    ['the status alone', text(418, 'short and stout'), true],
    ['status and text', text(503, 'please log in again'), true],
    ['status and text in JSON-RPC', rpc(503, -32603, 'Internal error', 'please log in again'), true],
    ['the status with another text', text(503, 'Service Unavailable'), false],
    ['an error at 200 with the text', rpc(200, -32000, 'Kein Zugang mehr'), true],
    ['what is known anyway', text(404), true],
  ])('goes by them: %s', async (_name, refusal, isLost) => {
    let failing = false;
    const backend = await keep(
      startLegacyBackend({
        intercept: (exchange) => {
          if (!failing || exchange.json?.method !== 'tools/call') return false;
          failing = false;
          refusal(exchange);
          return true;
        },
      }),
    );
    const gateway = await keep(
      startGateway({ '/mcp': { backend: { url: backend.url }, sessions: { lost } } }),
    );
    for (const begin of Object.values(CLIENTS)) {
      const call = await begin(gateway);
      const before = handshakes(backend).length;
      failing = true;
      const { json } = await call();
      expect('result' in json).toBe(isLost);
      expect(handshakes(backend).length - before).toBe(isLost ? 1 : 0);
    }
  });
});

test('one lost session is healed without touching those with other backends', async () => {
  const x = await keep(startLegacyBackend());
  const y = await keep(startLegacyBackend());
  const gateway = await keep(startGateway({ '/x': x.url, '/y': y.url }));
  const onX = await legacy(gateway.url('/x'));
  const onY = await legacy(gateway.url('/y'));
  const callX = () => onX.request('tools/call', echo);
  const callY = () => onY.request('tools/call', echo);
  await Promise.all([callX(), callY()]);
  x.forget();
  const answers = await Promise.all([callX(), callY(), callX(), callY()]);
  for (const { status, json } of answers) {
    expect(status).toBe(200);
    expect(json.result.structuredContent).toEqual({ a: 1 });
  }
  expect(handshakes(x)).toHaveLength(2);
  expect(handshakes(y)).toHaveLength(1);
});

test('the stream of a client outlives the session of its backend', async () => {
  const backend = await keep(startLegacyBackend());
  const gateway = await keep(startGateway({ '/mcp': backend.url }));
  const session = await legacy(gateway.url());
  const stream = await session.listen();
  await until(() => backend.streams.length === 1, 'the stream to the backend');
  backend.forget();
  await session.request('tools/call', echo);
  const opened = await until(() => backend.streams[0], 'the stream on the new session');
  opened.stream.event({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' });
  expect((await stream.next()).json.method).toBe('notifications/tools/list_changed');
  expect(stream.ended).toBe(false);
  stream.abort();
});

describe('after a restart of the gateway', () => {
  test('without a key of its own its sessions are unknown: 404 under the id of the request, at once', async () => {
    const backend = await keep(startLegacyBackend());
    const gateway = await keep(startGateway({ '/mcp': backend.url }));
    const session = await legacy(gateway.url());
    await gateway.restart();
    const before = Date.now();
    const { status, json } = await session.request('tools/call', echo, { id: 'again' });
    expect(status).toBe(404);
    expect(json).toMatchObject({ id: 'again', error: { code: -32001, message: 'Session not found' } });
    expect(Date.now() - before).toBeLessThan(1_000);
    expect((await session.delete()).status).toBe(404);
    const stream = await session.listen();
    expect(stream.status).toBe(404);
  });

  test('with a key they go on', async () => {
    const backend = await keep(startLegacyBackend());
    const gateway = await keep(startGateway({ '/mcp': backend.url }, { sealKeys: [SEAL_KEY] }));
    const session = await legacy(gateway.url(), { version: '2025-03-26', capabilities: { roots: {} } });
    await gateway.restart();
    expect((await session.request('tools/call', echo)).json.result.structuredContent).toEqual({ a: 1 });
    expect(handshakes(backend)[1]).toEqual(handshakes(backend)[0]);
  });
});

test.each(['v1', 'v2 legacy', 'v2 pin'] as ClientKind[])(
  'a real client (%s) does not notice that a real server forgot it',
  async (kind) => {
    for (const unknownSession of [404, 400] as const) {
      const peer = await keep(startV1({ unknownSession }));
      const gateway = await keep(startGateway({ '/mcp': peer.url }));
      const client = await keep(connect(kind, gateway.url()));
      const add = () => client.callTool('add', { a: 3, b: 4 });
      expect((await add()).content[0].text).toMatch(/is 7/);
      await peer.restart();
      expect((await add()).content[0].text).toMatch(/is 7/);
      expect(peer.calls).toHaveLength(2);
    }
  },
);
