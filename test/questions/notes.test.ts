import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startGateway } from '../support/gateway.js';
import { startLegacyBackend } from '../support/misbehave.js';
import { type Loose, until } from '../support/net.js';
import { asking, startV1, startV2 } from '../support/peers/index.js';
import { legacy, modern, openModern, type RawStream } from '../support/raw.js';
import { useVirtualTime } from '../support/virtual-time.js';
import { ALL_CAPABILITIES, answerAll, type Rig, rawRounds, responsesTo, startRig, textOf } from './rig.js';

useVirtualTime();

const { form, sample } = asking;
const LOG_LEVEL = 'io.modelcontextprotocol/logLevel';
const ROUNDS = [{ a: form('A?') }, { b: form('B?'), c: sample('C?') }, { d: form('D?') }];
const CALL = { name: 'ask', arguments: { rounds: ROUNDS, notes: true } };

/** Progress notifications and log messages, in order: `token:step` and what was logged. */
const notesOf = (messages: readonly Loose[]) =>
  messages.flatMap(({ method, params }) => {
    if (method === 'notifications/progress')
      return [`${JSON.stringify(params.progressToken)}:${params.progress}`];
    return method === 'notifications/message' ? [params.data] : [];
  });

describe.each([
  ['a legacy server', () => startV1()],
  ['a legacy server with resumable streams', () => startV1({ resumable: true })],
  ['a modern server', () => startV2({ legacy: 'reject' })],
])('the progress and the log messages of a call to %s that asks in three rounds', (_name, start) => {
  let rig: Rig;
  beforeAll(async () => {
    rig = await startRig(start);
  });
  afterAll(() => rig?.close());

  test('come to a modern client on the stream of each try, under its token', async () => {
    const debug = { [LOG_LEVEL]: 'debug' };
    const responses = await rawRounds(rig.url, CALL, [
      { meta: { progressToken: 'first', ...debug } },
      { meta: { progressToken: 2, ...debug } },
      { meta: { progressToken: 'third', ...debug } },
      { meta: { progressToken: 'first', ...debug } },
    ]);
    expect(responses.map(({ json }) => json.result.resultType)).toEqual([
      'input_required',
      'input_required',
      'input_required',
      'complete',
    ]);
    expect(responses.map(({ messages }) => notesOf(messages))).toEqual([
      ['"first":1', 'before round 1'],
      ['2:2', 'before round 2'],
      ['"third":3', 'before round 3'],
      ['"first":4', 'after all rounds'],
    ]);
  });

  test('come to a modern client on the tries that ask for them, and on no others', async () => {
    const responses = await rawRounds(rig.url, CALL, [
      { meta: { progressToken: 'a' } },
      {},
      { meta: { [LOG_LEVEL]: 'info' } },
      { meta: { progressToken: 'd', [LOG_LEVEL]: 'error' } },
    ]);
    expect(responses.at(-1)?.json.result.resultType).toBe('complete');
    expect(responses.map(({ messages }) => notesOf(messages))).toEqual([
      ['"a":1'],
      [],
      ['before round 3'],
      ['"d":4'],
    ]);
  });

  test('come to a legacy client on the one stream of its call, between the questions', async () => {
    const session = await legacy(rig.url, { capabilities: ALL_CAPABILITIES });
    await session.request('logging/setLevel', { level: 'debug' });
    const stream = await session.open(
      'tools/call',
      { ...CALL, _meta: { progressToken: 'mine' } },
      { id: 'one' },
    );
    const seen = await answerAll(session, stream);
    const told = seen.flatMap((message) => {
      if (message.method?.startsWith('notifications/')) return notesOf([message]);
      return [message.method ?? `answer ${message.id}`];
    });
    const elicitation = 'elicitation/create';
    expect(told.slice(0, 6)).toEqual([
      '"mine":1',
      'before round 1',
      elicitation,
      '"mine":2',
      'before round 2',
      elicitation,
    ]);
    expect(told.slice(6)).toEqual([
      'sampling/createMessage',
      '"mine":3',
      'before round 3',
      elicitation,
      '"mine":4',
      'after all rounds',
      'answer one',
    ]);
  });

  test('are frames that fit the schema of their revision', () => {
    expect(rig.recording.violations).toEqual([]);
  });
});

describe('while no request of the client waits, a legacy server', () => {
  const progress = (progressToken: unknown, step: number) => ({
    jsonrpc: '2.0',
    method: 'notifications/progress',
    params: { progressToken, progress: step },
  });

  test('may tell of progress, which is lost, and goes on with it under the token of the retry', async () => {
    let answered = () => {};
    const backend = await startLegacyBackend({
      on: {
        'tools/call': async (step) => {
          const stream = step.stream();
          const token = step.params._meta?.progressToken;
          stream.event(progress(token, 1));
          stream.event({ jsonrpc: '2.0', id: 'q', ...form('Name?') });
          await until(() => parked, 'the call to be parked');
          for (let n = 2; n <= 50; n += 1) stream.event(progress(token, n));
          await new Promise<void>((resolve) => {
            answered = resolve;
          });
          stream.event(progress(token, 51));
          stream.event(step.frame({ result: { content: [{ type: 'text', text: 'done' }] } }));
          stream.end();
          return undefined;
        },
      },
      intercept: ({ json }) => {
        if (json?.id === 'q' && json.result) answered();
        return false;
      },
    });
    let parked = false;
    const gateway = await startGateway({ '/mcp': backend.url });
    try {
      const params = { name: 'x', arguments: {} };
      const given = (progressToken: unknown) => ({ capabilities: ALL_CAPABILITIES, meta: { progressToken } });
      const first = await modern(gateway.url(), 'tools/call', params, given('a'));
      expect(notesOf(first.messages)).toEqual(['"a":1']);
      parked = true;
      await new Promise((resolve) => setTimeout(resolve, 50));
      const { requestState } = first.json.result;
      const retry = { ...params, requestState, inputResponses: responsesTo(first.json.result) };
      const second = await modern(gateway.url(), 'tools/call', retry, given('b'));
      expect(textOf(second.json.result)).toBe('done');
      expect(notesOf(second.messages)).toEqual(['"b":51']);
    } finally {
      await gateway.close();
      await backend.close();
    }
  });

  test('sees the call cancelled when the client leaves the stream of its retry, and not when it left with the questions', async () => {
    const rig = await startRig(() => startV1());
    try {
      const capabilities = ALL_CAPABILITIES;
      const params = { name: 'ask', arguments: { rounds: [{ a: form('A?') }] } };
      const first = await modern(rig.url, 'tools/call', params, { capabilities });
      const [call] = rig.peer.calls;
      await new Promise((resolve) => setTimeout(resolve, 100));
      expect(call?.cancelled).toBe(false);
      // Nothing is answered, so that the retry is asked again, unless it leaves before that.
      const leaving = new AbortController();
      const { requestState } = first.json.result;
      const retry = { ...params, requestState, inputResponses: {} };
      const gone = openModern(rig.url, 'tools/call', retry, { capabilities, signal: leaving.signal }).then(
        (stream: RawStream) => stream.abort(),
        () => {},
      );
      setTimeout(() => leaving.abort(), 10);
      await gone;
      await until(() => call?.cancelled, 'the server to stop the call');
    } finally {
      await rig.close();
    }
  });
});
