import { expect, test } from 'vitest';
import { startGateway } from '../support/gateway.js';
import { sleep, until } from '../support/net.js';
import { modern } from '../support/raw.js';
import { useVirtualTime } from '../support/virtual-time.js';
import { askingRoutes } from './asking-route.js';
import {
  accept,
  all,
  bearer,
  ModernCaller,
  readQuestions,
  shuffled,
  startAskingBackend,
} from './scripted.js';

useVirtualTime();

const COUNT = 50;
const { keep, setUp } = askingRoutes();

/** The text of the one question of a round. */
const asked = (response: { json: { result: { inputRequests: object } } }): string =>
  Object.values(response.json.result.inputRequests).map(({ params }) => params.message)[0];

test('fifty calls wait for a person each, and each gets the answer that its own person gave', async () => {
  const { backend, gateway } = await setUp();
  const callers = Array.from({ length: COUNT }, (_, key) => new ModernCaller(gateway.url(), { key }));
  const rounds = await all(callers, (caller) => caller.asked());
  expect(rounds.map(({ response }) => asked(response))).toEqual(callers.map((_, key) => `Value for ${key}?`));
  expect(backend.calls).toHaveLength(COUNT);

  // Calls that ask nothing go on meanwhile, of clients that can be asked and of others.
  const plain = await modern(gateway.url(), 'tools/list', {}, { capabilities: { elicitation: {} } });
  expect(plain.json.result.tools).toHaveLength(1);
  const other = await modern(gateway.url(), 'tools/list');
  expect(other.json.result.tools).toHaveLength(1);

  const results = new Map<number, string>();
  const order = shuffled(COUNT);
  await all(order, async (key, index) => {
    await sleep(index * 3);
    const round = rounds[key];
    if (round === undefined) throw new Error('unreachable');
    const answer = await (callers[key] as ModernCaller).retry(round.state, {
      [round.key]: accept(`answer ${key}`),
    });
    results.set(key, answer.json.result.content[0].text);
  });
  expect([...results].sort(([a], [b]) => a - b)).toEqual(callers.map((_, key) => [key, `answer ${key}`]));
  // Each question was answered once, under its own id, on the session that it came from.
  expect(backend.answers).toHaveLength(COUNT);
  for (const call of backend.calls) {
    const own = backend.answers.filter(({ session }) => session === call.session);
    expect(own.map(({ json }) => json.result.content.value)).toEqual([`answer ${call.args.key}`]);
  }
});

test('calls that wait for a person hold nobody up, and are answered one by one', async () => {
  const { backend, gateway } = await setUp();
  const callers = Array.from({ length: COUNT }, (_, key) => new ModernCaller(gateway.url(), { key }));
  const rounds = await all(callers, (caller) => caller.asked());
  for (const key of shuffled(COUNT).slice(0, 10)) {
    const startedAt = performance.now();
    const round = rounds[key];
    const answer = await (callers[key] as ModernCaller).retry(round?.state, {
      [round?.key ?? '']: accept(`${key}`),
    });
    expect(answer.json.result.content[0].text).toBe(`${key}`);
    expect(performance.now() - startedAt).toBeLessThan(2_000);
  }
  expect(backend.answers).toHaveLength(10);
  expect(backend.cancels).toHaveLength(0);
});

test('questions and sessions of five principals never cross', async () => {
  const { backend, gateway } = await setUp();
  const principals = ['ada', 'alan', 'grace', 'edsger', 'barbara'];
  const people = Array.from({ length: COUNT }, (_, key) => ({
    key,
    name: principals[key % principals.length] as string,
  }));
  const callers = people.map(({ key, name }) => new ModernCaller(gateway.url(), { key, name }, bearer(name)));
  const rounds = await all(callers, (caller) => caller.asked());
  // Someone else's state opens nothing, also where it is that of a call that is parked right now.
  const stranger = await modern(
    gateway.url(),
    'tools/call',
    { ...callers[0]?.params, requestState: rounds[0]?.state },
    { ...callers[0]?.options, ...bearer('alan') },
  );
  expect([stranger.status, stranger.json.error.code]).toEqual([400, -32602]);

  await all(shuffled(COUNT), async (key) => {
    const round = rounds[key];
    const caller = callers[key] as ModernCaller;
    const answer = await caller.retry(round?.state, { [round?.key ?? '']: accept(`answer ${key}`) });
    expect(answer.json.result.content[0].text).toBe(`answer ${key}`);
  });
  // A second wave runs on sessions that were used before, each by calls of their principal alone.
  await all(callers, async (caller) => {
    const round = await caller.asked();
    await caller.retry(round.state, { [round.key]: accept('again') });
  });

  const owners = new Map<string, Set<string>>();
  for (const request of backend.requests) {
    const session = request.headers['mcp-session-id'];
    if (typeof session !== 'string') continue;
    const names = owners.get(session) ?? new Set();
    owners.set(session, names.add(request.headers.authorization ?? 'nobody'));
  }
  for (const names of owners.values()) expect(names.size).toBe(1);
  for (const call of backend.calls) {
    expect(call.authorization).toBe(`Bearer ${call.args.name}`);
    expect(owners.get(call.session ?? '')).toEqual(new Set([`Bearer ${call.args.name}`]));
  }
  for (const answer of backend.answers)
    expect(owners.get(answer.session ?? '')).toEqual(new Set([answer.authorization]));
});

test('one principal has two calls at once: only the one that asks is asked', async () => {
  const { backend, gateway } = await setUp();
  backend.tool(async ({ args, elicit }) => ({
    content: [{ type: 'text', text: args.quiet ? 'plain' : await elicit('Value?') }],
  }));
  const loud = new ModernCaller(gateway.url(), {}, bearer('ada'));
  const quiet = new ModernCaller(gateway.url(), { quiet: true }, bearer('ada'));
  const [round, plain] = await Promise.all([loud.asked(), quiet.start()]);
  expect(plain.json.result.content[0].text).toBe('plain');
  const answer = await loud.retry(round.state, { [round.key]: accept('mine') });
  expect(answer.json.result.content[0].text).toBe('mine');
});

test('two people share the one credential that the backend knows: neither sees the question of the other', async () => {
  const backend = await startAskingBackend({}, async ({ args, elicit }) => ({
    content: [{ type: 'text', text: args.quiet ? 'plain' : await elicit('Whose?') }],
  }));
  await keep(backend);
  const shared = { url: backend.url, authorization: 'drop', headers: { authorization: 'Bearer shared' } };
  const gateway = await startGateway({ '/mcp': { backend: shared } });
  await keep(gateway);
  const ada = new ModernCaller(gateway.url(), {}, bearer('ada'));
  const alan = new ModernCaller(gateway.url(), {}, bearer('alan'));
  const [round, plain] = await Promise.all([
    ada.asked(),
    new ModernCaller(gateway.url(), { quiet: true }, bearer('alan')).start(),
  ]);
  expect(plain.json.result.content[0].text).toBe('plain');
  expect(plain.events.length).toBeLessThanOrEqual(1);
  const stolen = await alan.retry(round.state, { [round.key]: accept('alan') });
  expect([stolen.status, stolen.json.error.code]).toEqual([400, -32602]);
  const own = await alan.asked();
  expect((await alan.retry(own.state, { [own.key]: accept('alan') })).json.result.content[0].text).toBe(
    'alan',
  );
  expect((await ada.retry(round.state, { [round.key]: accept('ada') })).json.result.content[0].text).toBe(
    'ada',
  );
  const sessions = backend.calls.map(({ session, args }) => [session, args.quiet === true]);
  const quiet = sessions.filter(([, isQuiet]) => isQuiet).map(([session]) => session);
  // The person who asked nothing had no part in the session of the one who was asked.
  expect(quiet).not.toContain(backend.calls.find(({ args }) => !args.quiet)?.session);
  for (const { authorization } of backend.calls) expect(authorization).toBe('Bearer shared');
});

test('calls beyond the limit of sessions go on while others wait for people', async () => {
  const { backend, gateway } = await setUp({ sessions: { max: 2 } });
  const callers = Array.from({ length: 12 }, (_, key) => new ModernCaller(gateway.url(), { key }));
  const rounds = await all(callers, (caller) => caller.asked());
  // All wait now. A call that asks nothing, and one more that asks, get through.
  backend.tool(async () => ({ content: [{ type: 'text', text: 'plain' }] }));
  const plain = await new ModernCaller(gateway.url(), { key: 'plain' }).start();
  expect(plain.json.result.content[0].text).toBe('plain');
  const results = await all(rounds, async (round, key) =>
    (callers[key] as ModernCaller).retry(round.state, { [round.key]: accept(`${key}`) }),
  );
  expect(results.map(({ json }) => json.result.content[0].text)).toEqual(callers.map((_, key) => `${key}`));
  // What was opened for the waiting calls beyond the limit is ended when they are done.
  await until(() => backend.sessions.size <= 2, 'the sessions beyond the limit to be ended');
});

test('every session keeps to the calls of one client at a time', async () => {
  const { backend, gateway } = await setUp({ sessions: { max: 4 } });
  const callers = Array.from({ length: 20 }, (_, key) => new ModernCaller(gateway.url(), { key }));
  const running = new Set<string | undefined>();
  backend.tool(async ({ session, args, elicit }) => {
    expect(running.has(session)).toBe(false);
    running.add(session);
    const value = await elicit(`Value for ${args.key}?`);
    running.delete(session);
    return { content: [{ type: 'text', text: value }] };
  });
  const texts = await all(callers, async (caller, key) => {
    const round = readQuestions(await caller.start());
    await sleep(Math.random() * 50);
    const answer = await caller.retry(round.state, { [round.key]: accept(`${key}`) });
    return answer.json.result.content[0].text;
  });
  expect(texts).toEqual(callers.map((_, key) => `${key}`));
});
