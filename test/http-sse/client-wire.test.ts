import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { afterEach, describe, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../support/gateway.js';
import { type ScriptedBackend, startLegacyBackend, startModernBackend } from '../support/misbehave.js';
import { type Loose, until } from '../support/net.js';
import { CLIENT_INFO, open, type RawResponse, type RawStream, send } from '../support/raw.js';
import { useVirtualTime } from '../support/virtual-time.js';

useVirtualTime();

const opened: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const part of opened.splice(0).reverse()) await part.close();
});

async function start(
  options: { backend?: () => Promise<ScriptedBackend>; route?: Loose; config?: Loose } = {},
): Promise<{ backend: ScriptedBackend; gateway: TestGateway }> {
  const backend = await (options.backend ?? (() => startLegacyBackend()))();
  opened.push(backend);
  const route = { backend: { url: backend.url }, legacySse: true, ...options.route };
  const gateway = await startGateway({ '/mcp': route }, options.config);
  opened.push(gateway);
  return { backend, gateway };
}

interface SseSession {
  readonly stream: RawStream;
  /** Path and query for messages, from the `endpoint` event. */
  readonly place: string;
  post(body: unknown, headers?: Record<string, string | undefined>): Promise<RawResponse>;
  /** Posts a request, and resolves with the response on the stream. */
  ask(method: string, params?: Loose, id?: Loose): Promise<Loose>;
}

/** Opens a stream by hand. */
async function openSse(
  gateway: TestGateway,
  headers: Record<string, string> = {},
  path = '/mcp/sse',
): Promise<SseSession> {
  const stream = await open(gateway.origin + path, { headers: { accept: 'text/event-stream', ...headers } });
  opened.push({ close: async () => stream.abort() });
  const first = await stream.next();
  expect(first.event).toBe('endpoint');
  let ids = 0;
  const session: SseSession = {
    stream,
    place: first.data,
    post: (body, more = {}) => send(gateway.origin + first.data, { headers: { ...headers, ...more }, body }),
    async ask(method, params, id = ++ids) {
      const taken = await session.post({ jsonrpc: '2.0', id, method, params });
      expect([taken.status, taken.text]).toEqual([202, '']);
      const event = await stream.find(({ json }) => json?.id === id && json.method === undefined);
      return event.json;
    },
  };
  return session;
}

const PARAMS = { protocolVersion: '2024-11-05', capabilities: {}, clientInfo: CLIENT_INFO };

async function shake(
  gateway: TestGateway,
  headers: Record<string, string> = {},
  params = {},
): Promise<SseSession> {
  const session = await openSse(gateway, headers);
  const answer = await session.ask('initialize', { ...PARAMS, ...params }, 0);
  expect(answer.result.serverInfo).toBeDefined();
  await session.post({ jsonrpc: '2.0', method: 'notifications/initialized' });
  return session;
}

describe('a stream', () => {
  test('begins with the path for messages, which has an unguessable id', async () => {
    const { gateway } = await start();
    const [one, two] = [await openSse(gateway), await openSse(gateway)];
    expect(one.place).toMatch(/^\/mcp\/messages\?sessionId=[0-9a-f-]{36}$/);
    expect(one.place).not.toBe(two.place);
    expect(one.stream.status).toBe(200);
    expect(one.stream.headers).toMatchObject({
      'content-type': 'text/event-stream',
      'cache-control': 'no-cache, no-store, no-transform',
      'x-accel-buffering': 'no',
    });
  });

  test('keeps the path of the public URL in it', async () => {
    const { gateway } = await start({ config: { publicUrl: 'https://mcp.example.com/base/' } });
    const stream = await open(`${gateway.url()}/sse`);
    expect((await stream.next()).data).toMatch(/^\/base\/mcp\/messages\?sessionId=/);
    stream.abort();
  });

  test('sends keep-alive comments', async () => {
    const { gateway } = await start({ config: { keepAlive: '50ms' } });
    const { stream } = await openSse(gateway);
    await until(() => stream.comments.length > 3, 'comments');
  });

  test('is refused to a client that does not accept events', async () => {
    const { gateway } = await start();
    const refused = await send(`${gateway.url()}/sse`, { headers: { accept: 'application/json' } });
    expect(refused.status).toBe(406);
  });

  test('is refused to browser pages of other origins, and so are their messages', async () => {
    const { gateway } = await start();
    const { place } = await openSse(gateway);
    for (const headers of [{ origin: 'https://evil.example' }, { host: 'evil.example' }]) {
      expect((await send(`${gateway.url()}/sse`, { headers })).status).toBe(403);
      expect((await send(gateway.origin + place, { headers, body: {} })).status).toBe(403);
    }
    const page = await open(`${gateway.url()}/sse`, { headers: { origin: 'http://localhost:6274' } });
    expect(page.headers['access-control-allow-origin']).toBe('http://localhost:6274');
    page.abort();
  });

  test('ends with the gateway', async () => {
    const { gateway } = await start();
    const [stranger, session] = [await openSse(gateway), await shake(gateway)];
    await gateway.close();
    expect((await session.stream.done).status).toBe(200);
    expect((await stranger.stream.done).status).toBe(200);
  });

  test('is closed for a new one where too many have had no handshake', async () => {
    const { gateway } = await start({ config: { limits: { sessions: 20 } } });
    const known = await shake(gateway);
    const first = await openSse(gateway);
    const rest = await Promise.all(Array.from({ length: 20 }, () => open(`${gateway.url()}/sse`)));
    await until(() => first.stream.ended, 'the oldest to be ended');
    expect(rest.filter(({ ended }) => ended)).toEqual([]);
    expect((await known.ask('ping')).result).toEqual({});
    for (const stream of rest) stream.abort();
  });
});

describe('a message', () => {
  test('is accepted with 202, and answered on the stream', async () => {
    const { backend, gateway } = await start();
    const session = await shake(gateway);
    const answer = await session.ask('tools/call', { name: 'echo', arguments: { n: 1 } }, 'my "id"');
    expect(answer.result.content).toBeDefined();
    expect(backend.received('tools/call')).toHaveLength(1);
    expect(session.stream.events.every(({ event }) => event === 'endpoint' || event === 'message')).toBe(
      true,
    );
  });

  const NOBODY = '00000000-0000-4000-8000-000000000000';
  const refusals: Record<string, [query: string | undefined, request: Loose, status: number]> = {
    'for an unknown stream': [`?sessionId=${NOBODY}`, {}, 404],
    'for no stream': ['', {}, 400],
    'of another media type': [undefined, { headers: { 'content-type': 'text/plain' } }, 415],
    'that is not JSON': [undefined, { body: '{' }, 400],
    'that is not JSON-RPC': [undefined, { body: { hello: 1 } }, 400],
    'that is too large': [
      undefined,
      { body: { jsonrpc: '2.0', method: 'x', params: { a: 'x'.repeat(5_000) } } },
      413,
    ],
  };
  test.each(Object.keys(refusals))('%s is refused at once', async (name) => {
    const [query, request, status] = refusals[name] as (typeof refusals)[string];
    const { gateway } = await start({ config: { limits: { body: '4KiB' } } });
    const { place, stream } = await openSse(gateway);
    const url = gateway.origin + (query === undefined ? place : `/mcp/messages${query}`);
    const body = { jsonrpc: '2.0', id: 7, method: 'ping' };
    const refused = await send(url, { body, ...request });
    expect(refused.status).toBe(status);
    expect(refused.json.error.code).toBeLessThan(0);
    expect(stream.events).toHaveLength(1);
  });

  test('from another principal is refused, and does not appear on the stream', async () => {
    const { backend, gateway } = await start();
    for (const owner of [{}, { authorization: 'Bearer one' }]) {
      const session = await shake(gateway, owner);
      const others: Record<string, string | undefined>[] = [
        { authorization: 'Bearer two' },
        ...('authorization' in owner ? [{ authorization: undefined }] : []),
      ];
      for (const other of others) {
        const before = session.stream.events.length;
        const refused = await session.post({ jsonrpc: '2.0', id: 9, method: 'tools/list' }, other);
        expect([401, 404]).toContain(refused.status);
        expect((await session.ask('ping', undefined, `after ${before}`)).result).toEqual({});
        expect(session.stream.events).toHaveLength(before + 1);
      }
    }
    expect(backend.received('tools/list')).toHaveLength(0);
  });

  test('from another principal does not initialize the session of the stream', async () => {
    const { backend, gateway } = await start();
    const session = await openSse(gateway, { authorization: 'Bearer one' });
    const body = { jsonrpc: '2.0', id: 1, method: 'initialize', params: PARAMS };
    expect((await session.post(body, { authorization: 'Bearer two' })).status).toBe(404);
    expect(backend.received('initialize')).toHaveLength(0);
  });

  test('is accepted with a renewed credential of the same owner', async () => {
    const jwt = (n: number) => {
      const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
      return `Bearer ${part({ alg: 'none' })}.${part({ iss: 'https://i', sub: 'ada', n })}.x`;
    };
    const { gateway } = await start();
    const session = await shake(gateway, { authorization: jwt(1) });
    const taken = await session.post(
      { jsonrpc: '2.0', id: 5, method: 'tools/list' },
      { authorization: jwt(2) },
    );
    expect(taken.status).toBe(202);
    expect((await session.stream.find(({ json }) => json?.id === 5)).json.result).toBeDefined();
  });

  test('before the handshake gets an error, unless it is a ping', async () => {
    const { backend, gateway } = await start();
    const session = await openSse(gateway);
    expect((await session.ask('ping')).result).toEqual({});
    expect((await session.ask('server/discover')).error.code).toBe(-32601);
    expect((await session.ask('tools/list')).error).toMatchObject({ code: -32600 });
    expect((await session.post({ jsonrpc: '2.0', method: 'notifications/initialized' })).status).toBe(202);
    expect(backend.received('tools/list')).toEqual([]);
    expect((await session.ask('initialize', PARAMS)).result.serverInfo).toBeDefined();
  });

  test('with a second handshake is refused on the stream', async () => {
    const { gateway } = await start();
    const session = await shake(gateway);
    expect((await session.ask('initialize', PARAMS)).error.message).toMatch(/initialized already/);
  });

  test('may be part of a batch for 2025-03-26 only', async () => {
    const { gateway } = await start();
    const batch = [
      { jsonrpc: '2.0', id: 'a', method: 'ping' },
      { jsonrpc: '2.0', id: 'b', method: 'tools/list' },
      { jsonrpc: '2.0', method: 'notifications/roots/list_changed' },
    ];
    const session = await shake(gateway, {}, { protocolVersion: '2025-03-26' });
    expect((await session.post(batch)).status).toBe(202);
    await session.stream.find(({ json }) => json?.id === 'b');
    expect(session.stream.events.map(({ json }) => json?.id)).toEqual([undefined, 0, 'a', 'b']);
    const older = await shake(gateway);
    await older.post(batch);
    expect((await older.stream.next()).json.error.message).toMatch(/no batches/);
  });

  test('that the client cancels is not answered', async () => {
    const { backend, gateway } = await start();
    backend.on('tools/call', () => new Promise(() => {}));
    const session = await shake(gateway);
    const body = { jsonrpc: '2.0', id: 'slow', method: 'tools/call', params: { name: 'echo' } };
    await session.post(body);
    await until(() => backend.received('tools/call').length === 1, 'the call to reach the server');
    await session.post({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'slow' } });
    await until(() => backend.received('notifications/cancelled').length === 1, 'the server to be told');
    expect((await session.ask('ping')).result).toEqual({});
    expect(session.stream.events.filter(({ json }) => json?.id === 'slow')).toEqual([]);
  });
});

describe('a client without permission', () => {
  test.each([401, 403])('gets status %i in the response to the handshake', async (status) => {
    const { gateway } = await start({
      backend: () =>
        startLegacyBackend({
          intercept: ({ sendText }) => {
            sendText('no', status, { 'www-authenticate': 'Bearer realm="x"' });
            return true;
          },
        }),
    });
    const session = await openSse(gateway);
    const refused = await session.post({ jsonrpc: '2.0', id: 1, method: 'initialize', params: PARAMS });
    expect(refused.status).toBe(status);
    expect(refused.headers['www-authenticate']).toBe('Bearer realm="x"');
    expect(session.stream.events).toHaveLength(1);
  });

  test('gets the error of an unreachable server on the stream, and may try again', async () => {
    const { backend, gateway } = await start();
    await backend.stop();
    const session = await openSse(gateway);
    expect((await session.ask('initialize', PARAMS)).error.message).toContain(
      'Cannot reach the server behind route',
    );
    await backend.start();
    expect((await session.ask('initialize', PARAMS)).result.serverInfo).toBeDefined();
  });
});

describe.each([
  ['legacy', () => startLegacyBackend()],
  ['modern', () => startModernBackend()],
])('a session with a %s server', (era, backend) => {
  test('has the revision that the client requested', async () => {
    const { gateway } = await start({ backend });
    for (const protocolVersion of ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25']) {
      const session = await openSse(gateway);
      const { result } = await session.ask('initialize', { ...PARAMS, protocolVersion });
      expect(result.protocolVersion).toBe(protocolVersion);
      // SDK clients send the version header on this transport too.
      const versioned = { 'mcp-protocol-version': protocolVersion };
      expect((await session.post({ jsonrpc: '2.0', id: 3, method: 'tools/list' }, versioned)).status).toBe(
        202,
      );
      expect((await session.stream.find(({ json }) => json?.id === 3)).json.result.tools).toBeDefined();
      session.stream.abort();
    }
  });

  test('gets the progress of its calls, under its own token, before their result', async () => {
    const { backend: server, gateway } = await start({ backend });
    server.on('tools/call', (step) => {
      const { progressToken } = step.params._meta;
      const stream = step.stream();
      for (const progress of [1, 2, 3]) {
        const params = { progressToken, progress };
        stream.event({ jsonrpc: '2.0', method: 'notifications/progress', params });
      }
      stream.event(step.frame({ result: { resultType: 'complete', content: [] } }));
      stream.end();
      return undefined;
    });
    const session = await shake(gateway);
    const before = session.stream.events.length;
    await session.ask('tools/call', { name: 'echo', _meta: { progressToken: 'mine' } }, 'c');
    expect(session.stream.events.slice(before).map(({ json }) => json.id ?? json.params)).toEqual([
      ...[1, 2, 3].map((progress) => ({ progressToken: 'mine', progress })),
      'c',
    ]);
  });

  test('ends with its stream, as do its calls in flight', async () => {
    const { backend: server, gateway } = await start({ backend });
    server.on('tools/call', () => new Promise(() => {}));
    const session = await shake(gateway);
    await session.post({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'echo' } });
    await until(() => server.received('tools/call').length === 1, 'the call to reach the server');
    session.stream.abort();
    await until(
      () =>
        era === 'modern'
          ? server.received('tools/call')[0]?.disconnected
          : server.requests.some(({ method }) => method === 'DELETE'),
      'the server to be told',
    );
    expect((await session.post({ jsonrpc: '2.0', id: 2, method: 'ping' })).status).toBe(404);
  });

  test('refuses more messages of a client that reads nothing', async () => {
    const { backend: server, gateway } = await start({ backend, config: { limits: { result: '64MiB' } } });
    const text = 'x'.repeat(8_000_000);
    server.on('tools/call', () => ({ result: { content: [{ type: 'text', text }] } }));
    const request = httpRequest(`${gateway.url()}/sse`, { agent: false });
    request.end();
    const [stream] = (await once(request, 'response')) as [IncomingMessage];
    let told = '';
    stream.on('data', (chunk) => {
      told += chunk;
    });
    await until(() => told.includes('\n\ndata:') || told.includes('data: /mcp'), 'the place for messages');
    const place = /data: (\S+)/.exec(told)?.[1] as string;
    const post = (body: Loose) => send(gateway.origin + place, { body });
    await post({ jsonrpc: '2.0', id: 0, method: 'initialize', params: PARAMS });
    await until(() => told.includes('serverInfo'), 'the handshake');
    stream.pause();
    let refused: RawResponse | undefined;
    for (let id = 1; id < 40 && refused?.status !== 503; id++) {
      refused = await post({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'echo' } });
      await until(() => server.received('tools/call').length >= id || refused?.status === 503, 'the call');
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    expect(refused?.status).toBe(503);
    request.destroy();
  });
});

describe('a client at the wrong URL', () => {
  test('with a POST to the stream is refused at once, so that it tries a GET', async () => {
    const { gateway } = await start();
    const body = { jsonrpc: '2.0', id: 1, method: 'initialize', params: PARAMS };
    const refused = await send(`${gateway.url()}/sse`, { body });
    expect(refused.status).toBe(405);
    expect(refused.headers['allow']).toBe('GET, OPTIONS');
    expect(refused.json.error.code).toBe(-32000);
  });

  test('with a GET to the endpoint itself gets no endpoint event', async () => {
    const { gateway } = await start();
    expect((await send(gateway.url())).status).toBe(405);
  });

  test('with another method is refused', async () => {
    const { gateway } = await start();
    for (const method of ['DELETE', 'PUT', 'PATCH']) {
      expect((await send(`${gateway.url()}/sse`, { method })).status).toBe(405);
      expect((await send(`${gateway.url()}/messages`, { method })).status).toBe(405);
    }
    expect((await send(`${gateway.url()}/messages`)).status).toBe(405);
    expect((await send(`${gateway.url()}/messages`, { method: 'OPTIONS' })).status).toBe(204);
  });

  test('on a route that does not offer HTTP+SSE gets a 404', async () => {
    const { gateway } = await start({ route: { legacySse: false } });
    expect((await send(`${gateway.url()}/sse`)).status).toBe(404);
    expect((await send(`${gateway.url()}/messages`, { body: {} })).status).toBe(404);
  });
});

test('messages sent before the response to the handshake wait for it', async () => {
  let proceed = (): void => {};
  const held = new Promise<void>((resolve) => {
    proceed = resolve;
  });
  const result = { ...PARAMS, serverInfo: { name: 's', version: '1' } };
  const backend = () =>
    startLegacyBackend({
      on: {
        initialize: async () => {
          await held;
          return { result };
        },
      },
    });
  const { gateway, backend: server } = await start({ backend });
  const { stream, post } = await openSse(gateway);
  const handshake = post({ jsonrpc: '2.0', id: 0, method: 'initialize', params: PARAMS });
  await until(() => server.received('initialize').length > 0, 'the handshake');
  const messages = [
    { method: 'notifications/initialized' },
    { id: 1, method: 'tools/list' },
    { id: 2, method: 'tools/call', params: { name: 'echo' } },
    { id: 3, method: 'ping' },
  ];
  const taken = [handshake, ...messages.map((message) => post({ jsonrpc: '2.0', ...message }))];
  // Keep-alive comments are sent meanwhile.
  expect((await stream.next()).json).toEqual({ jsonrpc: '2.0', id: 3, result: {} });
  proceed();
  for (const answer of await Promise.all(taken)) expect(answer.status).toBe(202);
  const events = [await stream.next(), await stream.next(), await stream.next()];
  expect(events[0]?.json).toMatchObject({ id: 0, result });
  for (const { json } of events) expect(json).toHaveProperty('result');
});

test('messages sent before a handshake fails are refused', async () => {
  let proceed = (): void => {};
  const held = new Promise<void>((resolve) => {
    proceed = resolve;
  });
  const backend = () =>
    startLegacyBackend({
      on: {
        initialize: async () => {
          await held;
          return { error: { code: -32603, message: 'no' } };
        },
      },
    });
  const { gateway, backend: server } = await start({ backend });
  const { stream, post } = await openSse(gateway);
  const handshake = post({ jsonrpc: '2.0', id: 0, method: 'initialize', params: PARAMS });
  await until(() => server.received('initialize').length > 0, 'the handshake');
  expect((await post({ jsonrpc: '2.0', id: 1, method: 'tools/list' })).status).toBe(202);
  proceed();
  expect((await handshake).status).toBe(202);
  const [first, second] = [await stream.next(), await stream.next()];
  expect(first.json).toMatchObject({ id: 0, error: { code: -32603 } });
  expect(second.json).toMatchObject({ id: 1, error: { code: -32600 } });
});
