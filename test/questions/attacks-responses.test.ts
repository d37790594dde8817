import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../support/gateway.js';
import { type Loose, sleep, until } from '../support/net.js';
import { modern, openModern } from '../support/raw.js';
import { useVirtualTime } from '../support/virtual-time.js';
import {
  ASKABLE,
  type AskingBackend,
  accept,
  form,
  ModernCaller,
  prompt,
  readQuestions,
  sampled,
  startAskingBackend,
  type Tool,
  text,
  toolText,
  trafficDuring,
} from './scripted.js';

useVirtualTime();

let backend: AskingBackend;
let gateway: TestGateway;

beforeAll(async () => {
  backend = await startAskingBackend();
  gateway = await startGateway({ '/mcp': { backend: { url: backend.url, era: 'legacy' } } });
});

beforeEach(() => {
  backend.tool(async ({ elicit }) => text(await elicit('Value?')));
  backend.cancels.length = 0;
  backend.answers.length = 0;
  backend.calls.length = 0;
});

afterAll(async () => {
  await gateway.close();
  await backend.close();
});

const caller = (args: Loose = {}): ModernCaller => new ModernCaller(gateway.url(), args);

/** Asks for a form and for a line of text at once, and returns what it was toolText. */
async function askTwice({ ask }: Parameters<Parameters<AskingBackend['tool']>[0]>[0]): Promise<Loose> {
  const [one, two] = await Promise.all([
    ask('elicitation/create', form('One?')),
    ask('sampling/createMessage', prompt('Two?')),
  ]);
  return text(`${one.result.content.value} ${two.result.content.text}`);
}

describe('answers that are not there, or are none', () => {
  test.each<[string, (key: string) => Loose]>([
    ['no member inputResponses', () => undefined],
    ['no entries', () => ({})],
    ['an entry that is null', (key) => ({ [key]: null })],
    ['an entry that is a string', (key) => ({ [key]: 'accept' })],
    ['an entry that is a number', (key) => ({ [key]: 1 })],
    ['an entry that is a list', (key) => ({ [key]: [{ action: 'accept' }] })],
    ['an entry of another name', (key) => ({ [`${key}0`]: accept('x') })],
    ['an entry whose name differs in case', (key) => ({ [key.toUpperCase()]: accept('x') })],
    ['an entry of an object prototype', () => ({ constructor: accept('x'), toString: accept('y') })],
  ])('%s: the same question comes again, and the server hears nothing', async (_name, responses) => {
    const call = caller();
    const first = await call.asked();
    let second = first;
    const traffic = await trafficDuring(backend, async () => {
      second = readQuestions(await call.retry(first.state, responses(first.key)));
    });
    expect(traffic).toEqual([]);
    expect(second.requests).toEqual(first.requests);
    expect(second.state).not.toBe(first.state);
    expect(toolText(await call.retry(second.state, { [second.key]: accept('mine') }))).toBe('mine');
  });

  test.each([
    ['null', null],
    ['a string', 'accept'],
    ['a number', 1],
    ['a list', []],
    ['true', true],
  ])('inputResponses that are %s are refused, and the round stays open', async (_name, responses) => {
    const call = caller();
    const round = await call.asked();
    const traffic = await trafficDuring(backend, async () => {
      const answer = await call.send({
        ...call.params,
        requestState: round.state,
        inputResponses: responses,
      });
      expect([answer.status, answer.json.error.code]).toEqual([400, -32602]);
      expect(answer.json.error.message).toContain('inputResponses');
    });
    expect(traffic).toEqual([]);
    expect(toolText(await call.retry(round.state, { [round.key]: accept('mine') }))).toBe('mine');
  });

  test('some of the answers: the server gets those, the client is asked for the rest alone, under the same names', async () => {
    backend.tool(askTwice);
    const call = caller();
    const first = await call.asked();
    expect(first.keys).toHaveLength(2);
    const [one, two] = first.keys as [string, string];
    const second = readQuestions(await call.retry(first.state, { [one]: accept('first') }));
    expect(second.requests).toEqual({ [two]: first.requests[two] });
    expect(backend.answers.map(({ json }) => json.result)).toEqual([accept('first')]);
    // What was answered already cannot be answered in another way.
    const answers = { [one]: accept('changed'), [two]: sampled('second') };
    expect(toolText(await call.retry(second.state, answers))).toBe('first second');
    expect(backend.answers).toHaveLength(2);
  });

  test('the other one of the answers first', async () => {
    backend.tool(askTwice);
    const call = caller();
    const first = await call.asked();
    const [one, two] = first.keys as [string, string];
    const second = readQuestions(await call.retry(first.state, { [two]: sampled('second') }));
    expect(second.keys).toEqual([one]);
    expect(toolText(await call.retry(second.state, { [one]: accept('first') }))).toBe('first second');
  });

  test('entries that nobody asked for are ignored', async () => {
    const call = caller();
    const round = await call.asked();
    const answers = {
      extra: accept('x'),
      [round.key]: accept('mine'),
      __proto__x: null,
      'elicitation-99': 7,
    };
    expect(toolText(await call.retry(round.state, answers))).toBe('mine');
    expect(backend.answers).toHaveLength(1);
  });

  test('the next question that comes while the client is away waits for it, and comes with what is still open', async () => {
    backend.tool(async ({ ask, elicit }) => {
      const late = sleep(150).then(() => ask('sampling/createMessage', prompt('Late?')));
      const value = await elicit('Value?');
      return text(`${value} ${(await late).result.content.text}`);
    });
    const call = caller();
    const first = await call.asked();
    await sleep(250);
    const second = readQuestions(await call.retry(first.state, {}));
    expect(second.keys).toHaveLength(2);
    expect(second.requests[first.key]).toEqual(first.requests[first.key]);
    const other = second.keys.find((key) => key !== first.key) as string;
    const answers = { [first.key]: accept('mine'), [other]: sampled('late') };
    expect(toolText(await call.retry(second.state, answers))).toBe('mine late');
  });
});

/** Asks for a value, and takes some milliseconds before it returns it. */
const asksAndTakes =
  (ms: number): Tool =>
  async ({ elicit }) => {
    const value = await elicit('Value?');
    await sleep(ms);
    return text(value);
  };

describe('copies of a retry', () => {
  test.each([2, 5, 20])('%i at once get one outcome, and the server gets one answer', async (copies) => {
    let ran = 0;
    backend.tool(async ({ elicit }) => {
      const value = await elicit('Value?');
      await sleep(copies * 40 + 100);
      ran++;
      return text(`${value} ${ran}`);
    });
    const call = caller();
    const round = await call.asked();
    const answers = await Promise.all(
      Array.from({ length: copies }, (_, n) =>
        call.retry(round.state, { [round.key]: accept('mine') }, { id: `c${n}` }),
      ),
    );
    expect(answers.map(toolText)).toEqual(Array(copies).fill('mine 1'));
    expect(answers.map(({ json }) => json.id)).toEqual(answers.map((_, n) => `c${n}`));
    expect(backend.answers).toHaveLength(1);
    expect(backend.calls).toHaveLength(1);
    expect(ran).toBe(1);
  });

  test('more of them than may wait are refused, and the others get the outcome', async () => {
    backend.tool(asksAndTakes(3_000));
    const call = caller();
    const round = await call.asked();
    const answers = await Promise.all(
      Array.from({ length: 300 }, () => call.retry(round.state, { [round.key]: accept('mine') })),
    );
    const refused = answers.filter(({ status }) => status === 503);
    expect(refused).toHaveLength(300 - 256);
    expect(refused[0]?.json.error.message).toContain('copies of one request');
    expect(new Set(answers.filter(({ status }) => status === 200).map(toolText))).toEqual(new Set(['mine']));
    expect(backend.answers).toHaveLength(1);
  });

  test('of two with different answers the first counts for both', async () => {
    backend.tool(asksAndTakes(400));
    const call = caller();
    const round = await call.asked();
    const first = call.retry(round.state, { [round.key]: accept('first') });
    await sleep(50);
    const second = call.retry(round.state, { [round.key]: accept('second') });
    expect([toolText(await first), toolText(await second)]).toEqual(['first', 'first']);
    expect(backend.answers).toHaveLength(1);
  });

  test('both get the next round, and either can bring its answer', async () => {
    backend.tool(async ({ elicit }) => {
      const one = await elicit('One?');
      await sleep(300);
      return text(`${one} ${await elicit('Two?')}`);
    });
    const call = caller();
    const round = await call.asked();
    const both = await Promise.all([1, 2].map(() => call.retry(round.state, { [round.key]: accept('1') })));
    const [a, b] = both.map(readQuestions) as [
      ReturnType<typeof readQuestions>,
      ReturnType<typeof readQuestions>,
    ];
    expect(a.requests).toEqual(b.requests);
    expect(toolText(await call.retry(b.state, { [b.key]: accept('2') }))).toBe('1 2');
    expect((await call.retry(a.state, { [a.key]: accept('3') })).json.error.code).toBe(-32602);
  });

  test('one of two goes away: the other gets the outcome, and nothing is cancelled', async () => {
    for (const leaver of [0, 1]) {
      backend.tool(async ({ elicit }) => {
        const value = await elicit('Value?');
        await sleep(500);
        return text(value);
      });
      const call = caller();
      const round = await call.asked();
      const streams = [0, 1].map(() => new AbortController());
      const sent: Promise<Loose>[] = [];
      for (const { signal } of streams) {
        sent.push(
          call.retry(round.state, { [round.key]: accept('mine') }, { signal }).catch(() => undefined),
        );
        await sleep(60);
      }
      streams[leaver]?.abort();
      expect(toolText(await sent[1 - leaver])).toBe('mine');
      expect(backend.cancels).toEqual([]);
    }
  });

  test('both go away: the call is cancelled', async () => {
    let answered = false;
    backend.tool(async ({ elicit, cancelled }) => {
      await elicit('Value?');
      answered = true;
      await cancelled();
      return undefined;
    });
    const call = caller();
    const round = await call.asked();
    const leaving = new AbortController();
    const copies = [1, 2].map(() =>
      call
        .retry(round.state, { [round.key]: accept('mine') }, { signal: leaving.signal })
        .catch(() => undefined),
    );
    await until(() => answered, 'the answer at the server');
    await sleep(30);
    leaving.abort();
    await Promise.all(copies);
    await until(() => backend.cancels.length === 1, 'the cancellation');
    expect(backend.cancels[0]?.params.requestId).toBe(backend.calls[0]?.id);
    const late = await call.retry(round.state, { [round.key]: accept('mine') });
    expect([late.status, late.json.error.code]).toEqual([400, -32602]);
  });

  test('progress goes to each copy under its own token, or not at all', async () => {
    backend.tool(async ({ elicit, notify, params }) => {
      const value = await elicit('Value?');
      await sleep(300);
      notify('notifications/progress', { progressToken: params._meta.progressToken, progress: 1, total: 2 });
      await sleep(50);
      return text(value);
    });
    const call = caller();
    const options = { capabilities: ASKABLE };
    const first = readQuestions(
      await modern(
        gateway.url(),
        'tools/call',
        { ...call.params, _meta: { progressToken: 'first' } },
        options,
      ),
    );
    const retry = (meta: Loose): Promise<Loose> =>
      modern(
        gateway.url(),
        'tools/call',
        {
          ...call.params,
          requestState: first.state,
          inputResponses: { [first.key]: accept('x') },
          _meta: meta,
        },
        options,
      );
    const one = retry({ progressToken: 'one' });
    await sleep(60);
    const [a, b, c] = await Promise.all([one, retry({ progressToken: 'two' }), retry({})]);
    const tokens = ({ messages }: Loose) => messages.map(({ params }: Loose) => params.progressToken);
    expect(tokens(a)).toEqual(['one']);
    expect(['', 'two']).toContain(tokens(b).join());
    expect(tokens(c)).toEqual([]);
  });
});

describe('clients that go away', () => {
  test('while the first response is open: the call is cancelled under the id that the server knows', async () => {
    backend.tool(async ({ cancelled, notify, params }) => {
      notify('notifications/progress', { progressToken: params._meta.progressToken, progress: 1 });
      await cancelled();
      return undefined;
    });
    const stream = await openModern(
      gateway.url(),
      'tools/call',
      { ...caller().params, _meta: { progressToken: 1 } },
      { capabilities: ASKABLE, id: 'client-id' },
    );
    await stream.next();
    stream.abort();
    await until(() => backend.cancels.length === 1, 'the cancellation');
    const [call] = backend.calls;
    expect(backend.cancels).toEqual([
      { session: call?.session, params: { requestId: call?.id, reason: expect.any(String) } },
    ]);
    await until(() => call?.stream.closed, 'the end of the stream of the call');
  });

  test('before anything of the response came', async () => {
    backend.tool(async ({ cancelled }) => {
      await cancelled();
      return undefined;
    });
    const leaving = new AbortController();
    const sent = modern(gateway.url(), 'tools/call', caller().params, {
      capabilities: ASKABLE,
      signal: leaving.signal,
    });
    sent.catch(() => {});
    await until(() => backend.calls.length === 1, 'the call');
    leaving.abort();
    await until(() => backend.cancels.length === 1, 'the cancellation');
    expect(backend.cancels[0]?.params.requestId).toBe(backend.calls[0]?.id);
  });

  test('in the moment in which questions are gathered: the call is cancelled, and no question stays behind', async () => {
    backend.tool(async ({ ask }) => {
      await ask('elicitation/create', form('Value?'));
      return text('never');
    });
    const leaving = new AbortController();
    const sent = modern(gateway.url(), 'tools/call', caller().params, {
      capabilities: ASKABLE,
      signal: leaving.signal,
    });
    sent.catch(() => {});
    await until(() => backend.calls.length === 1, 'the call');
    await sleep(8);
    leaving.abort();
    await until(() => backend.cancels.length === 1, 'the cancellation');
  });

  test('with input_required in hand: nothing is cancelled, and the call goes on when the client is back', async () => {
    const call = caller();
    const round = await call.asked();
    const traffic = await trafficDuring(backend, () => sleep(400));
    expect(traffic).toEqual([]);
    expect(backend.calls[0]?.stream.closed).toBe(false);
    expect(toolText(await call.retry(round.state, { [round.key]: accept('mine') }))).toBe('mine');
    expect(backend.cancels).toEqual([]);
  });

  test('while the retry is open: the call is cancelled, and its state is spent', async () => {
    backend.tool(async ({ elicit, cancelled, notify, params }) => {
      await elicit('Value?');
      notify('notifications/message', { level: 'error', data: params.name });
      await cancelled();
      return undefined;
    });
    const call = caller();
    const round = await call.asked();
    const stream = await call.open(
      round.state,
      { [round.key]: accept('mine') },
      { meta: { 'io.modelcontextprotocol/logLevel': 'error' } },
    );
    await stream.next();
    stream.abort();
    await until(() => backend.cancels.length === 1, 'the cancellation');
    expect(backend.cancels[0]?.params.requestId).toBe(backend.calls[0]?.id);
    const late = await call.retry(round.state, { [round.key]: accept('mine') });
    expect([late.status, late.json.error.code]).toEqual([400, -32602]);
    expect(backend.calls).toHaveLength(1);
  });

  test('the tool runs once however often the client tries again', async () => {
    let ran = 0;
    backend.tool(async ({ elicit }) => {
      const one = await elicit('One?');
      await sleep(200);
      const two = await elicit('Two?');
      ran++;
      await sleep(250);
      return text(`${one}${two}`);
    });
    const call = caller();
    const first = await call.asked();
    const second = await Promise.all(
      [1, 2, 3].map(async () => readQuestions(await call.retry(first.state, { [first.key]: accept('1') }))),
    );
    const { state, key } = second[0] as ReturnType<typeof readQuestions>;
    const last = await Promise.all([1, 2, 3].map(() => call.retry(state, { [key]: accept('2') })));
    for (const old of [first.state, state, first.state, state]) {
      expect((await call.retry(old, { [key]: accept('3') })).json.error.code).toBe(-32602);
    }
    expect(last.map(toolText)).toEqual(['12', '12', '12']);
    expect([ran, backend.calls.length, backend.answers.length]).toEqual([1, 1, 2]);
  });
});
