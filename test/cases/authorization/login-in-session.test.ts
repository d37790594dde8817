import { describe, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../../support/gateway.js';
import { keeper } from '../../support/keeper.js';
import { type ScriptedBackend, startLegacyBackend, startModernBackend } from '../../support/misbehave.js';
import type { Loose } from '../../support/net.js';
import { type LegacySession, legacy, send } from '../../support/raw.js';

const keep = keeper();

const base64 = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
const jwt = (sub: string, serial: number) =>
  `Bearer ${base64({ alg: 'RS256' })}.${base64({ iss: 'https://idp.example.com', sub, serial })}.x`;

/** What a server lets a credential do. */
type Rights = Readonly<Record<string, 'nothing' | 'reading' | 'calling' | 'all'>>;
const RIGHTS: Rights = {
  'Bearer reader': 'reading',
  'Bearer caller': 'calling',
  'Bearer writer': 'all',
  'Bearer other': 'all',
};

const refusal = ({ authorization }: Loose) =>
  authorization === undefined || RIGHTS[authorization] === undefined
    ? { status: 401, challenge: 'Bearer scope="read"' }
    : { status: 403, challenge: 'Bearer error="insufficient_scope", scope="read write"' };

/** A server that lets everybody shake hands, and asks for a credential where one is needed. */
function lazy(rights: (authorization: string | undefined) => string, era: 'legacy' | 'modern' = 'legacy') {
  const start = era === 'legacy' ? startLegacyBackend : startModernBackend;
  return keep<ScriptedBackend>(
    start({
      intercept: ({ method, headers, json, sendJson }) => {
        if (method !== 'POST' || /^(initialize|notifications\/.*|server\/discover)$/.test(json?.method)) {
          const { authorization } = headers;
          // Every credential is good.
          if (authorization === undefined || rights(authorization) !== 'nothing') return false;
        }
        const may = rights(headers.authorization);
        const isCall = json?.method === 'tools/call';
        if (may === 'all' || may === (isCall ? 'calling' : 'reading')) return false;
        const { status, challenge } = refusal(headers);
        sendJson({ error: 'refused' }, status, { 'www-authenticate': challenge });
        return true;
      },
    }),
  );
}

const byRights = (authorization = '') => RIGHTS[authorization] ?? 'nothing';

const call = (session: LegacySession, authorization?: string) =>
  send(session.url, {
    headers: { ...session.headers, authorization },
    body: {
      jsonrpc: '2.0',
      id: 'c',
      method: 'tools/call',
      params: { name: 'echo', arguments: { a: 1 } },
    },
  });

const gatewayTo = (url: string, backend = {}): Promise<TestGateway> =>
  keep(startGateway({ '/mcp': { backend: { url, ...backend } } }));

const expectAnswer = (answer: Loose) => expect(answer.json.result.structuredContent).toEqual({ a: 1 });

describe.each(['legacy', 'modern'] as const)('toward a %s server', (era) => {
  test('a session that was opened without a credential goes on with the one that the server asked for', async () => {
    const backend = await lazy(byRights, era);
    const session = await legacy((await gatewayTo(backend.url, { era })).url());
    const refused = await call(session);
    expect(refused.status).toBe(401);
    expect(refused.headers['www-authenticate']).toBe('Bearer scope="read"');
    expectAnswer(await call(session, 'Bearer writer'));
    expect(backend.received('initialize').length).toBeLessThanOrEqual(1);
    // It is nobody else's any more.
    expect((await call(session)).status).toBe(401);
    expect((await call(session, 'Bearer other')).status).toBe(404);
    expectAnswer(await call(session, 'Bearer writer'));
  });

  test('a credential of too little scope is replaced by a better one', async () => {
    const backend = await lazy(byRights, era);
    const headers = { authorization: 'Bearer reader' };
    const session = await legacy((await gatewayTo(backend.url, { era })).url(), { headers });
    const refused = await call(session, 'Bearer reader');
    expect(refused.status).toBe(403);
    expect(refused.headers['www-authenticate']).toContain('insufficient_scope');
    expectAnswer(await call(session, 'Bearer writer'));
    expect((await call(session, 'Bearer reader')).status).toBe(404);
  });
});

test('a credential for what was refused is good, whatever else it is not for', async () => {
  const backend = await lazy(byRights);
  const session = await legacy((await gatewayTo(backend.url)).url());
  expect((await call(session)).status).toBe(401);
  expectAnswer(await call(session, 'Bearer caller'));
  expect(backend.received('ping').map(({ headers }) => headers.authorization)).toEqual(['Bearer caller']);
});

test('without a challenge nobody else has the session', async () => {
  const backend = await lazy(byRights);
  const headers = { authorization: 'Bearer writer' };
  const session = await legacy((await gatewayTo(backend.url)).url(), { headers });
  expectAnswer(await call(session, 'Bearer writer'));
  expect((await call(session, 'Bearer other')).status).toBe(404);
});

test('a challenge of somebody else does not open the session to anybody', async () => {
  const backend = await lazy(byRights);
  const gateway = await gatewayTo(backend.url);
  const mine = await legacy(gateway.url(), { headers: { authorization: 'Bearer writer' } });
  const theirs = await legacy(gateway.url(), { headers: { authorization: 'Bearer reader' } });
  expect((await call(theirs, 'Bearer reader')).status).toBe(403);
  expect((await call(mine)).status).toBe(401);
  expect((await call(mine, 'Bearer other')).status).toBe(404);
});

test('a credential that the server refuses does not take the session over', async () => {
  const backend = await lazy(byRights);
  const session = await legacy((await gatewayTo(backend.url)).url());
  expect((await call(session)).status).toBe(401);
  expect((await call(session, 'Bearer forged')).status).toBe(401);
  expect((await call(session)).status).toBe(401);
  expectAnswer(await call(session, 'Bearer writer'));
});

test('a credential that names another owner does not take the session over', async () => {
  const expired = new Set<string>();
  const backend = await lazy((authorization = '') => (expired.has(authorization) ? 'nothing' : 'all'));
  const anna = jwt('anna', 1);
  const session = await legacy((await gatewayTo(backend.url)).url(), { headers: { authorization: anna } });
  expectAnswer(await call(session, anna));
  expired.add(anna);
  expect((await call(session, anna)).status).toBe(401);
  expect((await call(session, jwt('bert', 2))).status).toBe(404);
  expectAnswer(await call(session, jwt('anna', 3)));
});
