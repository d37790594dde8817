import { expect, test } from 'vitest';
import { detailOf } from '../support/error-detail.js';
import { until } from '../support/net.js';
import { type LegacySession, legacy, modern } from '../support/raw.js';
import { isAlive, startRig, textOf } from './rig.js';

const backend = { era: 'legacy', process: 'shared' };
const call = (session: LegacySession, name: string, args = {}, options = {}) =>
  session.request('tools/call', { name, arguments: args }, options);
const callModern = (url: string, name: string, args = {}, headers = {}) =>
  modern(url, 'tools/call', { name, arguments: args }, { headers });

test('one process serves all callers, after one handshake without capabilities', async () => {
  const { url, started, received } = await startRig({ backend });
  const sessions = await Promise.all([
    legacy(url, { version: '2024-11-05' }),
    legacy(url, { capabilities: { sampling: {}, elicitation: {} } }),
  ]);
  const pids = await Promise.all([
    ...sessions.map(async (session) => textOf((await call(session, 'pid')).json)),
    callModern(url, 'pid').then(({ json }) => textOf(json)),
    callModern(url, 'pid', {}, { authorization: 'Bearer a' }).then(({ json }) => textOf(json)),
  ]);
  expect(pids).toEqual(Array(4).fill(String(started()[0])));
  expect(started()).toHaveLength(1);
  expect(received('initialize').map(({ params }) => params)).toEqual([
    expect.objectContaining({ protocolVersion: '2025-11-25', capabilities: {} }),
  ]);
  expect(received('notifications/initialized')).toHaveLength(1);
  expect(sessions.map(({ initialize }) => initialize.json.result.protocolVersion)).toEqual([
    '2024-11-05',
    '2025-11-25',
  ]);
});

test('log messages and requests of the server during the handshake are not taken for its response', async () => {
  const early = [
    { jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'starting' } },
    { jsonrpc: '2.0', id: 'early', method: 'ping' },
  ];
  const banner = early.map((message) => `${JSON.stringify(message)}\n`).join('');
  for (let i = 0; i < 3; i++) {
    const { url } = await startRig({ backend, server: { banner } });
    expect(textOf((await callModern(url, 'pid')).json)).toMatch(/^\d+$/);
    expect(textOf((await call(await legacy(url), 'pid')).json)).toMatch(/^\d+$/);
  }
});

test('ids and progress tokens of sessions do not collide', async () => {
  const { url, received } = await startRig({ backend });
  const sessions = await Promise.all([legacy(url), legacy(url), legacy(url)]);
  const answers = await Promise.all(
    sessions.map((session) =>
      session.request(
        'tools/call',
        { name: 'slow', arguments: { ms: 60, steps: 3 }, _meta: { progressToken: 'p' } },
        { id: 5 },
      ),
    ),
  );
  for (const { json, messages } of answers) {
    expect(json).toMatchObject({ id: 5, result: { content: [{ text: 'done' }] } });
    expect(messages.map(({ params }) => [params.progressToken, params.progress])).toEqual([
      ['p', 1],
      ['p', 2],
      ['p', 3],
    ]);
  }
  expect(new Set(received('tools/call').map(({ id }) => id)).size).toBe(3);
});

test('a cancellation reaches the request that it names', async () => {
  const { url, received } = await startRig({ backend });
  const sessions = await Promise.all([legacy(url), legacy(url)]);
  const hanging = sessions.map((session, i) =>
    call(session, 'hang', { i }, { id: 1 }).catch(() => undefined),
  );
  await until(() => received('tools/call').length === 2, 'the calls');
  await sessions[1]?.notify('notifications/cancelled', { requestId: 1 });
  await until(() => received('notifications/cancelled').length === 1, 'the cancellation');
  const second = received('tools/call').find(({ params }) => params.arguments.i === 1);
  expect(received('notifications/cancelled')[0]?.params.requestId).toBe(second.id);
  await Promise.all(sessions.map((session) => session.delete()));
  await Promise.all(hanging);
});

test('the process outlives a session, and sessions outlive the process', async () => {
  const { gateway, url, running, started } = await startRig({ backend });
  const [one, two] = await Promise.all([legacy(url), legacy(url)]);
  await one.delete();
  const [pid] = running();
  expect(textOf((await call(two, 'pid')).json)).toBe(String(pid));
  expect(detailOf(gateway, await call(two, 'kill'))).toContain('SIGKILL');
  await until(() => !isAlive(pid ?? 0), 'the process to end');
  expect(textOf((await call(two, 'pid')).json)).toBe(String(started()[1]));
  expect((await callModern(url, 'pid')).status).toBe(200);
  expect(started()).toHaveLength(2);
});

test('server requests are refused, since they cannot be assigned to a caller', async () => {
  const { url } = await startRig({ backend });
  const session = await legacy(url, { capabilities: { elicitation: {} } });
  const asked = {
    method: 'elicitation/create',
    params: { message: 'Who?', requestedSchema: { type: 'object' } },
  };
  expect(textOf((await call(session, 'ask', asked)).json)).toContain('there is no client that could answer');
});

test('log messages are passed on where there is only one session', async () => {
  const { url } = await startRig({ backend });
  const one = await legacy(url);
  expect((await call(one, 'log', { data: 'x' })).messages.map(({ params }) => params.data)).toEqual(['x']);
  const two = await legacy(url);
  const answers = await Promise.all([call(one, 'log', { data: 'secret' }), call(two, 'slow', { ms: 100 })]);
  expect(answers.flatMap(({ messages }) => messages)).toEqual([]);
});

test('changes of lists reach all sessions, updates of resources those that are subscribed', async () => {
  const { url, received } = await startRig({ backend });
  const sessions = await Promise.all([legacy(url), legacy(url)]);
  const streams = await Promise.all(sessions.map((session) => session.listen()));
  for (const session of sessions) await session.request('resources/subscribe', { uri: 'file:///both' });
  await sessions[0]?.request('resources/subscribe', { uri: 'file:///one' });
  const told = () => streams.map(({ events }) => events.map(({ json }) => json.params?.uri ?? json.method));
  await call(sessions[0] as LegacySession, 'change');
  await until(() => told().every((list) => list.includes('notifications/tools/list_changed')), 'the change');
  await call(sessions[0] as LegacySession, 'update', { uri: 'file:///one' });
  // Another resource, though its URI begins alike.
  await call(sessions[0] as LegacySession, 'update', { uri: 'file:///both-and-more' });
  await call(sessions[0] as LegacySession, 'update', { uri: 'file:///both/part' });
  await call(sessions[0] as LegacySession, 'update', { uri: 'file:///both' });
  await until(() => told().every((list) => list.includes('file:///both')), 'the update');
  expect(told().map((list) => list.includes('file:///one'))).toEqual([true, false]);
  expect(told().map((list) => list.includes('file:///both/part'))).toEqual([true, true]);
  expect(told().flat()).not.toContain('file:///both-and-more');
  // The server gets the unsubscribe once no session is subscribed.
  await sessions[0]?.request('resources/unsubscribe', { uri: 'file:///both' });
  expect(received('resources/unsubscribe')).toEqual([]);
  await sessions[1]?.request('resources/unsubscribe', { uri: 'file:///both' });
  expect(received('resources/unsubscribe')).toHaveLength(1);
  await sessions[0]?.delete();
  await until(() => received('resources/unsubscribe').length === 2, 'the end of the last subscription');
});

test('all waiting callers get the error of a server that refuses or never answers, and its process is ended', async () => {
  const refusing = await startRig({ backend, server: { refuse: true } });
  const answers = await Promise.all([legacy(refusing.url), legacy(refusing.url)]);
  for (const { initialize } of answers)
    expect(initialize.json.error.message).toContain('refused the handshake');
  await until(() => refusing.running().length === 0, 'the process to end');

  const silent = await startRig({
    backend,
    server: { silentOn: '*' },
    route: { timeouts: { start: '200ms' } },
  });
  const both = await Promise.all([legacy(silent.url), callModern(silent.url, 'pid')]);
  expect(both[0].initialize.json.error.message).toContain('did not answer initialize in time');
  await until(() => silent.running().length === 0, 'the process to end');
});

test('a process without sessions is ended as idle', async () => {
  const { url, running } = await startRig({ backend, route: { sessions: { idle: '200ms' } } });
  const session = await legacy(url);
  expect(running()).toHaveLength(1);
  await session.delete();
  await until(() => running().length === 0, 'the process to end');
});
