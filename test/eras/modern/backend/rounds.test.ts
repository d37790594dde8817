import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { inputError } from '../../../../src/eras/modern/backend/ask-input.js';
import { Rounds } from '../../../../src/eras/modern/backend/rounds.js';
import { InputFailed } from '../../../../src/eras/modern/wire/input-requests.js';
import type { ClientAnswer, ServerRequest } from '../../../../src/exchange/channel.js';
import { cancelled, ServerRequestRefused } from '../../../../src/exchange/errors.js';
import type { Exchange } from '../../../../src/exchange/exchange.js';
import { parseLenientFrame, type ResultFrame, Rope } from '../../../../src/jsonrpc/index.js';

type Client = (question: { id: unknown; method: string; params: unknown }) => ClientAnswer | Error;

/** Rounds of a call whose client answers with `client`. */
function setUp(client: Client = () => ({ result: Buffer.from('{}') }), maxRounds = 10) {
  const asked: { id: unknown; method: string; params: unknown }[] = [];
  const controller = new AbortController();
  const exchange = {
    signal: controller.signal,
    async ask({ bytes }: ServerRequest): Promise<ClientAnswer> {
      const question = JSON.parse(bytes.toString());
      asked.push(question);
      const answer = client(question);
      if (answer instanceof Error) throw answer;
      return answer;
    },
  } as unknown as Exchange;
  let id = 0;
  const rounds = new Rounds(exchange, maxRounds, () => ++id);
  const next = async (result: string): Promise<string> => {
    const frame = parseLenientFrame(
      Buffer.from(`{"jsonrpc":"2.0","id":1,"result":${result}}`),
    ) as ResultFrame;
    const edits = await rounds.next(frame);
    return [...edits]
      .map(([key, value]) => `${key}=${value === undefined ? '' : new Rope().push(value).toBuffer()}`)
      .join(' ');
  };
  return { asked, next, cancel: () => controller.abort(cancelled('enough')) };
}

const INPUT = '"resultType":"input_required"';
const form = (key: string): string =>
  `"${key}":{"method":"elicitation/create","params":{"message":"é","n":1.0}}`;

describe('the members added to the next request', () => {
  test.each<[string, string]>([
    [`{${INPUT},"requestState":"s \\u00e9\\/"}`, 'inputResponses= requestState="s \\u00e9\\/"'],
    [`{${INPUT},"inputRequests":{},"requestState":""}`, 'inputResponses= requestState=""'],
    [`{${INPUT},"inputRequests":{${form('a')}}}`, 'inputResponses={"a":{"n":2.0}} requestState='],
    [
      `{"requestState":"s","inputRequests":{${form('a')},${form('b \\"é')}},${INPUT}}`,
      'inputResponses={"a":{"n":2.0},"b \\"é":{"n":2.0}} requestState="s"',
    ],
  ])('after %s are %s', async (result, expected) => {
    vi.useFakeTimers();
    try {
      const { next } = setUp(() => ({ result: Buffer.from('{"n":2.0}') }));
      const edits = next(result);
      await vi.advanceTimersByTimeAsync(10_000);
      expect(await edits).toBe(expected);
    } finally {
      vi.useRealTimers();
    }
  });
});

test('input requests are sent unchanged, each with its own id', async () => {
  const { asked, next } = setUp();
  await next(`{"inputRequests":{${form('a')},"r":{"method":"roots/list"}}}`);
  await next(`{"inputRequests":{${form('a')}}}`);
  expect(asked.map(({ id, method, params }) => [id, method, params])).toEqual([
    ['eragate:1', 'elicitation/create', { message: 'é', n: 1 }],
    ['eragate:2', 'roots/list', undefined],
    ['eragate:3', 'elicitation/create', { message: 'é', n: 1 }],
  ]);
});

test.each<[string, string, string | undefined]>([
  ['elicitation/create', 'inputResponses={"a":{"action":"cancel"}} requestState=', undefined],
  ['roots/list', 'inputResponses={"a":{"roots":[]}} requestState=', undefined],
  ['sampling/createMessage', '', 'the client answered sampling/createMessage with an error: no'],
])('an error for %s becomes %s', async (method, expected, failure) => {
  const { next } = setUp(() => ({ error: Buffer.from('{"code":-1,"message":"no"}') }));
  const edits = next(`{"inputRequests":{"a":{"method":"${method}","params":{}}}}`);
  if (failure === undefined) expect(await edits).toBe(expected);
  else await expect(edits).rejects.toThrow(failure);
});

test.each([
  ['{}', 'asked for nothing'],
  ['{"inputRequests":{}}', 'asked for nothing'],
  ['{"requestState":7}', 'asked for nothing'],
  ['{"inputRequests":[]}', 'are not an object'],
  ['{"inputRequests":null,"requestState":"s"}', 'are not an object'],
  ['{"inputRequests":{"a":null}}', 'input request a has no method'],
  ['{"inputRequests":{"a":{"method":7}}}', 'input request a has no method'],
  ['{"inputRequests":{"a":{"method":"elicitation/create","params":[]}}}', 'params'],
  ['{"inputRequests":{"a":{"method":"ping"}}}', 'ping, which is no question'],
])('the result %s ends the rounds: %s', async (result, message) => {
  const { asked, next } = setUp();
  const failure = await next(result).catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(InputFailed);
  expect((failure as InputFailed).message).toContain(message);
  expect(inputError(failure as InputFailed)).toMatchObject({
    code: -32603,
    message: expect.stringContaining('Cannot request input: '),
  });
  expect(asked).toEqual([]);
});

test('an input request that cannot be sent ends the rounds; a fault is thrown as it is', async () => {
  const refused = setUp(() => new ServerRequestRefused('the client has no stream'));
  await expect(refused.next(`{"inputRequests":{${form('a')}}}`)).rejects.toThrow(
    'elicitation/create could not be asked: the client has no stream',
  );
  const broken = setUp(() => new TypeError('a fault'));
  await expect(broken.next(`{"inputRequests":{${form('a')}}}`)).rejects.toThrow(TypeError);
});

test('the number of rounds is limited', async () => {
  const { next } = setUp(undefined, 2);
  await next(`{"inputRequests":{${form('a')}}}`);
  await next(`{"inputRequests":{${form('a')}}}`);
  await expect(next(`{"inputRequests":{${form('a')}}}`)).rejects.toThrow(
    'the server asks in more than 2 rounds',
  );
});

describe('pauses', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  /** The time before a round sends its input requests or ends. */
  async function pauseOf(work: () => Promise<unknown>): Promise<number> {
    const startedAt = performance.now();
    let tookMs = -1;
    void work().then(() => {
      tookMs = performance.now() - startedAt;
    });
    await vi.advanceTimersByTimeAsync(10_000);
    return tookMs;
  }

  test('before rounds without input requests double, up to a second', async () => {
    const { next } = setUp();
    const pauses = [];
    for (let n = 0; n < 7; n++) pauses.push(await pauseOf(() => next('{"requestState":"s"}')));
    expect(pauses).toEqual([250, 500, 1_000, 1_000, 1_000, 1_000, 1_000]);
  });

  const page = (url: string): string =>
    `{"inputRequests":{"p":{"method":"elicitation/create","params":{"mode":"url","url":"${url}"}}}}`;

  test('before the same URL double; another URL has none', async () => {
    const { next } = setUp();
    const pauses = [];
    for (const url of ['a', 'a', 'a', 'b', 'b']) pauses.push(await pauseOf(() => next(page(url))));
    expect(pauses).toEqual([0, 1_000, 2_000, 0, 4_000]);
  });

  test('leave no timer when the call is cancelled', async () => {
    const { next, cancel } = setUp();
    const edits = next('{"requestState":"s"}');
    edits.catch(() => {});
    expect(vi.getTimerCount()).toBe(1);
    cancel();
    await expect(edits).rejects.toThrow('enough');
    expect(vi.getTimerCount()).toBe(0);
  });
});
