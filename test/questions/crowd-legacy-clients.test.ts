import { describe, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../support/gateway.js';
import { keeper } from '../support/keeper.js';
import { sleep } from '../support/net.js';
import type { LegacySession } from '../support/raw.js';
import { useVirtualTime } from '../support/virtual-time.js';
import {
  accept,
  all,
  answerTo,
  asking,
  bearer,
  done,
  elicitation,
  legacyClient,
  questionOn,
  shuffled,
  startAskingBackend,
  startRoundsBackend,
  textIn,
} from './scripted.js';

useVirtualTime();

const COUNT = 50;
const PRINCIPALS = ['ada', 'alan', 'grace', 'edsger', 'barbara'];
const nameOf = (key: number): string => PRINCIPALS[key % PRINCIPALS.length] as string;
const keep = keeper();

async function gatewayTo(backend: { url: string; close(): Promise<void> }): Promise<TestGateway> {
  const gateway = await startGateway({ '/mcp': backend.url });
  await keep(backend);
  await keep(gateway);
  return gateway;
}

/** Calls of all clients at once, each in wait for its person. */
async function askAll(sessions: readonly LegacySession[]) {
  return all(sessions, async (session, key) => {
    const stream = await session.open('tools/call', { name: 'ask', arguments: { key } }, { id: 1 });
    return { session, stream, question: await questionOn(stream) };
  });
}

async function answerAll(calls: Awaited<ReturnType<typeof askAll>>): Promise<string[]> {
  await all(shuffled(calls.length), async (key, index) => {
    await sleep(index * 2);
    const { session, question } = calls[key] as (typeof calls)[number];
    await answerTo(session, question, accept(`answer ${key}`));
  });
  return all(calls, async ({ stream }) => {
    const response = await stream.done;
    expect(response.messages.filter(({ id }) => id !== undefined)).toHaveLength(1);
    return textIn(response.json);
  });
}

const everyAnswer = Array.from({ length: COUNT }, (_, key) => `answer ${key}`);

describe('fifty legacy clients on one legacy server', () => {
  test.each(['anonymous', 'of five principals'])(
    '%s: each is asked its own question, and gives its own answer',
    async (who) => {
      const backend = await startAskingBackend();
      const gateway = await gatewayTo(backend);
      const sessions = await all(Array(COUNT), (_, key) =>
        legacyClient(gateway.url(), who === 'anonymous' ? {} : bearer(nameOf(key))),
      );
      const calls = await askAll(sessions);
      calls.forEach(({ question }, key) => {
        expect(question.params.message).toBe(`Value for ${key}?`);
        // The server counts its questions on each session from 0; the id is passed on as it is.
        expect(question.id).toBe(0);
      });
      // Nobody else's answer is taken for that of a session, though all questions have one id.
      await answerTo(sessions[0] as LegacySession, { id: 0 }, { action: 'decline' });
      const plain = await (sessions[1] as LegacySession).request('tools/list', {});
      expect(plain.json.result.tools).toHaveLength(1);
      const texts = await answerAll(calls);
      expect(texts[0]).toBe('decline');
      expect(texts.slice(1)).toEqual(everyAnswer.slice(1));

      const sessionOf = new Map(backend.calls.map((call) => [call.session, call]));
      expect(sessionOf.size).toBe(COUNT);
      for (const answer of backend.answers) {
        const call = sessionOf.get(answer.session);
        expect(answer.authorization).toBe(call?.authorization);
        if (who !== 'anonymous') expect(answer.authorization).toBe(`Bearer ${nameOf(call?.args.key)}`);
      }
      expect(backend.answers).toHaveLength(COUNT);
    },
  );

  test('on the streams of their sessions', async () => {
    const backend = await startAskingBackend({}, async ({ push, args }) => {
      const { result } = await push('elicitation/create', { message: `Value for ${args.key}?` });
      return { content: [{ type: 'text', text: result.content.value }] };
    });
    const gateway = await gatewayTo(backend);
    const sessions = await all(Array(COUNT), () => legacyClient(gateway.url()));
    const feeds = await all(sessions, (session) => session.listen());
    const results = all(sessions, async (session, key) =>
      textIn((await session.request('tools/call', { name: 'ask', arguments: { key } })).json),
    );
    await all(shuffled(COUNT), async (key) => {
      const question = await questionOn(feeds[key] as (typeof feeds)[number]);
      expect(question.params.message).toBe(`Value for ${key}?`);
      await answerTo(sessions[key] as LegacySession, question, accept(`answer ${key}`));
    });
    expect(await results).toEqual(everyAnswer);
    for (const getStream of feeds) getStream.abort();
  });

  test('twenty calls of one client at once: each answer goes to its own call', async () => {
    const backend = await startAskingBackend();
    const gateway = await gatewayTo(backend);
    const session = await legacyClient(gateway.url());
    const calls = await all(Array(20), async (_, key) => {
      const stream = await session.open('tools/call', { name: 'ask', arguments: { key } });
      return { session, stream, question: await questionOn(stream) };
    });
    calls.forEach(({ question }, key) => {
      expect(question.params.message).toBe(`Value for ${key}?`);
    });
    expect(await answerAll(calls)).toEqual(everyAnswer.slice(0, 20));
    expect(new Set(backend.calls.map((call) => call.session)).size).toBe(1);
  });
});

describe('fifty legacy clients on one modern server', () => {
  test.each(['anonymous', 'of five principals'])(
    '%s: each is asked its own questions, round for round',
    async (who) => {
      const backend = await startRoundsBackend((params) => {
        const { key } = params.arguments;
        if (params.requestState === undefined)
          return asking({ a: elicitation(`Value for ${key}?`) }, `${key}:1`);
        const [owner] = params.requestState.split(':');
        return done(`${owner === `${key}` ? '' : 'crossed '}${params.inputResponses.a.content.value}`);
      });
      const gateway = await gatewayTo(backend);
      const sessions = await all(Array(COUNT), (_, key) =>
        legacyClient(gateway.url(), who === 'anonymous' ? {} : bearer(nameOf(key))),
      );
      const calls = await askAll(sessions);
      calls.forEach(({ question }, key) => {
        expect(question.params.message).toBe(`Value for ${key}?`);
      });
      expect(new Set(calls.map(({ question }) => question.id)).size).toBe(COUNT);
      // The question of one session cannot be answered on another.
      const [first, second] = calls as [(typeof calls)[number], (typeof calls)[number]];
      await answerTo(first.session, second.question, accept('stolen'));
      const plain = await first.session.request('tools/list', {});
      expect(plain.json.result.tools).toHaveLength(1);
      expect(await answerAll(calls)).toEqual(everyAnswer);
      expect(backend.received('tools/call')).toHaveLength(COUNT * 2);
      for (const { json, headers } of backend.received('tools/call')) {
        if (who === 'anonymous') expect(headers.authorization).toBeUndefined();
        else expect(headers.authorization).toBe(`Bearer ${nameOf(json.params.arguments.key)}`);
      }
    },
  );
});
