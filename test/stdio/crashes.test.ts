import { expect, test } from 'vitest';
import { detailOf } from '../support/error-detail.js';
import { type Loose, sleep, until } from '../support/net.js';
import { type LegacySession, legacy, modern, openModern } from '../support/raw.js';
import { isAlive, startRig, textOf } from './rig.js';

const backend = { era: 'legacy' };
const call = (session: LegacySession, name: string, args = {}) =>
  session.request('tools/call', { name, arguments: args });
const callModern = (url: string, name: string, args = {}, headers = {}) =>
  modern(url, 'tools/call', { name, arguments: args }, { headers });

test('calls in flight fail at once when their process ends, and the next call gets a new process', async () => {
  const { gateway, url, logged } = await startRig({ backend });
  const session = await legacy(url);
  const waiting = session.request('tools/call', { name: 'hang', arguments: {} }, { id: 'mine' });
  const dying = await call(session, 'exit', { code: 7 });
  expect(dying.status).toBe(502);
  expect(detailOf(gateway, dying)).toBe('connection lost to node: it exited with code 7');
  expect(await waiting).toMatchObject({ status: 502, json: { id: 'mine', error: { code: -32603 } } });
  expect(textOf((await call(session, 'echo')).json)).toContain('args');
  expect(logged('ended unexpectedly')).toEqual([
    expect.objectContaining({ level: 40, reason: 'it exited with code 7', route: '/mcp', backend: 'node' }),
  ]);
});

test('an idle process that is killed is replaced for the next call', async () => {
  const { url, running, started, logged } = await startRig({ backend });
  const session = await legacy(url);
  await callModern(url, 'pid');
  for (const pid of running()) process.kill(pid, 'SIGKILL');
  // Before that, a call would still be written to the dead process.
  await until(() => logged('ended unexpectedly').length === 2, 'the gateway to know of it');
  expect((await call(session, 'pid')).status).toBe(200);
  expect((await callModern(url, 'pid')).status).toBe(200);
  expect(started()).toHaveLength(4);
});

test('a safe request is repeated once when its process dies', async () => {
  const { gateway, url, running, received } = await startRig({
    backend,
    server: { silentOn: ['tools/list'] },
    timings: { steadyMs: 0 },
  });
  const session = await legacy(url);
  const listed = session.request('tools/list');
  // The second process does not answer either; there is no third attempt.
  for (const times of [1, 2]) {
    await until(() => received('tools/list').length === times, 'the request');
    for (const pid of running()) process.kill(pid, 'SIGKILL');
  }
  expect(detailOf(gateway, await listed)).toContain('does not know the session that it has just opened');
  expect(received('tools/list')).toHaveLength(2);
});

test('a server that fails to start is reported with its exit code, and is restarted with pauses', async () => {
  const { gateway, url, started, logged } = await startRig({ backend, server: { exitAt: 3 } });
  const answers = [];
  for (let i = 0; i < 20; i++) answers.push(await modern(url, 'tools/list', {}, { id: i }));
  for (const [i, answer] of answers.entries()) {
    expect(answer.status).toBe(502);
    expect(answer.json.id).toBe(i);
    expect(detailOf(gateway, answer)).toContain('it exited with code 3');
  }
  expect(detailOf(gateway, answers[19] as (typeof answers)[number])).toMatch(
    /it is not started again for \d\.\d s$/,
  );
  expect(started().length).toBeLessThan(6);
  expect(logged('ended unexpectedly')[0]?.stderr).toEqual(['cannot find the configuration']);
});

test('concurrent failed starts count as one failure', async () => {
  const { gateway, url, started } = await startRig({ backend, server: { exitAt: { initialize: 1 } } });
  await Promise.all(Array.from({ length: 8 }, () => legacy(url)));
  expect(detailOf(gateway, (await legacy(url)).initialize)).toContain('it exited with code 1');
  // The second attempt at the latest.
  expect(detailOf(gateway, (await legacy(url)).initialize)).toMatch(
    /\(\d+ times in a row\); .* for \d\.\d s$/,
  );
  expect(started().length).toBeLessThanOrEqual(10);
});

test('a request of which messages were passed on is not repeated when its process dies', async () => {
  const { url, running, received } = await startRig({
    backend: { era: 'modern' },
    server: { era: 'modern' },
    timings: { steadyMs: 20 },
  });
  await modern(url, 'tools/call', { name: 'slow', arguments: { ms: 50 } });
  await modern(url, 'tools/call', { name: 'slow', arguments: { ms: 50 } });
  const filter = { notifications: { toolsListChanged: true } };
  const stream = await openModern(url, 'subscriptions/listen', filter);
  await stream.next();
  for (const pid of running()) process.kill(pid, 'SIGKILL');
  await stream.done;
  expect(received('subscriptions/listen')).toHaveLength(1);
});

test('an error message about a session does not end the process', async () => {
  const { url, started } = await startRig({ backend });
  const session = await legacy(url);
  expect((await call(session, 'sessionExpired')).json.error.message).toBe('Session expired');
  expect(textOf((await call(session, 'pid')).json)).toBe(String(started()[0]));
  expect(started()).toHaveLength(1);
});

test('a server that failed to start is started again by later calls', async () => {
  const { url, started } = await startRig({
    backend,
    server: { exitAt: { initialize: 1 } },
    timings: { restart: { firstMs: 50, longestMs: 50 } },
  });
  expect((await modern(url, 'tools/list')).status).toBe(502);
  expect(started()).toHaveLength(1);
  await until(async () => {
    await modern(url, 'tools/list');
    return started().length > 1;
  }, 'another try');
});

test('concurrent calls to a server that answers nothing share one process, which is ended', async () => {
  const { url, started, running, logged } = await startRig({
    backend,
    server: { silentOn: '*' },
    route: { timeouts: { start: '800ms' } },
  });
  const answers = await Promise.all(Array.from({ length: 20 }, () => modern(url, 'tools/list')));
  for (const { status, json } of answers) {
    expect(status).toBe(504);
    expect(json.error.data).toEqual({ eragate: 'ERAGATE_HANDSHAKE_TIMEOUT' });
  }
  expect(started()).toHaveLength(1);
  expect(logged('unusable').map(({ reason }) => reason)).toEqual(['it did not answer in time']);
  await until(() => running().length === 0, 'the process to end');
  for (let i = 0; i < 10; i++) await legacy(url);
  expect(started().length).toBeLessThan(4);
});

test('the process of a server that refuses the handshake is ended', async () => {
  const { url, running } = await startRig({ backend, server: { refuse: true } });
  const { message } = (await legacy(url)).initialize.json.error;
  expect(message).toContain('refused the handshake');
  expect(message).not.toContain('HTTP');
  await until(() => running().length === 0, 'the process to end');
});

test('a process that closes its standard output is replaced', async () => {
  const { gateway, url, running } = await startRig({ backend });
  const session = await legacy(url);
  const [pid] = running();
  expect(detailOf(gateway, await call(session, 'closeOutput'))).toContain('it closed its standard output');
  await until(() => !isAlive(pid ?? 0), 'the process to end');
  expect((await call(session, 'pid')).status).toBe(200);
});

test('a process that does not read delays only its own callers, whose queued messages are dropped when they time out', async () => {
  const { url } = await startRig({
    backend,
    server: { deafOn: 'tools/list' },
    route: { timeouts: { total: '1s' } },
  });
  const session = await legacy(url);
  const value = 'v'.repeat(2 * 2 ** 20);
  const stuck = [
    session.request('tools/list'),
    call(session, 'echo', { value }),
    call(session, 'echo', { value }),
  ];
  expect((await callModern(url, 'pid')).status).toBe(200);
  for (const answer of await Promise.all(stuck)) expect(answer.json.error.message).toContain('timed out');
  expect((await session.delete()).status).toBe(200);
});

test.each([
  ['legacy', 'per-session'],
  ['legacy', 'shared'],
  ['modern', 'shared'],
])('a %s process that hangs is replaced once a call has timed out (%s)', async (era, kind) => {
  const { url, started, logged } = await startRig({
    backend: { era, process: kind },
    server: { era },
    route: { timeouts: { total: '1s' } },
  });
  const pid = Number((await callModern(url, 'pid')).json.result.content[0].text);
  expect((await callModern(url, 'block')).json.error.message).toContain('timed out');
  await until(() => !isAlive(pid), 'the process to end');
  expect(logged('unusable').length + logged('ended').length).toBeGreaterThan(0);
  expect((await callModern(url, 'pid')).status).toBe(200);
  expect(new Set(started()).size).toBe(started().length);
});

test('a process that only leaves one call unanswered is kept', async () => {
  const { url, running } = await startRig({ backend, route: { timeouts: { total: '500ms' } } });
  const session = await legacy(url);
  const [pid] = running();
  expect((await call(session, 'hang')).json.error.message).toContain('timed out');
  // Longer than the ping may take.
  await sleep(400);
  expect(isAlive(pid ?? 0)).toBe(true);
  expect((await call(session, 'pid')).json.result.content[0].text).toBe(String(pid));
});

test('a request that a process had not read when it ended is sent to the next one', async () => {
  const { url, running } = await startRig({ backend, server: { deafOn: 'tools/list' } });
  const session = await legacy(url);
  const [pid] = running();
  const stuck = session.request('tools/list');
  const value = 'v'.repeat(3 * 2 ** 20);
  const waiting = call(session, 'echo', { value });
  await sleep(200);
  // Waits in the queue, since the pipe is full.
  const queued = call(session, 'echo', { value: 'queued' });
  await sleep(50);
  process.kill(pid as number, 'SIGKILL');
  await stuck;
  for (const [answer, text] of [
    [await waiting, value],
    [await queued, 'queued'],
  ] as const) {
    expect([answer.status, answer.json.error]).toEqual([200, undefined]);
    expect(textOf(answer.json)).toContain(text);
  }
});

test('a process that is killed forty times during calls is replaced each time, and all calls settle', async () => {
  const { url, running, started } = await startRig({ backend, file: { limits: { processes: 500 } } });
  const sessions = await Promise.all(Array.from({ length: 4 }, () => legacy(url)));
  const slow = { name: 'slow', arguments: { ms: 20_000 } };
  const times: number[] = [];
  const messages = new Set<string>();
  const fails = async (answer: Promise<{ status: number; json: Loose }>) => {
    const asked = performance.now();
    const { status, json } = await answer;
    times.push(performance.now() - asked);
    expect(status).toBe(502);
    messages.add(json.error.message);
  };
  const killAgain = async (
    once: (name: string, args?: object) => Promise<{ status: number; json: Loose }>,
  ) => {
    for (let i = 0; i < 8; i++) {
      await Promise.all([
        fails(once('slow', slow.arguments)),
        fails(once('slow', slow.arguments)),
        fails(once('kill')),
      ]);
      expect((await once('echo')).status).toBe(200);
    }
  };
  await Promise.all([
    ...sessions.map((session) => killAgain((name, args) => call(session, name, args))),
    killAgain((name, args) => callModern(url, name, args)),
  ]);
  expect(times).toHaveLength(120);
  // Includes the start of a process.
  expect(Math.max(...times)).toBeLessThan(10_000);
  expect([...messages]).toEqual([
    expect.stringContaining('The connection to the server behind route /mcp broke'),
  ]);
  expect(started()).toHaveLength(41 + 4);
  expect(running()).toHaveLength(5);
}, 60_000);
