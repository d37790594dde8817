import { expect, test } from 'vitest';
import { type Loose, sleep, until } from '../support/net.js';
import { type LegacySession, legacy, modern, openModern } from '../support/raw.js';
import { isAlive, startRig, textOf } from './rig.js';

const backend = { era: 'legacy' };
const call = (session: LegacySession, name: string, args = {}) =>
  session.request('tools/call', { name, arguments: args });
const callModern = (url: string, name: string, args = {}, headers = {}) =>
  modern(url, 'tools/call', { name, arguments: args }, { headers });

test('the end of a process ends the calls on it at once, under their own ids, and the next call works', async () => {
  const { url, logged } = await startRig({ backend });
  const session = await legacy(url);
  const waiting = session.request('tools/call', { name: 'hang', arguments: {} }, { id: 'mine' });
  const dying = await call(session, 'exit', { code: 7 });
  expect(dying.status).toBe(502);
  expect(dying.json.error.message).toBe('connection lost to node: it exited with code 7');
  expect(await waiting).toMatchObject({ status: 502, json: { id: 'mine', error: { code: -32603 } } });
  expect(textOf((await call(session, 'echo')).json)).toContain('args');
  expect(logged('ended unexpectedly')).toEqual([
    expect.objectContaining({ level: 40, reason: 'it exited with code 7', route: '/mcp', backend: 'node' }),
  ]);
});

test('a process that is killed while nobody asks it anything is replaced unseen', async () => {
  const { url, running, started, logged } = await startRig({ backend });
  const session = await legacy(url);
  await callModern(url, 'pid');
  for (const pid of running()) process.kill(pid, 'SIGKILL');
  // What is written to one of which the gateway cannot know yet is lost with it.
  await until(() => logged('ended unexpectedly').length === 2, 'the gateway to know of it');
  expect((await call(session, 'pid')).status).toBe(200);
  expect((await callModern(url, 'pid')).status).toBe(200);
  expect(started()).toHaveLength(4);
});

test('a request that may be sent twice is, when its process dies', async () => {
  const { url, running, received } = await startRig({
    backend,
    server: { silentOn: ['tools/list'] },
    timings: { steadyMs: 20 },
  });
  const session = await legacy(url);
  await call(session, 'slow', { ms: 50 });
  const listed = session.request('tools/list');
  // The process that takes the place of the first does not answer either; a third one is not tried.
  for (const times of [1, 2]) {
    await until(() => received('tools/list').length === times, 'the request');
    for (const pid of running()) process.kill(pid, 'SIGKILL');
  }
  expect((await listed).json.error.message).toContain('it was ended by SIGKILL');
});

test('a server that does not come up is told of with its exit code, and is not started over and over', async () => {
  const { url, started, logged } = await startRig({ backend, server: { exitAt: 3 } });
  const answers = [];
  for (let i = 0; i < 20; i++) answers.push(await modern(url, 'tools/list', {}, { id: i }));
  for (const [i, { status, json }] of answers.entries()) {
    expect(status).toBe(502);
    expect(json.id).toBe(i);
    expect(json.error.message).toContain('it exited with code 3');
  }
  expect(answers.at(-1)?.json.error.message).toMatch(/it is not started again for \d\.\d s$/);
  expect(started().length).toBeLessThan(6);
  expect(logged('ended unexpectedly')[0]?.stderr).toEqual(['cannot find the configuration']);
});

test('many who come at once and in vain count as one try', async () => {
  const { url, started } = await startRig({ backend, server: { exitAt: { initialize: 1 } } });
  await Promise.all(Array.from({ length: 8 }, () => legacy(url)));
  expect((await legacy(url)).initialize.json.error.message).toContain('it exited with code 1');
  // Of the second try at the latest.
  expect((await legacy(url)).initialize.json.error.message).toMatch(
    /\(\d+ times in a row\); .* for \d\.\d s$/,
  );
  expect(started().length).toBeLessThanOrEqual(10);
});

test('a process that has already told something of a request takes that along, and it is not sent again', async () => {
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

test('a tool that speaks of a session of its own does not cost the process', async () => {
  const { url, started } = await startRig({ backend });
  const session = await legacy(url);
  expect((await call(session, 'sessionExpired')).json.error.message).toBe('Session expired');
  expect(textOf((await call(session, 'pid')).json)).toBe(String(started()[0]));
  expect(started()).toHaveLength(1);
});

test('a server that comes up later is found by the calls after that', async () => {
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

test('a server that answers nothing has one process, however many call, and it is not left behind', async () => {
  const { url, started, running, logged } = await startRig({
    backend,
    server: { silentOn: '*' },
    route: { timeouts: { start: '800ms' } },
  });
  const answers = await Promise.all(Array.from({ length: 20 }, () => modern(url, 'tools/list')));
  for (const { status, json } of answers) {
    expect(status).toBe(504);
    expect(json.error.message).toContain('no answer to initialize within 800 ms');
  }
  expect(started()).toHaveLength(1);
  expect(logged('unusable').map(({ reason }) => reason)).toEqual(['it did not answer in time']);
  await until(() => running().length === 0, 'the process to end');
  for (let i = 0; i < 10; i++) await legacy(url);
  expect(started().length).toBeLessThan(4);
});

test('a server that refuses the handshake has no process left', async () => {
  const { url, running } = await startRig({ backend, server: { refuse: true } });
  const { message } = (await legacy(url)).initialize.json.error;
  expect(message).toContain('refused the handshake');
  expect(message).not.toContain('HTTP');
  await until(() => running().length === 0, 'the process to end');
});

test('a process that closes its output is of no use, and is replaced', async () => {
  const { url, running } = await startRig({ backend });
  const session = await legacy(url);
  const [pid] = running();
  expect((await call(session, 'closeOutput')).json.error.message).toContain('it closed its standard output');
  await until(() => !isAlive(pid ?? 0), 'the process to end');
  expect((await call(session, 'pid')).status).toBe(200);
});

test('a process that does not read holds up its own callers alone, and what they sent is given up with them', async () => {
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
])(
  'a %s process that does nothing any more makes way for another once a call has run out of time (%s)',
  async (era, kind) => {
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
  },
);

test('a process that only lets one call wait for ever is left alone', async () => {
  const { url, running } = await startRig({ backend, route: { timeouts: { total: '500ms' } } });
  const session = await legacy(url);
  const [pid] = running();
  expect((await call(session, 'hang')).json.error.message).toContain('timed out');
  // Longer than the ping may take.
  await sleep(400);
  expect(isAlive(pid ?? 0)).toBe(true);
  expect((await call(session, 'pid')).json.result.content[0].text).toBe(String(pid));
});

test('what a process has not got when it ends goes to the next one', async () => {
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
  process.kill(pid ?? 0, 'SIGKILL');
  await stuck;
  for (const [answer, text] of [
    [await waiting, value],
    [await queued, 'queued'],
  ] as const) {
    expect([answer.status, answer.json.error]).toEqual([200, undefined]);
    expect(textOf(answer.json)).toContain(text);
  }
});

test('a process that is killed forty times in the middle of calls is replaced each time, and nobody waits', async () => {
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
  // Most of it is the time that a new process needs to start, where the calls before it were its first.
  expect(Math.max(...times)).toBeLessThan(10_000);
  expect([...messages]).toEqual(['connection lost to node: it was ended by SIGKILL']);
  expect(started()).toHaveLength(41 + 4);
  expect(running()).toHaveLength(5);
}, 60_000);
