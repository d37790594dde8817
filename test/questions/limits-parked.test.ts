import { describe, expect, test } from 'vitest';
import { type Loose, sleep, until } from '../support/net.js';
import { useVirtualTime } from '../support/virtual-time.js';
import { askingRoutes } from './asking-route.js';
import {
  type AskingBackend,
  accept,
  all,
  bearer,
  form,
  prompt,
  text,
  toolText,
  trafficDuring,
} from './scripted.js';

useVirtualTime();

const { setUp } = askingRoutes();

/** What the backend was told of a call, in order: answers to its questions, and the cancellation. */
function fateOf(
  backend: AskingBackend,
  call: { session: string | undefined; id: Loose } | undefined,
): Loose[] {
  return backend.requests
    .filter(({ headers, json }) => headers['mcp-session-id'] === call?.session && json !== undefined)
    .map(({ json }) => json)
    .filter(({ method }) => method === undefined || method === 'notifications/cancelled')
    .map(({ method, params, result, error }) => (method ? params.requestId : (result ?? error.code)));
}

describe('more calls that wait for answers than there may be', () => {
  test('the caller is told so at once, the server is refused in its own words and the call cancelled', async () => {
    const { backend, caller } = await setUp({ questions: { maxParked: 2 } });
    const parked = await all([0, 1], () => caller().asked());
    const third = await caller().start();
    expect(third.status).toBe(503);
    expect(third.json.error).toMatchObject({
      code: -32603,
      message: expect.stringMatching(/limit of 2 calls that wait/),
    });
    expect(third.headers['retry-after']).toBe('1');
    const call = backend.calls[2];
    await until(() => fateOf(backend, call).length === 2, 'the refusal and the cancellation');
    expect(fateOf(backend, call)).toEqual([{ action: 'cancel' }, call?.id]);
    await until(() => call?.stream.closed, 'the end of the refused call');

    // The ones that wait are not touched, and one that is done makes room.
    const [first, second] = parked as [Loose, Loose];
    expect(toolText(await caller().retry(first.state, { [first.key]: accept('1') }))).toBe('1');
    const again = await caller().asked();
    expect(toolText(await caller().retry(second.state, { [second.key]: accept('2') }))).toBe('2');
    expect(toolText(await caller().retry(again.state, { [again.key]: accept('3') }))).toBe('3');
  });

  test('a question that has no answer for that is answered with an error', async () => {
    const { backend, caller } = await setUp({ questions: { maxParked: 1 } });
    await caller().asked();
    backend.tool(async ({ ask }) => text((await ask('sampling/createMessage', prompt('?'))).error.message));
    const refused = await caller().start();
    expect(refused.status).toBe(503);
    const call = backend.calls[1];
    await until(() => fateOf(backend, call).length === 2, 'the refusal and the cancellation');
    expect(fateOf(backend, call)).toEqual([-32603, call?.id]);
  });

  test('of one principal: others go on', async () => {
    const { caller } = await setUp({ questions: { maxParkedPerPrincipal: 2 } });
    const ada = bearer('ada');
    const rounds = await all([0, 1], () => caller(ada).asked());
    const refused = await caller(ada).start();
    expect([refused.status, refused.json.error.message]).toEqual([
      503,
      expect.stringContaining('limit of 2 calls of one principal'),
    ]);
    await caller(bearer('alan')).asked();
    const [round] = rounds as [Loose];
    expect(toolText(await caller(ada).retry(round.state, { [round.key]: accept('x') }))).toBe('x');
    await caller(ada).asked();
  });

  test('of callers without a credential together, where the limit is set', async () => {
    const { caller } = await setUp({ questions: { maxParkedPerPrincipal: 1 } });
    await caller().asked();
    const refused = await caller().start();
    expect([refused.status, refused.json.error.message]).toEqual([
      503,
      expect.stringContaining('limit of 1 calls of callers without a credential'),
    ]);
    await caller(bearer('ada')).asked();
  });

  test('further rounds of a call that waits need no further place', async () => {
    const { backend, caller } = await setUp({ questions: { maxParked: 1 } });
    backend.tool(async ({ elicit }) =>
      text(`${await elicit('1?')}${await elicit('2?')}${await elicit('3?')}`),
    );
    let { state, key } = await caller().asked();
    for (const value of ['a', 'b']) {
      const answer = await caller().retry(state, { [key]: accept(value) });
      state = answer.json.result.requestState;
      key = Object.keys(answer.json.result.inputRequests)[0] as string;
    }
    expect(toolText(await caller().retry(state, { [key]: accept('c') }))).toBe('abc');
  });
});

describe('nobody answers in time', () => {
  const QUICK = { timeout: '400ms' };

  test.each<[string, Loose, Loose]>([
    ['elicitation/create', form('?'), { action: 'cancel' }],
    [
      'elicitation/create',
      { mode: 'url', url: 'https://a.example', elicitationId: '1', message: '?' },
      { action: 'cancel' },
    ],
    ['sampling/createMessage', prompt('?'), -32603],
  ])('%s: the server is told, the call cancelled, and its session is free', async (method, params, fate) => {
    const { backend, caller } = await setUp({ questions: QUICK });
    backend.tool(async ({ ask, cancelled }) => {
      const stopped = cancelled();
      await ask(method, params);
      await stopped;
      return undefined;
    });
    const round = await caller().asked();
    const [call] = backend.calls;
    await until(() => fateOf(backend, call).length === 2, 'the answer and the cancellation');
    expect(fateOf(backend, call)).toEqual([fate, call?.id]);
    await until(() => call?.stream.closed, 'the end of the call');
    const traffic = await trafficDuring(backend, async () => {
      const late = await caller().retry(round.state, { [round.key]: accept('late') });
      expect([late.status, late.json.error.code]).toEqual([400, -32602]);
      expect(late.json.error.message).toContain('expired');
    });
    expect(traffic).toEqual([]);
    // The next call has the session of the one that is over.
    backend.tool(async () => text('plain'));
    expect(toolText(await caller().start())).toBe('plain');
    expect(backend.calls[1]?.session).toBe(call?.session);
    expect(backend.received('initialize')).toHaveLength(1);
  });

  test('every question of the call is answered so', async () => {
    const { backend, caller } = await setUp({ questions: QUICK });
    backend.tool(async ({ ask }) => {
      await Promise.all([
        ask('elicitation/create', form('1?')),
        ask('sampling/createMessage', prompt('2?')),
        ask('elicitation/create', form('3?')),
      ]);
      return undefined;
    });
    await caller().asked();
    const [call] = backend.calls;
    await until(() => fateOf(backend, call).length === 4, 'the answers and the cancellation');
    expect(fateOf(backend, call)).toEqual([{ action: 'cancel' }, -32603, { action: 'cancel' }, call?.id]);
  });

  test('each round has the whole time', async () => {
    const { backend, caller } = await setUp({ questions: { timeout: '1500ms' } });
    backend.tool(async ({ elicit }) => text(`${await elicit('1?')}${await elicit('2?')}`));
    const first = await caller().asked();
    await sleep(1_000);
    const answer = await caller().retry(first.state, { [first.key]: accept('a') });
    const { requestState, inputRequests } = answer.json.result;
    await sleep(1_000);
    const [key] = Object.keys(inputRequests) as [string];
    expect(toolText(await caller().retry(requestState, { [key]: accept('b') }))).toBe('ab');
  });

  test('to come back without an answer, however often, is not to have more time for it', async () => {
    const { backend, caller } = await setUp({ questions: { timeout: '900ms', maxParked: 1 } });
    backend.tool(async ({ ask, cancelled }) => {
      const stopped = cancelled();
      await Promise.all([ask('elicitation/create', form('1?')), ask('elicitation/create', form('2?'))]);
      await stopped;
      return undefined;
    });
    const round = await caller().asked();
    let state = round.state;
    let rounds = 0;
    let last: Loose;
    // The other question stays open, whatever is answered beside it.
    const answers = { [round.key]: accept('a') };
    const deadline = performance.now() + 10_000;
    do {
      last = await caller().retry(state, rounds++ === 0 ? answers : {});
      state = last.json.result?.requestState;
    } while (state !== undefined && performance.now() < deadline);
    expect(rounds).toBeGreaterThan(3);
    expect(last.json.error.message).toContain('nobody answered in time');
    const [call] = backend.calls;
    await until(() => fateOf(backend, call).length === 3, 'the answers and the cancellation');
    expect(fateOf(backend, call)).toEqual([
      expect.objectContaining({ action: 'accept' }),
      { action: 'cancel' },
      call?.id,
    ]);
    // And its place is free.
    await caller().asked();
  });

  test('a place is free again for each that has expired', async () => {
    const { backend, caller } = await setUp({ questions: { timeout: '300ms', maxParked: 3 } });
    for (let wave = 0; wave < 3; wave++) {
      await all([0, 1, 2], () => caller().asked());
      await until(() => backend.cancels.length === (wave + 1) * 3, 'the cancellations');
    }
    expect(backend.received('initialize')).toHaveLength(3);
  });

  test('an outcome that nobody fetches is forgotten', async () => {
    const { backend, caller } = await setUp({ questions: { timeout: '400ms', maxParked: 1 } });
    backend.tool(async ({ ask }) => {
      void ask('elicitation/create', form('?'));
      await sleep(60);
      return text('without an answer');
    });
    await caller().asked();
    await sleep(150);
    expect((await caller().start()).status).toBe(503);
    await sleep(700);
    const round = await caller().asked();
    await sleep(100);
    expect(toolText(await caller().retry(round.state, {}))).toBe('without an answer');
    expect(backend.cancels.length).toBe(1);
  });
});

describe('the time of people is not that of servers', () => {
  test('a person may take longer than the whole call may', async () => {
    const { backend, caller } = await setUp({ timeouts: { total: '500ms', idle: '300ms' } });
    const round = await caller().asked();
    await sleep(1_200);
    expect(toolText(await caller().retry(round.state, { [round.key]: accept('slow') }))).toBe('slow');
    expect(backend.cancels).toEqual([]);
  });

  test('after the answer, the server has the time of a call again', async () => {
    const { backend, caller } = await setUp({ timeouts: { total: '600ms' } });
    backend.tool(async ({ elicit, cancelled }) => {
      await elicit('?');
      await cancelled();
      return undefined;
    });
    const round = await caller().asked();
    await sleep(700);
    const startedAt = performance.now();
    const answer = await caller().retry(round.state, { [round.key]: accept('x') });
    expect([answer.status, answer.json.error.code]).toEqual([504, -32603]);
    expect(performance.now() - startedAt).toBeGreaterThan(500);
    await until(() => backend.cancels.length === 1, 'the cancellation');
    // It is over: no other retry finds the call.
    expect((await caller().retry(round.state, {})).json.error.code).toBe(-32602);
  });

  test('between rounds too', async () => {
    const { backend, caller } = await setUp({ timeouts: { total: '1200ms' } });
    backend.tool(async ({ elicit }) => {
      const first = await elicit('1?');
      await sleep(800);
      const second = await elicit('2?');
      await sleep(800);
      return text(first + second);
    });
    const round = await caller().asked();
    const answer = await caller().retry(round.state, { [round.key]: accept('a') });
    const { requestState, inputRequests } = answer.json.result;
    const [key] = Object.keys(inputRequests) as [string];
    expect(toolText(await caller().retry(requestState, { [key]: accept('b') }))).toBe('ab');
  });
});

test('one session for each call is acquired and given back in the same way', async () => {
  const { backend, caller } = await setUp({
    sessions: { isolation: 'call', max: 1 },
    questions: { timeout: '500ms' },
  });
  const rounds = await all([0, 1, 2], () => caller().asked());
  expect(backend.sessions.size).toBe(3);
  const [round] = rounds as [Loose];
  expect(toolText(await caller().retry(round.state, { [round.key]: accept('x') }))).toBe('x');
  await until(() => backend.sessions.size === 0, 'the sessions to be ended');
  expect(backend.cancels).toHaveLength(2);
});

test('a server that asks hundreds of questions at once is refused beyond a limit, and only those', async () => {
  const { backend, caller } = await setUp();
  let refused = 0;
  backend.tool(async ({ ask }) => {
    const answers = await all(Array(400), () => ask('elicitation/create', form('?')));
    refused = answers.filter(({ error }) => error !== undefined).length;
    return text(`${answers.length - refused}`);
  });
  const round = await caller().asked();
  const count = round.keys.length;
  expect(count).toBeLessThanOrEqual(100);
  const responses = Object.fromEntries(round.keys.map((key) => [key, accept('x')]));
  expect(toolText(await caller().retry(round.state, responses))).toBe(`${count}`);
  expect(refused).toBe(400 - count);
});
