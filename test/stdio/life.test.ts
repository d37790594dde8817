import { expect, test } from 'vitest';
import { detailOf } from '../support/error-detail.js';
import { until } from '../support/net.js';
import { type LegacySession, legacy, modern } from '../support/raw.js';
import { isAlive, startRig, textOf } from './rig.js';

const backend = { era: 'legacy' };
const call = (session: LegacySession, name: string, args = {}) =>
  session.request('tools/call', { name, arguments: args });
const callModern = (url: string, name: string, args = {}, headers = {}) =>
  modern(url, 'tools/call', { name, arguments: args }, { headers });
const bearer = (who: string) => ({ authorization: `Bearer ${who}` });

test('each legacy client has a process of its own, which ends with its session', async () => {
  const { url, started, running } = await startRig({ backend });
  const [one, two] = await Promise.all([legacy(url), legacy(url)]);
  const pids = [textOf((await call(one, 'pid')).json), textOf((await call(two, 'pid')).json)];
  expect(new Set(pids).size).toBe(2);
  expect(started().map(String).sort()).toEqual(pids.sort());
  await one.delete();
  await until(() => running().length === 1, 'the process to end');
  expect(textOf((await call(two, 'pid')).json)).toBe(String(running()[0]));
});

test('modern clients of one principal share a process, those of another have another', async () => {
  const { url, started } = await startRig({ backend });
  const calls = ['ada', 'ada', 'alan'].map((who) => callModern(url, 'pid', {}, bearer(who)));
  const [first, second, third] = (await Promise.all(calls)).map(({ json }) => textOf(json));
  expect(second).toBe(first);
  expect(third).not.toBe(first);
  expect(started()).toHaveLength(2);
});

test('with isolation by call each call has a process to itself, which ends with it', async () => {
  const { url, started, running } = await startRig({ backend, route: { sessions: { isolation: 'call' } } });
  const answers = await Promise.all([callModern(url, 'pid'), callModern(url, 'pid')]);
  expect(new Set(answers.map(({ json }) => textOf(json))).size).toBe(2);
  expect(started()).toHaveLength(2);
  await until(() => running().length === 0, 'the processes to end');
});

test('an idle process is ended', async () => {
  const { url, running } = await startRig({ backend, route: { sessions: { idle: '300ms' } } });
  await callModern(url, 'pid');
  expect(running()).toHaveLength(1);
  await until(() => running().length === 0, 'the process to end');
  expect((await callModern(url, 'pid')).status).toBe(200);
});

test('a process inherits only the variables that every program needs', async () => {
  process.env['ERAGATE_TEST_SECRET'] = 'hunter2';
  process.env['LC_TEST'] = 'C.UTF-8';
  try {
    const { url } = await startRig({ backend: { ...backend, env: { API_KEY: 'x', LANG: 'pl_PL' } } });
    const seen = JSON.parse(textOf((await callModern(url, 'environment')).json));
    expect(seen).toMatchObject({
      PATH: process.env['PATH'],
      LC_TEST: 'C.UTF-8',
      API_KEY: 'x',
      LANG: 'pl_PL',
    });
    expect(JSON.stringify(seen)).not.toContain('hunter2');
    expect(Object.keys(seen).filter((name) => /^(ERAGATE|NODE|VITEST|npm)/i.test(name))).toEqual([]);
  } finally {
    delete process.env['ERAGATE_TEST_SECRET'];
    delete process.env['LC_TEST'];
  }
});

test('a process runs in the configured folder, and no shell interprets its arguments', async () => {
  const { url } = await startRig({
    backend: { ...backend, cwd: '/usr' },
    server: { '$(x)': '`y` && "z" * \\' },
  });
  expect(textOf((await callModern(url, 'folder')).json)).toBe('/usr');
});

test('a missing program is reported at once to every caller', async () => {
  const { gateway, url, logged } = await startRig({ backend: { command: '/not/there', args: [] } });
  const answer = await modern(url, 'tools/list', {}, { id: 'x' });
  expect(answer.status).toBe(502);
  expect(answer.json.id).toBe('x');
  expect(detailOf(gateway, answer)).toMatch(/^cannot reach there: it cannot be started \(ENOENT\)/);
  expect(detailOf(gateway, (await legacy(url)).initialize)).toContain('cannot be started (ENOENT)');
  expect(logged('could not be started')[0]?.reason).toBe('it cannot be started (ENOENT)');
  expect(logged('ended unexpectedly')).toEqual([]);
});

test('a missing folder is reported', async () => {
  const { gateway, url } = await startRig({ backend: { ...backend, cwd: '/not/there' } });
  expect(detailOf(gateway, await modern(url, 'tools/list'))).toContain('its folder is not there');
});

test('a DELETE does not wait for a process that ignores the end of its input; it is killed with its descendants', async () => {
  const { url, running } = await startRig({ backend, server: { ignoreEnd: true } });
  const session = await legacy(url);
  const offspring = Number(textOf((await call(session, 'offspring')).json));
  expect(isAlive(offspring)).toBe(true);
  expect((await session.delete()).status).toBe(200);
  expect(running()).toHaveLength(1);
  await until(() => running().length === 0 && !isAlive(offspring), 'the processes to be killed');
});

test('descendants of a process do not outlive it', async () => {
  const { url } = await startRig({ backend });
  const session = await legacy(url);
  const offspring = Number(textOf((await call(session, 'offspring')).json));
  await call(session, 'exit', { code: 0 });
  await until(() => !isAlive(offspring), 'the offspring to end');
});

test('closing the gateway ends processes that ignore signals within seconds', async () => {
  const { url, gateway, running } = await startRig({ backend, server: { ignoreEnd: true } });
  await Promise.all([legacy(url), legacy(url), callModern(url, 'pid')]);
  expect(running()).toHaveLength(3);
  const asked = performance.now();
  await gateway.close();
  expect(performance.now() - asked).toBeLessThan(8_000);
  expect(running()).toEqual([]);
});

test('at the limit of processes only callers that need a new one are refused', async () => {
  const { gateway, url, running } = await startRig({ backend, file: { limits: { processes: 2 } } });
  const [one, two] = [await legacy(url), await legacy(url)];
  const third = await legacy(url);
  expect(detailOf(gateway, third.initialize)).toMatch(/^cannot reach node: limit of 2 processes reached/);
  expect(third.initialize.headers['retry-after']).toBe('1');
  expect(textOf((await call(two, 'pid')).json)).toBe(String(running()[1]));
  await one.delete();
  await until(() => running().length === 1, 'the process to end');
  await until(async () => (await legacy(url)).initialize.json?.result, 'a place to be free');
});

test('a legacy client keeps its session across a restart of the gateway, on a new process', async () => {
  const { url, gateway, running } = await startRig({
    backend,
    file: { sealKeys: ['a key for the tests of processes'] },
  });
  const session = await legacy(url);
  const before = textOf((await call(session, 'pid')).json);
  await gateway.restart();
  expect(running()).toEqual([]);
  const after = textOf((await call(session, 'pid')).json);
  expect(after).toBe(String(running()[0]));
  expect(after).not.toBe(before);
});

test('a process in use is not ended as idle', async () => {
  const { url, started } = await startRig({ backend, route: { sessions: { idle: '200ms' } } });
  const { json } = await callModern(url, 'slow', { ms: 900 });
  expect(textOf(json)).toBe('done');
  expect(started()).toHaveLength(1);
});
