import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { LegacyClientSession } from '../../../../src/eras/legacy/client/session.js';
import { ClientSessions } from '../../../../src/eras/legacy/client/sessions.js';
import { readCapabilities } from '../../../../src/exchange/client-capabilities.js';
import type { SessionBinding } from '../../../../src/exchange/client-session.js';
import { ClientState } from '../../../../src/exchange/client-state.js';
import type { Principal } from '../../../../src/exchange/credentials.js';
import { ANONYMOUS, ownerOf, principalOf } from '../../../../src/exchange/credentials.js';
import { Sealer } from '../../../../src/exchange/utils/sealer.js';

const NO_CAPABILITIES = readCapabilities('{}');

const KEY = 'a key of this test';
const DAY_MS = 24 * 3_600_000;

interface SetUp {
  max?: number;
  idleMs?: number;
  route?: string;
  keys?: string[];
  state?: ClientState;
}

function setUp({ max = 100, idleMs = 60_000, route = '/mcp', keys = [KEY], state }: SetUp = {}) {
  return new ClientSessions(route, new Sealer(keys), { max, idleMs, answerTimeoutMs: 1_000, state });
}

let ended: string[] = [];
beforeEach(() => {
  ended = [];
});
afterEach(() => {
  vi.useRealTimers();
});

/** A session of a user, with one at the backend. */
function begin(sessions: ClientSessions, user: string, name = user, claims = {}): LegacyClientSession {
  const session = sessions.create({
    route: '/mcp',
    revision: '2025-06-18',
    principal: user as Principal,
    owner: undefined,
    clientInfo: '{"name":"c","version":"1"}',
    capabilities: NO_CAPABILITIES,
    neutralCapabilities: NO_CAPABILITIES,
    backendSession: undefined,
    ...claims,
  });
  const binding: SessionBinding = {
    backendSession: { id: name, revision: '2025-03-26', cookies: 'lb=a' },
    onListening() {},
    notify() {},
    end: async () => void ended.push(name),
  };
  session.bind(binding);
  sessions.add(session);
  return session;
}

const overloaded = expect.objectContaining({ outcome: expect.objectContaining({ status: 503 }) });

describe('a sealed session id', () => {
  test('finds its session for its principal only', () => {
    const sessions = setUp();
    const session = begin(sessions, 'anna');
    expect(sessions.get(session.token, 'anna' as Principal)).toBe(session);
    expect(sessions.get(session.token, 'bert' as Principal)).toBeUndefined();
    expect(sessions.get(session.token, ANONYMOUS)).toBeUndefined();
    expect(sessions.get('x', 'anna' as Principal)).toBeUndefined();
    expect(sessions.peek(session.token)).toBe(session);
  });

  test('holds all claims that another process with the key needs', () => {
    const claims = { owner: 'anna of idp' };
    const session = begin(setUp(), 'anna', 'backend-1', claims);
    const other = setUp();
    expect(other.get(session.token, 'bert' as Principal)).toBeUndefined();
    expect(other.size).toBe(0);
    const found = other.get(session.token, 'anna' as Principal);
    expect(found?.claims).toEqual({
      ...session.claims,
      ...claims,
      backendSession: { id: 'backend-1', revision: '2025-03-26', cookies: 'lb=a' },
    });
    expect(found?.token).toBe(session.token);
    expect(other.get(session.token, 'anna' as Principal)).toBe(found);
    expect(other.size).toBe(1);
  });

  test('is invalid on another route, with another key, and after a week', () => {
    vi.useFakeTimers({ toFake: ['Date'] });
    const { token } = begin(setUp(), 'anna');
    const anna = 'anna' as Principal;
    expect(setUp({ route: '/other' }).get(token, anna)).toBeUndefined();
    expect(setUp({ keys: ['another key of this test'] }).get(token, anna)).toBeUndefined();
    expect(setUp({ keys: ['another key of this test', KEY] }).get(token, anna)).toBeDefined();
    vi.advanceTimersByTime(6 * DAY_MS);
    expect(setUp().get(token, anna)).toBeDefined();
    vi.advanceTimersByTime(2 * DAY_MS);
    expect(setUp().get(token, anna)).toBeUndefined();
  });

  test('fits into a header, however much the client declares', () => {
    const sessions = setUp();
    const text = JSON.stringify({ experimental: { x: 'y'.repeat(100_000) } });
    const session = begin(sessions, 'anna', 'anna', {
      clientInfo: JSON.stringify({ name: 'c', version: '1', icons: [{ src: 'z'.repeat(100_000) }] }),
      capabilities: { text, value: JSON.parse(text), key: text },
    });
    expect(session.token.length).toBeLessThan(6_000);
    expect(session.token).toMatch(/^[\w-]+$/);
    expect(setUp().get(session.token, 'anna' as Principal)).toBeDefined();
  });

  test.each([
    [100, true],
    [3_000, true],
    [5_000, true],
    [20_000, false],
  ])('fits into a header if the backend has ids of %i characters', (length, known) => {
    // Each of these characters is three bytes.
    const text = JSON.stringify({ experimental: { x: '天'.repeat(900) } });
    const id = 'x'.repeat(length);
    const { token } = begin(setUp(), 'anna', id, {
      clientInfo: JSON.stringify({ name: '天'.repeat(300), version: '1' }),
      capabilities: { text, value: JSON.parse(text), key: text },
    });
    expect(token.length).toBeLessThanOrEqual(8_000);
    const found = setUp().get(token, 'anna' as Principal);
    expect(found).toBeDefined();
    expect(found?.backendSession?.id).toBe(known ? id : undefined);
  });
});

describe('a renewed credential', () => {
  test('is valid once it is shared, beside the first, and for this session only', () => {
    const sessions = setUp();
    const session = begin(sessions, 'anna-1');
    const other = begin(sessions, 'anna-1', 'other');
    const renewed = 'anna-2' as Principal;
    expect(sessions.get(session.token, renewed)).toBeUndefined();
    expect(sessions.share(session, renewed)).toBe(session);
    expect(sessions.get(session.token, renewed)).toBe(session);
    expect(sessions.get(session.token, 'anna-1' as Principal)).toBe(session);
    expect(sessions.get(other.token, renewed)).toBeUndefined();
  });

  test('of a session of another process is kept with it; of two restored at once the first stays', () => {
    const { token } = begin(setUp(), 'anna-1');
    const sessions = setUp();
    const [a, b] = [sessions.peek(token), sessions.peek(token)] as [LegacyClientSession, LegacyClientSession];
    expect(sessions.size).toBe(0);
    expect(sessions.share(a, 'anna-2' as Principal)).toBe(a);
    expect(sessions.share(b, 'anna-3' as Principal)).toBe(a);
    expect(sessions.size).toBe(1);
    expect(sessions.get(token, 'anna-3' as Principal)).toBe(a);
  });

  test('is one of a limited number', () => {
    const sessions = setUp();
    const session = begin(sessions, 'anna');
    for (let i = 0; i < 1_000; i++) sessions.share(session, `anna-${i}` as Principal);
    const remembered = Array.from({ length: 1_000 }, (_, i) =>
      session.owner.includes(`anna-${i}` as Principal),
    );
    expect(remembered.filter(Boolean).length).toBeLessThan(20);
    expect(remembered.at(-1)).toBe(true);
    expect(session.owner.includes('anna' as Principal)).toBe(true);
  });
});

describe('the end of a session', () => {
  test('is final, and ends the backend session once', async () => {
    const sessions = setUp();
    const session = begin(sessions, 'anna');
    await sessions.end(session);
    expect(ended).toEqual(['anna']);
    expect(sessions.get(session.token, 'anna' as Principal)).toBeUndefined();
    expect(sessions.peek(session.token)).toBeUndefined();
    expect(sessions.size).toBe(0);
  });

  test('a thousand times leaves nothing in memory', async () => {
    const sessions = setUp({ max: 10_000 });
    const all = Array.from({ length: 1_000 }, (_, i) => begin(sessions, `u${i % 7}`, `s${i}`));
    expect(sessions.size).toBe(1_000);
    await Promise.all(all.map((session) => sessions.end(session)));
    expect(sessions.size).toBe(0);
    expect(new Set(ended).size).toBe(1_000);
    expect(ended).toHaveLength(1_000);
  });

  test('of all waits for every backend session to end, also for ends in flight', async () => {
    const sessions = setUp();
    for (const name of ['a', 'b', 'c']) {
      const session = begin(sessions, 'u', name);
      (session.binding as { end: () => Promise<void> }).end = async () => {
        await new Promise((resolve) => setTimeout(resolve, 10));
        ended.push(name);
      };
    }
    void sessions.end(
      sessions.peek((begin(sessions, 'u', 'd') as LegacyClientSession).token) as LegacyClientSession,
    );
    await sessions.close();
    expect(ended.sort()).toEqual(['a', 'b', 'c', 'd']);
    expect(sessions.size).toBe(0);
  });
});

/** A session with a stream, or with a call in flight. */
function occupy(session: LegacyClientSession, how: 'stream' | 'call'): void {
  Object.defineProperty(session, 'busy', { value: true, configurable: true });
  Object.defineProperty(session, 'calling', { value: how === 'call', configurable: true });
}

describe('at the limit', () => {
  const fill = (sessions: ClientSessions, users: readonly string[]) =>
    users.map((user, i) => begin(sessions, user, `${user}${i}`));

  test.each<[string, users: string[], newcomer: string, victim: string]>([
    ['the only user loses its oldest', ['a', 'a', 'a'], 'a', 'a0'],
    ['who has most gives way to itself', ['b', 'a', 'a', 'a'], 'a', 'a1'],
    ['who has most gives way to a newcomer', ['b', 'a', 'a', 'c'], 'd', 'a1'],
    ['who has most gives way to one with less', ['b', 'a', 'a', 'a', 'b'], 'b', 'a1'],
    ['one each: the oldest gives way to a newcomer', ['a', 'b', 'c'], 'd', 'a0'],
    ['one each: a second is at the cost of the first', ['a', 'b', 'c'], 'c', 'c2'],
  ])('%s', (_name, users, newcomer, victim) => {
    const sessions = setUp({ max: users.length });
    fill(sessions, users);
    begin(sessions, newcomer, 'new');
    expect(ended).toEqual([victim]);
    expect(sessions.size).toBe(users.length);
  });

  test('the time of the latest use counts, and not that of the handshake', () => {
    const sessions = setUp({ max: 3 });
    const [first] = fill(sessions, ['a', 'a', 'a']);
    sessions.get(first?.token as string, 'a' as Principal);
    begin(sessions, 'a', 'new');
    expect(ended).toEqual(['a1']);
  });

  test('an evicted session is restored, and another evicted for it', () => {
    const sessions = setUp({ max: 2 });
    const [first] = fill(sessions, ['a', 'a']);
    begin(sessions, 'a', 'new');
    expect(ended).toEqual(['a0']);
    const back = sessions.get(first?.token as string, 'a' as Principal);
    expect(back?.backendSession?.id).toBe('a0');
    expect(ended).toEqual(['a0', 'a1']);
    expect(sessions.size).toBe(2);
  });

  test('sessions in use are not evicted', () => {
    const sessions = setUp({ max: 3 });
    const [first] = fill(sessions, ['a', 'a', 'a']);
    occupy(first as LegacyClientSession, 'stream');
    begin(sessions, 'b', 'new');
    expect(ended).toEqual(['a1']);
  });

  test('the principal with the most sessions does not evict idle sessions of others', () => {
    const sessions = setUp({ max: 3 });
    for (const session of fill(sessions, ['a', 'a', 'b']).slice(0, 2)) occupy(session, 'stream');
    expect(() => begin(sessions, 'a', 'new')).toThrow(overloaded);
    expect(ended).toEqual([]);
    begin(sessions, 'c', 'other');
    expect(ended).toEqual(['b2']);
  });

  test('a session with only a stream is evicted for a principal with fewer sessions, one with a call never', () => {
    const sessions = setUp({ max: 3 });
    const [x, y, z] = fill(sessions, ['a', 'a', 'a']) as [
      LegacyClientSession,
      LegacyClientSession,
      LegacyClientSession,
    ];
    occupy(x, 'call');
    occupy(y, 'stream');
    occupy(z, 'stream');
    begin(sessions, 'b', 'new');
    expect(ended).toEqual(['a1']);
    occupy(sessions.peek(z.token) as LegacyClientSession, 'call');
    expect(() => begin(sessions, 'a', 'more')).toThrow(overloaded);
    expect(sessions.size).toBe(3);
  });

  test('if all are in use, a new session and a restored one are refused', () => {
    const sessions = setUp({ max: 2 });
    const elsewhere = begin(setUp(), 'c');
    for (const session of fill(sessions, ['a', 'b'])) occupy(session, 'call');
    expect(() => begin(sessions, 'c', 'new')).toThrow(overloaded);
    expect(() => sessions.get(elsewhere.token, 'c' as Principal)).toThrow(overloaded);
    // For another principal there is no such session, rather than no room.
    expect(sessions.get(elsewhere.token, 'd' as Principal)).toBeUndefined();
    expect(sessions.size).toBe(2);
    expect(ended).toEqual([]);
  });
});

test('sessions unused for the idle time are removed, busy ones kept', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance', 'Date'] });
  const sessions = setUp({ idleMs: 8_000 });
  const [idle, busy, used] = ['idle', 'busy', 'used'].map((name) => begin(sessions, 'u', name));
  occupy(busy as LegacyClientSession, 'stream');
  vi.advanceTimersByTime(6_000);
  sessions.get(used?.token as string, 'u' as Principal);
  vi.advanceTimersByTime(6_000);
  expect(ended).toEqual(['idle']);
  expect(sessions.size).toBe(2);
  vi.advanceTimersByTime(10_000);
  expect(ended).toEqual(['idle', 'used']);
  // Its id restores it.
  expect(sessions.get(idle?.token as string, 'u' as Principal)?.backendSession?.id).toBe('idle');
  await sessions.close();
});

describe('the owner of a credential', () => {
  const jwt = (claims: unknown, scheme = 'Bearer') =>
    `${scheme} h.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.s`;
  const anna = { iss: 'https://idp', sub: 'anna' };

  test('is the same in every token of one user, issuer and client', () => {
    const owner = ownerOf(jwt({ ...anna, exp: 1 }));
    expect(owner).toMatch(/^[\w-]{22}$/);
    expect(ownerOf(jwt({ sub: 'anna', iss: 'https://idp', exp: 2, jti: 'x' }))).toBe(owner);
    expect(ownerOf(jwt({ ...anna }, 'bearer'))).toBe(owner);
    for (const other of [
      { ...anna, sub: 'bert' },
      { ...anna, iss: 'https://other' },
      { ...anna, azp: 'app' },
      { ...anna, client_id: 'app2' },
    ]) {
      expect(ownerOf(jwt(other))).not.toBe(owner);
    }
    expect(ownerOf(jwt({ ...anna, azp: 'app' }))).toBe(ownerOf(jwt({ ...anna, client_id: 'app' })));
  });

  test.each([
    undefined,
    '',
    'Bearer',
    'Bearer opaque',
    'Bearer a.b',
    'Bearer a.b.c',
    'Bearer a.b.c.d',
    'Basic YTpi',
    jwt({ sub: 'anna' }),
    jwt({ iss: 'https://idp' }),
    jwt({ iss: 1, sub: 2 }),
    jwt(null),
    jwt('text'),
    jwt(anna, 'Basic'),
    `${jwt(anna)} x`,
  ])('cannot be told from %j', (authorization) => {
    expect(ownerOf(authorization)).toBeUndefined();
  });

  test('is not the principal, which is one credential', () => {
    expect(principalOf(jwt({ ...anna, exp: 1 }))).not.toBe(principalOf(jwt({ ...anna, exp: 2 })));
    expect(principalOf(undefined)).toBe(ANONYMOUS);
  });
});

describe('the memory for what clients declare', () => {
  const LONG = 3_000;
  const saying = (text: string) => {
    const declared = readCapabilities(JSON.stringify({ experimental: { [text]: {} } }));
    return { capabilities: declared, neutralCapabilities: declared };
  };

  test('is bounded for all routes together; sessions of the principal that holds most are evicted, and can be restored', () => {
    const state = new ClientState(200_000);
    const first = setUp({ state, max: 1_000 });
    const second = setUp({ state, max: 1_000 });
    const modest = begin(first, 'anna');
    const greedy = Array.from({ length: 50 }, (_, i) =>
      begin(i % 2 === 0 ? first : second, 'bert', `b${i}`, saying(String(i).padEnd(LONG, 'x'))),
    );
    expect(state.bytes).toBeLessThanOrEqual(200_000);
    expect(first.size + second.size).toBeLessThan(20);
    expect(first.get(modest.token, 'anna' as Principal)).toBe(modest);
    const dropped = greedy[0] as LegacyClientSession;
    expect(first.get(dropped.token, 'bert' as Principal)?.token).toBe(dropped.token);
    expect(state.bytes).toBeLessThanOrEqual(200_000);
  });

  test('holds equal declarations once', () => {
    const state = new ClientState(200_000);
    const sessions = setUp({ state, max: 1_000 });
    const same = saying('y'.repeat(LONG));
    for (let i = 0; i < 40; i++) begin(sessions, 'anna', `a${i}`, same);
    expect(sessions.size).toBe(40);
  });

  test('is free again when the sessions have ended', async () => {
    const state = new ClientState(200_000);
    const sessions = setUp({ state });
    const held = ['anna', 'bert'].map((user) => begin(sessions, user, user, saying(user)));
    expect(state.bytes).toBeGreaterThan(0);
    for (const session of held) await sessions.end(session);
    expect(state.bytes).toBe(0);
  });

  test('is refused when nothing can be evicted', () => {
    const state = new ClientState(10_000);
    const sessions = setUp({ state });
    expect(() => begin(sessions, 'anna', 'a', saying('z'.repeat(LONG)))).toThrow(overloaded);
  });
});
