import { describe, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../support/gateway.js';
import { keeper } from '../support/keeper.js';
import type { ScriptedBackend } from '../support/misbehave.js';
import { type Loose, sleep, until } from '../support/net.js';
import type { LegacySession, RawStream } from '../support/raw.js';
import { useVirtualTime } from '../support/virtual-time.js';
import {
  accept,
  answerTo,
  asking,
  done,
  elicitation,
  legacyClient,
  prompt,
  questionOn,
  type Round,
  startRoundsBackend,
  textIn,
} from './scripted.js';

useVirtualTime();

const keep = keeper();

interface Rig {
  backend: ScriptedBackend;
  gateway: TestGateway;
  session: LegacySession;
}

async function setUp(round: Round, options: Loose = {}): Promise<Rig> {
  const backend = await startRoundsBackend(round);
  const gateway = await startGateway(
    { '/mcp': { backend: { url: backend.url, era: 'modern' }, questions: options.questions ?? {} } },
    options.config,
  );
  await keep(backend);
  await keep(gateway);
  return { backend, gateway, session: await legacyClient(gateway.url(), options.client) };
}

/** A client that could come back would be waited for. */
const GOES_FOR_GOOD = { config: { limits: { replay: 0 } } };

const call = ({ session }: Rig, id: unknown = 1): Promise<RawStream> =>
  session.open('tools/call', { name: 'ask', arguments: { key: 1 } }, { id });

async function outcomeOf(stream: RawStream): Promise<Loose> {
  return (await stream.done).json;
}

describe('rounds of questions of a modern server, to a legacy client', () => {
  test('each answer goes back with the state as it was, and the next round begins', async () => {
    const states = ['{"é":1}', ' "quoted" \\ \u{1F600}', 'x'.repeat(20_000)];
    const rig = await setUp((params) => {
      const at = states.indexOf(params.requestState);
      if (at === states.length - 1) return done(JSON.stringify(params.inputResponses));
      return asking({ [`q${at + 1}`]: elicitation(`Round ${at + 2}?`) }, states[at + 1]);
    });
    const stream = await call(rig);
    for (const round of [1, 2, 3]) {
      const question = await questionOn(stream);
      expect(question.params.message).toBe(`Round ${round}?`);
      await answerTo(rig.session, question, accept(`${round}`));
    }
    expect(textIn(await outcomeOf(stream))).toBe(JSON.stringify({ q2: accept('3') }));
    const sent = rig.backend.received('tools/call').map(({ json }) => json.params);
    expect(sent.map(({ requestState }) => requestState)).toEqual([undefined, ...states]);
    for (const params of sent) expect(params).toMatchObject({ name: 'ask', arguments: { key: 1 } });
    // The id is another one each time (basic/patterns/mrtr, "Client Requirements").
    expect(new Set(rig.backend.received('tools/call').map(({ json }) => json.id)).size).toBe(4);
  });

  test('a round without a state is answered without one', async () => {
    const rig = await setUp((params) =>
      params.inputResponses ? done(`${'requestState' in params}`) : asking({ a: elicitation('?') }),
    );
    const stream = await call(rig);
    await answerTo(rig.session, await questionOn(stream), accept('x'));
    expect(textIn(await outcomeOf(stream))).toBe('false');
  });

  test('a state that was replaced is not sent again, and answers of an earlier round neither', async () => {
    const rig = await setUp((params) => {
      if (params.requestState === undefined && params.inputResponses === undefined)
        return asking({ a: elicitation('A?') }, 'one');
      if (params.requestState === 'one') return asking({ b: elicitation('B?') });
      return done(JSON.stringify([params.requestState ?? null, params.inputResponses]));
    });
    const stream = await call(rig);
    await answerTo(rig.session, await questionOn(stream), accept('a'));
    await answerTo(rig.session, await questionOn(stream), accept('b'));
    expect(textIn(await outcomeOf(stream))).toBe(JSON.stringify([null, { b: accept('b') }]));
  });

  test.each([1, 3, 10])('no more than %i rounds, then the tool has failed', async (rounds) => {
    const rig = await setUp(() => asking({ a: elicitation('Again?') }, 's'), {
      config: { limits: { rounds } },
    });
    const stream = await call(rig);
    for (let n = 0; n < rounds; n++) await answerTo(rig.session, await questionOn(stream), accept('x'));
    const { result } = await outcomeOf(stream);
    expect(result.isError).toBe(true);
    expect(result.content[0].text).toContain(`more than ${rounds} rounds`);
    expect(rig.backend.received('tools/call')).toHaveLength(rounds + 1);
  });

  test('rounds that ask nothing are paced, with growing pauses', async () => {
    const at: number[] = [];
    const rig = await setUp(
      (params) => {
        at.push(performance.now());
        return asking(undefined, `${Number(params.requestState ?? 0) + 1}`);
      },
      { config: { limits: { rounds: 3 } } },
    );
    const { result } = await outcomeOf(await call(rig));
    expect(result.isError).toBe(true);
    expect(at).toHaveLength(4);
    const pauses = at.slice(1).map((time, index) => time - (at[index] as number));
    for (const [index, least] of [240, 480, 960].entries()) expect(pauses[index]).toBeGreaterThan(least);
  });

  test('a page that has been accepted already is asked for again after a pause only', async () => {
    const url = 'https://example.com/pay';
    const at: number[] = [];
    const rig = await setUp((params) => {
      at.push(performance.now());
      const count = Number(params.requestState ?? 0);
      if (count === 2) return done('paid');
      const request = { method: 'elicitation/create', params: { mode: 'url', url, message: 'Pay' } };
      return asking({ pay: request }, `${count + 1}`);
    });
    const stream = await call(rig);
    const ids: string[] = [];
    for (let n = 0; n < 2; n++) {
      const question = await questionOn(stream);
      ids.push(question.params.elicitationId);
      await answerTo(rig.session, question, { action: 'accept' });
    }
    const response = await stream.done;
    expect(textIn(response.json)).toBe('paid');
    expect((at[2] as number) - (at[1] as number)).toBeGreaterThan(900);
    expect(new Set(ids).size).toBe(2);
    const completed = response.messages.filter(
      ({ method }) => method === 'notifications/elicitation/complete',
    );
    expect(completed.map(({ params }) => params.elicitationId)).toEqual(ids);
  });

  test.each<[string, Loose]>([
    ['nothing at all', { resultType: 'input_required' }],
    ['no questions and a state that is no string', asking({}, 7)],
    ['questions that are a list', asking([elicitation('?')], 's')],
    ['questions that are a string', asking('elicitation', 's')],
    ['a question that is null', asking({ a: null }, 's')],
    ['a question without a method', asking({ a: { params: {} } }, 's')],
    ['a question whose params are a list', asking({ a: { method: 'elicitation/create', params: [] } }, 's')],
    ['what is no question', asking({ a: { method: 'tools/list', params: {} } }, 's')],
  ])('a server that asks for %s fails the tool in words', async (_name, result) => {
    const rig = await setUp(() => result);
    const outcome = await outcomeOf(await call(rig));
    expect(outcome.result?.isError).toBe(true);
    expect(outcome.result.content[0].text).toMatch(/^Cannot request input: /);
    expect(rig.backend.received('tools/call')).toHaveLength(1);
  });

  test('for a prompt or a resource, what cannot be asked is an error', async () => {
    const rig = await setUp(() => undefined);
    rig.backend.on('prompts/get', () => ({ result: asking({ a: elicitation('?') }, 's') }));
    rig.backend.on('resources/read', () => ({ result: asking({ a: { method: 'x' } }, 's') }));
    const silent = await legacyClient(rig.gateway.url(), { capabilities: {} });
    const asked = await silent.request('prompts/get', { name: 'p' });
    expect(asked.json.error).toEqual({
      code: -32603,
      message: expect.stringContaining('did not declare elicitation'),
      data: { eragate: 'ERAGATE_INPUT_FAILED' },
    });
    const read = await rig.session.request('resources/read', { uri: 'file:///a' });
    expect(read.json.error).toEqual({
      code: -32603,
      message: expect.stringContaining('Cannot request input'),
      data: { eragate: 'ERAGATE_INPUT_FAILED' },
    });
  });
});

describe('what a client says to a question', () => {
  test.each<[string, Loose, (id: unknown) => Loose, Loose]>([
    ['declined', elicitation('?'), (id) => ({ id, result: { action: 'decline' } }), { action: 'decline' }],
    ['cancelled', elicitation('?'), (id) => ({ id, result: { action: 'cancel' } }), { action: 'cancel' }],
    [
      'an error, for an elicitation',
      elicitation('?'),
      (id) => ({ id, error: { code: -32603, message: 'no window' } }),
      { action: 'cancel' },
    ],
    [
      'an error, for roots',
      { method: 'roots/list' },
      (id) => ({ id, error: { code: -32601, message: 'Method not found' } }),
      { roots: [] },
    ],
  ])('%s is an answer and is passed on as one', async (_name, request, answer, expected) => {
    const rig = await setUp((params) =>
      params.inputResponses ? done(JSON.stringify(params.inputResponses)) : asking({ a: request }, 's'),
    );
    const stream = await call(rig);
    const question = await questionOn(stream);
    await rig.session.post({ jsonrpc: '2.0', ...answer(question.id) });
    expect(textIn(await outcomeOf(stream))).toBe(JSON.stringify({ a: expected }));
  });

  test('an error to a sampling request fails the tool with what the client said', async () => {
    const rig = await setUp(() =>
      asking({ a: { method: 'sampling/createMessage', params: prompt('?') }, b: elicitation('?') }, 's'),
    );
    const stream = await call(rig);
    const one = await questionOn(stream);
    const other = await questionOn(stream);
    const sampling = [one, other].find(({ method }) => method === 'sampling/createMessage');
    const form = [one, other].find(({ method }) => method === 'elicitation/create');
    await rig.session.post({
      jsonrpc: '2.0',
      id: sampling.id,
      error: { code: -1, message: 'User rejected' },
    });
    const response = await stream.done;
    expect(response.json.result.isError).toBe(true);
    expect(textIn(response.json)).toContain('User rejected');
    // The other question of the round is taken back.
    const cancelled = response.messages.filter(({ method }) => method === 'notifications/cancelled');
    expect(cancelled.map(({ params }) => params.requestId)).toEqual([form.id]);
    expect(rig.backend.received('tools/call')).toHaveLength(1);
  });

  test('an answer to a question that is over, or was never asked, is taken and dropped', async () => {
    const rig = await setUp((params) =>
      params.inputResponses ? done('ok') : asking({ a: elicitation('?') }, 's'),
    );
    const stream = await call(rig);
    const question = await questionOn(stream);
    for (const id of ['eragate:999', 0, '0', 1, question.id.toUpperCase()]) {
      expect((await rig.session.post({ jsonrpc: '2.0', id, result: accept('x') })).status).toBe(202);
    }
    expect(rig.backend.received('tools/call')).toHaveLength(1);
    await answerTo(rig.session, question, accept('x'));
    await answerTo(rig.session, question, accept('y'));
    expect(textIn(await outcomeOf(stream))).toBe('ok');
    expect((await answerTo(rig.session, question, accept('z'))).status).toBe(202);
    expect(rig.backend.received('tools/call')).toHaveLength(2);
  });

  test('another session cannot answer it', async () => {
    const rig = await setUp((params) =>
      params.inputResponses ? done('ok') : asking({ a: elicitation('?') }, 's'),
    );
    const stream = await call(rig);
    const question = await questionOn(stream);
    const other = await legacyClient(rig.gateway.url());
    await answerTo(other, question, accept('stolen'));
    await sleep(50);
    expect(rig.backend.received('tools/call')).toHaveLength(1);
    await answerTo(rig.session, question, accept('x'));
    expect(textIn(await outcomeOf(stream))).toBe('ok');
    expect(rig.backend.received('tools/call')[1]?.json.params.inputResponses).toEqual({ a: accept('x') });
  });
});

describe('a client is asked only what it declared', () => {
  const urlRequest = {
    method: 'elicitation/create',
    params: { mode: 'url', url: 'https://a.example', message: '?' },
  };
  const tools = [{ name: 't', inputSchema: { type: 'object' } }];
  test.each<[string, Loose, string, Loose, string]>([
    ['nothing', {}, '2025-11-25', elicitation('?'), 'elicitation'],
    ['sampling alone', { sampling: {} }, '2025-11-25', elicitation('?'), 'elicitation'],
    ['forms alone, a page', { elicitation: {} }, '2025-11-25', urlRequest, 'elicitation.url'],
    ['pages alone, a form', { elicitation: { url: {} } }, '2025-11-25', elicitation('?'), 'elicitation.form'],
    [
      'pages in a revision without them',
      { elicitation: { url: {} } },
      '2025-06-18',
      urlRequest,
      'elicitation',
    ],
    ['no sampling', {}, '2025-11-25', { method: 'sampling/createMessage', params: prompt('?') }, 'sampling'],
    [
      'sampling without tools',
      { sampling: {} },
      '2025-11-25',
      { method: 'sampling/createMessage', params: { ...prompt('?'), tools } },
      'sampling.tools',
    ],
    ['no roots', { elicitation: {} }, '2025-11-25', { method: 'roots/list' }, 'roots'],
  ])('declared: %s', async (_name, capabilities, version, request, missing) => {
    const rig = await setUp(() => asking({ a: request }, 's'), { client: { capabilities, version } });
    const response = await (await call(rig)).done;
    expect(response.messages).toEqual([]);
    expect(response.json.result.isError).toBe(true);
    expect(textIn(response.json)).toContain(`did not declare ${missing}`);
  });
});

describe('the client ends its call', () => {
  const round: Round = async (params, { res }) => {
    if (params.requestState === undefined) return asking({ a: elicitation('?'), b: elicitation('?') }, 's');
    await new Promise((resolve) => res.on('close', resolve));
    return undefined;
  };

  test('by cancelling while it is asked: the questions are taken back on the stream of the call', async () => {
    const rig = await setUp(round);
    const stream = await call(rig, 'my-call');
    const questions = [await questionOn(stream), await questionOn(stream)];
    await rig.session.notify('notifications/cancelled', { requestId: 'my-call', reason: 'enough' });
    const { messages } = await stream.done;
    const cancelled = messages.filter(({ method }) => method === 'notifications/cancelled');
    expect(cancelled.map(({ params }) => params.requestId)).toEqual(questions.map(({ id }) => id));
    expect(rig.backend.received('tools/call')).toHaveLength(1);
    // Answers that come all the same are late.
    await answerTo(rig.session, questions[0], accept('x'));
    await sleep(50);
    expect(rig.backend.received('tools/call')).toHaveLength(1);
  });

  test('by cancelling while the server works on a further round: its request is broken off', async () => {
    const rig = await setUp(round);
    const stream = await call(rig, 0);
    await answerTo(rig.session, await questionOn(stream), accept('x'));
    await answerTo(rig.session, await questionOn(stream), accept('y'));
    const [, second] = await until(() => {
      const calls = rig.backend.received('tools/call');
      return calls.length === 2 ? calls : undefined;
    }, 'the second round');
    await rig.session.notify('notifications/cancelled', { requestId: 0 });
    await until(() => second?.disconnected, 'the end of the request at the server');
    await stream.done;
  });

  test('by cancelling during a pause', async () => {
    const rig = await setUp((params) => asking(undefined, `${params.requestState ?? ''}x`));
    const stream = call(rig, 5);
    await until(() => rig.backend.received('tools/call').length === 2, 'the second round');
    await rig.session.notify('notifications/cancelled', { requestId: 5 });
    await (await stream).done;
    const sent = rig.backend.received('tools/call').length;
    await sleep(700);
    expect(rig.backend.received('tools/call')).toHaveLength(sent);
  });

  test('by going away while it is asked: the questions are taken back on its other stream', async () => {
    const rig = await setUp(round, GOES_FOR_GOOD);
    const getStream = await rig.session.listen();
    const stream = await call(rig);
    const questions = [await questionOn(stream), await questionOn(stream)];
    stream.abort();
    const told = [await getStream.next(), await getStream.next()].map(({ json }) => json);
    expect(told.map(({ method, params }) => [method, params.requestId])).toEqual(
      questions.map(({ id }) => ['notifications/cancelled', id]),
    );
    await answerTo(rig.session, questions[0], accept('x'));
    await answerTo(rig.session, questions[1], accept('x'));
    await sleep(50);
    expect(rig.backend.received('tools/call')).toHaveLength(1);
    getStream.abort();
  });

  test('by going away while the server works on a further round: its request is broken off', async () => {
    const rig = await setUp(round, GOES_FOR_GOOD);
    const stream = await call(rig);
    await answerTo(rig.session, await questionOn(stream), accept('x'));
    await answerTo(rig.session, await questionOn(stream), accept('y'));
    const [, second] = await until(() => {
      const calls = rig.backend.received('tools/call');
      return calls.length === 2 ? calls : undefined;
    }, 'the second round');
    stream.abort();
    await until(() => second?.disconnected, 'the end of the request at the server');
  });

  test('by ending its session', async () => {
    const rig = await setUp(round);
    const stream = await call(rig);
    await questionOn(stream);
    await rig.session.delete();
    await stream.done;
    expect(rig.backend.received('tools/call')).toHaveLength(1);
  });
});

describe('ids of questions', () => {
  test('are unlike those of the client and of other questions, on every session', async () => {
    const rig = await setUp((params) =>
      params.inputResponses ? done('ok') : asking({ a: elicitation('?'), b: elicitation('?') }, 's'),
    );
    const seen: unknown[] = [];
    const other = await legacyClient(rig.gateway.url());
    for (const session of [rig.session, other]) {
      for (const id of [0, '0', 'eragate:1', 1]) {
        const stream = await session.open('tools/call', { name: 'ask' }, { id });
        const questions = [await questionOn(stream), await questionOn(stream)];
        seen.push(...questions.map((question) => question.id));
        // The client's own requests may have any id meanwhile, also that of a question.
        const ping = await session.request('ping', undefined, { id: questions[0].id });
        expect(ping.json).toEqual({ jsonrpc: '2.0', id: questions[0].id, result: {} });
        for (const question of questions) await answerTo(session, question, accept('x'));
        const outcome = await outcomeOf(stream);
        expect([outcome.id, textIn(outcome)]).toEqual([id, 'ok']);
      }
    }
    expect(new Set(seen).size).toBe(16);
    for (const id of seen) expect(id).toMatch(/^eragate:\d+$/);
  });
});
