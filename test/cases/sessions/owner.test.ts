import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../../support/gateway.js';
import { keeper } from '../../support/keeper.js';
import { type ScriptedBackend, startLegacyBackend, startModernBackend } from '../../support/misbehave.js';
import { type Loose, sleep, until } from '../../support/net.js';
import { type LegacySession, legacy, modern, open as openStream, send } from '../../support/raw.js';
import { useVirtualTime } from '../../support/virtual-time.js';

useVirtualTime();

const keep = keeper();

const SEAL_KEY = Buffer.alloc(32, 7).toString('base64');
const echo = { name: 'echo', arguments: { a: 1 } };
const base64 = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
let serial = 0;
/** A JWT of this owner, no two alike; `good` ones are taken by the backend below. */
const jwt = (claims: Loose, good = true) =>
  `Bearer ${base64({ alg: 'RS256' })}.${base64({ ...claims, exp: ++serial })}.${good ? 'good' : 'forged'}`;
const ANNA = { iss: 'https://idp.example.com', sub: 'anna' };
const BERT = { iss: 'https://idp.example.com', sub: 'bert' };

const CHALLENGE = 'Bearer error="invalid_token"';

/** A legacy server that verifies the credential of every request, as those do that stand behind an OAuth guard. */
async function startGuarded(): Promise<ScriptedBackend & { revoked: Set<string> }> {
  const revoked = new Set<string>();
  const backend = await startLegacyBackend({
    intercept: ({ headers: { authorization = '' }, sendText }) => {
      if (
        (authorization.endsWith('good') || authorization.startsWith('Bearer opaque')) &&
        !revoked.has(authorization)
      )
        return false;
      sendText('Token expired', 401, { 'www-authenticate': CHALLENGE });
      return true;
    },
  });
  return { ...backend, revoked };
}

/** The same session, as somebody else would use it. */
const as = (session: LegacySession, authorization: string | undefined) => ({
  headers: { ...session.headers, authorization },
});
const call = (session: LegacySession, authorization: string | undefined, url = session.url) =>
  send(url, {
    ...as(session, authorization),
    body: { jsonrpc: '2.0', id: 'c', method: 'tools/call', params: echo },
  });

/** Everything that can be sent on a session: each must be refused alike. */
const REQUESTS: Record<
  string,
  (session: LegacySession, authorization?: string, url?: string) => Promise<Loose>
> = {
  'a POST': (session, authorization, url) => call(session, authorization, url),
  'a notification': (session, authorization, url = session.url) =>
    send(url, {
      ...as(session, authorization),
      body: { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'slow' } },
    }),
  'an answer': (session, authorization, url = session.url) =>
    send(url, { ...as(session, authorization), body: { jsonrpc: '2.0', id: 1, result: {} } }),
  'a GET': async (session, authorization, url = session.url) => {
    const { headers } = as(session, authorization);
    const stream = await openStream(url, { headers: { ...headers, accept: 'text/event-stream' } });
    if (stream.status !== 200) return stream.done;
    stream.abort();
    return { status: 200 };
  },
  'a DELETE': (session, authorization, url = session.url) =>
    send(url, { method: 'DELETE', ...as(session, authorization) }),
};

describe('a session', () => {
  let backend: ScriptedBackend & { revoked: Set<string> };
  let gateway: TestGateway;
  let session: LegacySession;
  let anna: string;
  beforeAll(async () => {
    backend = await startGuarded();
    gateway = await startGateway({ '/mcp': backend.url, '/other': backend.url });
  });
  afterAll(async () => {
    await gateway.close();
    await backend.close();
  });
  beforeEach(async () => {
    backend.requests.length = 0;
    backend.streams.length = 0;
    backend.revoked.clear();
    backend.sessions.clear();
    anna = jwt(ANNA);
    session = await legacy(gateway.url(), { headers: { authorization: anna } });
  });

  describe.each(Object.entries(REQUESTS))('refuses %s', (_name, ask) => {
    test.each([
      ['of another user', () => jwt(BERT)],
      ['of another user with an opaque token', () => 'Bearer opaque-of-bert'],
      ['of a user of another issuer', () => jwt({ ...ANNA, iss: 'https://evil.example.com' })],
      ['of the same user through another client', () => jwt({ ...ANNA, azp: 'other-app' })],
      ['with what only looks like a token', () => 'Bearer a.b.good'],
    ])('%s as one that is not there, and lives on', async (_who, credential) => {
      const sent = backend.requests.length;
      const refused = await ask(session, credential());
      expect(refused.status).toBe(404);
      expect(refused.json.error).toEqual({ code: -32001, message: 'Session not found' });
      expect(backend.requests).toHaveLength(sent);
      expect((await call(session, anna)).json.result.structuredContent).toEqual({ a: 1 });
    });

    test('of nobody with the demand for a credential', async () => {
      const sent = backend.requests.length;
      const refused = await ask(session, undefined);
      expect(refused.status).toBe(401);
      expect(refused.headers['www-authenticate']).toMatch(/^Bearer/);
      expect(backend.requests).toHaveLength(sent);
      expect((await call(session, anna)).status).toBe(200);
    });

    test('on another route as one that is not there', async () => {
      const refused = await ask(session, anna, gateway.url('/other'));
      expect(refused.status).toBe(404);
      expect((await call(session, anna)).status).toBe(200);
    });

    test('with a forged token of the same user with the challenge of the backend', async () => {
      const refused = await ask(session, jwt(ANNA, false));
      expect(refused.status).toBe(401);
      expect(refused.headers['www-authenticate']).toBe(CHALLENGE);
      expect((await call(session, anna)).status).toBe(200);
      expect(backend.received('initialize')).toHaveLength(1);
    });
  });

  test.each(Object.entries(REQUESTS))(
    'takes %s with a renewed token of the same user',
    async (_name, ask) => {
      const renewed = jwt(ANNA);
      const taken = await ask(session, renewed);
      expect([200, 202]).toContain(taken.status);
      expect(backend.received('initialize')).toHaveLength(1);
    },
  );

  test('sends on what came with the renewed token, and needs no proof a second time', async () => {
    const renewed = jwt(ANNA);
    backend.revoked.add(anna);
    for (let i = 0; i < 3; i++)
      expect((await call(session, renewed)).json.result.structuredContent).toEqual({ a: 1 });
    expect(backend.received('tools/call').map(({ headers }) => headers.authorization)).toEqual(
      Array(3).fill(renewed),
    );
    expect(backend.received('ping')).toHaveLength(1);
    // The old one is the owner's still; whether it is good is for the backend to say.
    const old = await call(session, anna);
    expect(old.status).toBe(401);
    expect(old.headers['www-authenticate']).toBe(CHALLENGE);
  });

  test('takes many renewed tokens, one after the other and at once', async () => {
    const tokens = Array.from({ length: 21 }, () => jwt(ANNA));
    for (const token of tokens) expect((await call(session, token)).status).toBe(200);
    const renewed = tokens.at(-1);
    const answers = await Promise.all(Array.from({ length: 10 }, () => call(session, renewed)));
    for (const { status } of answers) expect(status).toBe(200);
    // Sessions of tests before this one may be opened again meanwhile.
    const own = new Set<string | undefined>([anna, ...tokens]);
    const handshakes = backend.received('initialize').filter(({ headers }) => own.has(headers.authorization));
    expect(handshakes).toHaveLength(1);
  });

  test('renews the credentials of its stream to the backend', async () => {
    const stream = await session.listen();
    await until(() => backend.streams.length === 1, 'the stream to the backend');
    backend.revoked.add(anna);
    backend.streams[0]?.stream.event(
      { jsonrpc: '2.0', method: 'notifications/message', params: {} },
      { retry: 10 },
    );
    await stream.next();
    backend.streams[0]?.stream.end();
    const gets = () => backend.requests.filter(({ method }) => method === 'GET');
    await until(() => gets().length === 2, 'the attempt with the old token');
    await sleep(100);
    expect(gets()).toHaveLength(2);
    const renewed = jwt(ANNA);
    await call(session, renewed);
    await until(() => backend.streams.length === 2, 'the stream with the new token');
    expect(gets().at(-1)?.headers.authorization).toBe(renewed);
    backend.streams[1]?.stream.event({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' });
    expect((await stream.next()).json.method).toBe('notifications/tools/list_changed');
    stream.abort();
  });

  test('is ended at the backend with the credential of its last request', async () => {
    const renewed = jwt(ANNA);
    await call(session, renewed);
    await send(session.url, { method: 'DELETE', ...as(session, renewed) });
    const end = await until(() => backend.requests.find(({ method }) => method === 'DELETE'), 'the DELETE');
    expect(end.headers.authorization).toBe(renewed);
    expect(backend.sessions.size).toBe(0);
  });
});

test('a renewed token is good for a session that another replica, or a restarted gateway, has to open again', async () => {
  const backend = await keep(startGuarded());
  const gateway = await keep(startGateway({ '/mcp': backend.url }, { sealKeys: [SEAL_KEY] }));
  const session = await legacy(gateway.url(), { headers: { authorization: jwt(ANNA) } });
  const twin = await keep(startGateway({ '/mcp': backend.url }, { sealKeys: [SEAL_KEY] }));
  expect((await call(session, jwt(BERT), twin.url())).status).toBe(404);
  expect((await call(session, jwt(ANNA, false), twin.url())).status).toBe(401);
  const renewed = jwt(ANNA);
  expect((await call(session, renewed, twin.url())).json.result.structuredContent).toEqual({ a: 1 });
  // It is the same session of the backend.
  expect(backend.received('initialize')).toHaveLength(1);
  await gateway.restart();
  expect((await call(session, jwt(ANNA))).json.result.structuredContent).toEqual({ a: 1 });
});

test('a renewed token opens a new session at a backend that binds its sessions to the token', async () => {
  const owners = new Map<Loose, Loose>();
  const backend = await keep(
    startLegacyBackend({
      intercept: ({ headers, sendJson }) => {
        const id = headers['mcp-session-id'];
        if (id === undefined) return false;
        const owner = owners.get(id) ?? headers.authorization;
        owners.set(id, owner);
        if (owner === headers.authorization) return false;
        sendJson({ jsonrpc: '2.0', id: null, error: { code: -32600, message: 'Session not found' } }, 404);
        return true;
      },
    }),
  );
  const gateway = await keep(startGateway({ '/mcp': backend.url }));
  const session = await legacy(gateway.url(), { headers: { authorization: jwt(ANNA) } });
  const renewed = jwt(ANNA);
  expect((await call(session, renewed)).json.result.structuredContent).toEqual({ a: 1 });
  const handshakes = backend.received('initialize');
  expect(handshakes).toHaveLength(2);
  expect(handshakes[1]?.headers.authorization).toBe(renewed);
  expect((await call(session, renewed)).status).toBe(200);
  expect(backend.received('initialize')).toHaveLength(2);
});

test('a renewed token is judged by a modern backend too', async () => {
  const backend = await keep(
    startModernBackend({
      intercept: ({ headers: { authorization = '' }, sendText }) => {
        if (authorization.endsWith('good')) return false;
        sendText('', 401, { 'www-authenticate': CHALLENGE });
        return true;
      },
    }),
  );
  const gateway = await keep(startGateway({ '/mcp': backend.url }));
  const session = await legacy(gateway.url(), { headers: { authorization: jwt(ANNA) } });
  expect((await call(session, jwt(ANNA, false))).status).toBe(401);
  expect((await call(session, jwt(ANNA))).json.result.structuredContent).toEqual({ a: 1 });
  expect((await call(session, jwt(BERT))).status).toBe(404);
});

test('a token that is not passed on cannot be judged, so a session belongs to the one it was opened with', async () => {
  const backend = await keep(startLegacyBackend());
  const route = { backend: { url: backend.url, authorization: 'drop' } };
  const gateway = await keep(startGateway({ '/mcp': route }));
  const anna = jwt(ANNA);
  const session = await legacy(gateway.url(), { headers: { authorization: anna } });
  expect((await call(session, jwt(ANNA))).status).toBe(404);
  expect((await call(session, anna)).status).toBe(200);
  expect(backend.requests.some(({ headers }) => 'authorization' in headers)).toBe(false);
});

test('tokens with no owner that could be told are each an owner of their own', async () => {
  const backend = await keep(startGuarded());
  const gateway = await keep(startGateway({ '/mcp': backend.url }));
  const session = await legacy(gateway.url(), { headers: { authorization: 'Bearer opaque-1' } });
  expect((await call(session, 'Bearer opaque-2')).status).toBe(404);
  expect((await call(session, 'Bearer opaque-1')).status).toBe(200);
  const anonymous = await legacy(gateway.url(), { headers: { authorization: jwt({ sub: 'no issuer' }) } });
  expect((await call(anonymous, jwt({ sub: 'no issuer' }))).status).toBe(404);
});

test('modern clients share a backend session with nobody but themselves', async () => {
  const backend = await keep(startLegacyBackend());
  const gateway = await keep(startGateway({ '/mcp': backend.url }));
  const credentials = [jwt(ANNA), jwt(BERT), undefined, 'Basic YTpi'];
  const use = (authorization: string | undefined, options: Loose = {}) =>
    modern(gateway.url(), 'tools/call', echo, { headers: { authorization }, ...options });
  await Promise.all([...credentials, ...credentials].map((authorization) => use(authorization)));
  const sessionsOf = () =>
    new Map(
      backend.received('tools/call').map(({ headers }) => [headers['mcp-session-id'], headers.authorization]),
    );
  expect(sessionsOf().size).toBe(credentials.length);
  expect(new Set(sessionsOf().values())).toEqual(new Set(credentials));
  for (const { headers } of backend.received('tools/call')) {
    expect(sessionsOf().get(headers['mcp-session-id'])).toBe(headers.authorization);
  }
  // Calls of one principal in a row meet what the calls before have left in the session.
  expect(backend.received('initialize')).toHaveLength(credentials.length);
});
