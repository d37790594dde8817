import { describe, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../../support/gateway.js';
import { keeper } from '../../support/keeper.js';
import { type ScriptedBackend, type StepHandler, startLegacyBackend } from '../../support/misbehave.js';
import { type Loose, sleep, until } from '../../support/net.js';
import { startV1 } from '../../support/peers/index.js';
import { legacy, modern, openModern } from '../../support/raw.js';
import { useVirtualTime } from '../../support/virtual-time.js';

useVirtualTime();

const keep = keeper();

const gatewayTo = (
  url: string,
  sessions: Loose = {},
  route: Loose = {},
  more: Loose = {},
): Promise<TestGateway> => keep(startGateway({ '/mcp': { backend: { url }, sessions, ...route } }, more));
const as = (user: string) => ({ headers: { authorization: `Bearer ${user}` } });
const posts = (backend: ScriptedBackend) =>
  backend.requests
    .filter(({ method, json }) => method !== 'GET' && json?.method !== 'server/discover')
    .map(({ method, json }) => json?.method ?? method);

/** A backend whose tool calls wait until they are finished, one after the other. */
async function slow() {
  const waiting: { name: string; session: string | undefined; finish: () => void }[] = [];
  const onCall: StepHandler = ({ params, session }) =>
    new Promise((resolve) => {
      const { n } = params.arguments;
      const finish = () => resolve({ result: { content: [], structuredContent: { n } } });
      waiting.push({ name: String(n), session, finish });
    });
  const backend = await keep(startLegacyBackend({ on: { 'tools/call': onCall } }));
  const names = () => waiting.map(({ name }) => name);
  return {
    backend,
    waiting,
    names,
    /** Waits until these calls, and no others, are at the backend. */
    async at(...expected: string[]) {
      await until(
        () => expected.every((name) => names().includes(name)),
        `the calls ${expected} (${names()})`,
      );
      await sleep(60);
      expect(names().sort()).toEqual(expected);
    },
    finish(name: string) {
      const index = waiting.findIndex((call) => call.name === name);
      waiting.splice(index, 1)[0]?.finish();
    },
  };
}

const callAs = (gateway: TestGateway, user: string, n: string, more: Loose = {}) =>
  modern(gateway.url(), 'tools/call', { name: 'echo', arguments: { n } }, { ...as(user), ...more });

describe('with sessions of one principal', () => {
  test('calls in a row meet the state that the calls before them left', async () => {
    const peer = await keep(startV1());
    const gateway = await gatewayTo(peer.url);
    const count = async (user: string) =>
      (await modern(gateway.url(), 'tools/call', { name: 'echo', arguments: { value: user } }, as(user)))
        .status;
    for (const user of ['u1', 'u2', 'u1', 'u1', 'u2']) expect(await count(user)).toBe(200);
    const sessions = new Map<string, Set<unknown>>();
    for (const { arguments: args, sessionId } of peer.calls) {
      sessions.set(args.value, (sessions.get(args.value) ?? new Set()).add(sessionId));
    }
    expect([...sessions.values()].map(({ size }) => size)).toEqual([1, 1]);
    expect(peer.sessions()).toBe(2);
  });

  test('calls at once share the session, under ids that do not meet, though the clients use the same', async () => {
    const { backend, at, finish } = await slow();
    const gateway = await gatewayTo(backend.url);
    const names = ['1', '2', '3'];
    const calls = names.map((n) => callAs(gateway, 'u', n, { id: 7 }));
    await at(...names);
    for (const n of ['3', '1', '2']) finish(n);
    for (const [i, call] of calls.entries()) {
      expect((await call).json).toMatchObject({ id: 7, result: { structuredContent: { n: names[i] } } });
    }
    expect(backend.received('initialize')).toHaveLength(1);
    expect(new Set(backend.received('tools/call').map(({ json }) => json.id)).size).toBe(3);
    expect(backend.received('tools/call').every(({ json }) => json.id > 0)).toBe(true);
  });
});

describe('with a session for each call', () => {
  test('every call is a handshake, the call and the end of the session', async () => {
    const backend = await keep(startLegacyBackend());
    const gateway = await gatewayTo(backend.url, { isolation: 'call' });
    for (const n of ['1', '2']) {
      const before = posts(backend).length;
      const { json } = await callAs(gateway, 'u', n);
      expect(json.result.structuredContent).toEqual({ n });
      await until(() => backend.sessions.size === 0, 'the end of the session');
      expect(posts(backend).slice(before)).toEqual([
        'initialize',
        'notifications/initialized',
        'tools/call',
        'DELETE',
      ]);
    }
  });

  test('calls at once, also of one principal, have each their own', async () => {
    const { backend, at, waiting, finish } = await slow();
    const gateway = await gatewayTo(backend.url, { isolation: 'call' });
    const calls = ['1', '2', '3'].map((n) => callAs(gateway, 'u', n));
    await until(() => waiting.length === 3, 'the calls');
    expect(new Set(waiting.map(({ session }) => session)).size).toBe(3);
    for (const { name } of [...waiting]) finish(name);
    for (const call of calls) expect((await call).status).toBe(200);
    await until(() => backend.sessions.size === 0, 'the end of the sessions');
    await at();
  });

  test('a call that fails, or is broken off, leaves no session behind', async () => {
    const { backend, waiting } = await slow();
    const gateway = await gatewayTo(backend.url, { isolation: 'call' });
    const leaving = new AbortController();
    const params = { name: 'echo', arguments: { n: '1' } };
    const stream = openModern(gateway.url(), 'tools/call', params, { signal: leaving.signal });
    await until(() => waiting.length === 1, 'the call').then(() => leaving.abort());
    await expect(stream).rejects.toThrow();
    await until(() => backend.sessions.size === 0, 'the end of the session');
    backend.on('tools/call', ({ destroy }) => void destroy() as undefined);
    expect((await callAs(gateway, 'u', '2')).status).toBe(502);
    await until(() => backend.sessions.size === 0, 'the end of the session');
  });

  test('sessions of legacy clients are theirs as ever', async () => {
    const backend = await keep(startLegacyBackend());
    const gateway = await gatewayTo(backend.url, { isolation: 'call' });
    const session = await legacy(gateway.url());
    for (let i = 0; i < 3; i++) await session.request('tools/list');
    expect(backend.received('initialize')).toHaveLength(1);
  });
});

describe.each(['call', 'principal'])('at the limit of sessions (isolation: %s)', (isolation) => {
  test('calls wait in line, in the order of their arrival, and none is refused', async () => {
    const { backend, at, finish } = await slow();
    const gateway = await gatewayTo(backend.url, { isolation, max: 2 });
    const names = ['1', '2', '3', '4', '5'];
    const calls: Promise<Loose>[] = [];
    for (const n of names) {
      calls.push(callAs(gateway, `u${n}`, n));
      await sleep(30);
    }
    await at('1', '2');
    finish('2');
    await at('1', '3');
    finish('1');
    await at('3', '4');
    finish('4');
    await at('3', '5');
    finish('5');
    finish('3');
    for (const [i, call] of calls.entries())
      expect((await call).json.result.structuredContent).toEqual({ n: names[i] });
    expect(backend.sessions.size).toBeLessThanOrEqual(2);
    expect(backend.received('initialize')).toHaveLength(5);
  });

  test('a call that is broken off leaves the line, and the next takes its place', async () => {
    const { backend, at, finish } = await slow();
    const gateway = await gatewayTo(backend.url, { isolation, max: 1 });
    const first = callAs(gateway, 'u1', '1');
    await at('1');
    const gone = ['2', '3'].map((n) => {
      const left = new AbortController();
      const call = callAs(gateway, `u${n}`, n, { signal: left.signal });
      call.catch(() => {});
      return { call, left };
    });
    await sleep(50);
    const last = callAs(gateway, 'u4', '4');
    await sleep(50);
    for (const { left } of gone) left.abort();
    for (const { call } of gone) await expect(call).rejects.toThrow();
    await sleep(50);
    finish('1');
    await at('4');
    finish('4');
    expect((await first).status).toBe(200);
    expect((await last).json.result.structuredContent).toEqual({ n: '4' });
    // No session was opened for those who left.
    expect(backend.received('initialize')).toHaveLength(2);
  });

  test('the time of a call runs in the line too', async () => {
    let silent = true;
    const held: (() => void)[] = [];
    const backend = await keep(
      startLegacyBackend({
        intercept: ({ json, destroy }) => {
          if (json?.method !== 'initialize' || !silent) return false;
          held.push(destroy);
          return true;
        },
      }),
    );
    const timeouts = { total: '500ms', connect: '10s', start: '10s' };
    const gateway = await gatewayTo(backend.url, { isolation, max: 1 }, { timeouts });
    const answers = await Promise.all(['1', '2'].map((n) => callAs(gateway, `u${n}`, n)));
    for (const { status, json } of answers) {
      expect(status).toBe(504);
      expect(json.error.message).toContain('timed out');
    }
    expect(held).toHaveLength(1);
    silent = false;
    for (const destroy of held) destroy();
    expect((await callAs(gateway, 'u3', '3')).status).toBe(200);
  });

  test('a handshake that fails lets the next one in', async () => {
    let refusals = 3;
    const backend = await keep(
      startLegacyBackend({
        intercept: ({ json, sendText }) => {
          if (json?.method !== 'initialize' || refusals-- <= 0) return false;
          setTimeout(() => sendText('Service Unavailable', 503), 50);
          return true;
        },
      }),
    );
    const gateway = await gatewayTo(backend.url, { isolation, max: 1 });
    const answers = await Promise.all(['1', '2', '3', '4', '5'].map((n) => callAs(gateway, `u${n}`, n)));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 502, 502, 502]);
  });

  test('legacy clients have their own sessions beside it', async () => {
    const { backend, at, finish } = await slow();
    const gateway = await gatewayTo(backend.url, { isolation, max: 1 });
    const first = callAs(gateway, 'u1', '1');
    await at('1');
    const session = await legacy(gateway.url());
    const call = session.request('tools/call', { name: 'echo', arguments: { n: '2' } });
    await at('1', '2');
    finish('2');
    expect((await call).status).toBe(200);
    finish('1');
    await first;
  });

  test('the end of the gateway tells those in line', async () => {
    const { backend, at } = await slow();
    const gateway = await gatewayTo(backend.url, { isolation, max: 1 }, { timeouts: { total: '400ms' } });
    const first = callAs(gateway, 'u1', '1');
    await at('1');
    const second = callAs(gateway, 'u2', '2');
    await sleep(50);
    await gateway.stop();
    for (const call of [first, second]) {
      const { status, json } = await call;
      expect(status).toBeGreaterThanOrEqual(500);
      expect(json.error).toBeDefined();
    }
    expect(backend.sessions.size).toBe(0);
  });
});

test('at the limit an idle session of another principal is ended, the one unused for longest', async () => {
  const backend = await keep(startLegacyBackend());
  const gateway = await gatewayTo(backend.url, { max: 2 });
  const use = (user: string) => callAs(gateway, user, '1');
  const sessionOf = (user: string) =>
    backend
      .received('tools/call')
      .filter(({ headers }) => headers.authorization === `Bearer ${user}`)
      .at(-1)?.headers['mcp-session-id'];
  for (const user of ['anna', 'bert', 'anna']) {
    await use(user);
    await sleep(1);
  }
  const [anna, bert] = [sessionOf('anna'), sessionOf('bert')];
  await use('carl');
  const end = await until(
    () => backend.requests.find(({ method }) => method === 'DELETE'),
    'the end of a session',
  );
  expect(end.headers).toMatchObject({ 'mcp-session-id': bert, authorization: 'Bearer bert' });
  await use('anna');
  expect(sessionOf('anna')).toBe(anna);
  expect(backend.sessions.size).toBe(2);
});
