import { describe, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../support/gateway.js';
import { keeper } from '../support/keeper.js';
import type { Loose } from '../support/net.js';
import { asking, type Peer, startEverything, startV1, startV2 } from '../support/peers/index.js';
import { modern } from '../support/raw.js';
import {
  ASKABLE,
  accept,
  all,
  answerTo,
  bearer,
  legacyClient,
  questionOn,
  readQuestions,
  shuffled,
} from './scripted.js';

const COUNT = 50;
const PRINCIPALS = ['ada', 'alan', 'grace', 'edsger', 'barbara'];
const keep = keeper();

async function gatewayTo(start: () => Promise<Peer>): Promise<{ peer: Peer; gateway: TestGateway }> {
  const peer = await start();
  const gateway = await startGateway({ '/mcp': peer.url });
  await keep(peer);
  await keep(gateway);
  return { peer, gateway };
}

const paramsOf = (key: number, via: string): Loose => ({
  name: 'ask',
  arguments: { rounds: [{ q: asking.form(`ServerRequest ${key}?`) }], via },
});

describe('fifty modern clients of five principals on one server of SDK 1.x', () => {
  test.each(['request', 'session'])('that asks by way of the %s', async (via) => {
    const { peer, gateway } = await gatewayTo(startV1);
    const options = (key: number): Loose => ({
      capabilities: ASKABLE,
      ...bearer(PRINCIPALS[key % PRINCIPALS.length] as string),
    });
    const rounds = await all(Array(COUNT), async (_, key) =>
      readQuestions(await modern(gateway.url(), 'tools/call', paramsOf(key, via), options(key))),
    );
    rounds.forEach((round, key) => {
      expect(round.requests[round.key].params.message).toBe(`ServerRequest ${key}?`);
    });
    const tools = await modern(gateway.url(), 'tools/list', {}, { capabilities: ASKABLE });
    expect(tools.json.result.tools.length).toBeGreaterThan(0);
    const answers: string[] = [];
    await all(shuffled(COUNT), async (key) => {
      const { state, key: name } = rounds[key] as (typeof rounds)[number];
      const params = {
        ...paramsOf(key, via),
        requestState: state,
        inputResponses: { [name]: accept(`answer ${key}`) },
      };
      const answer = await modern(gateway.url(), 'tools/call', params, options(key));
      answers[key] = answer.json.result.structuredContent.q.content.value;
    });
    expect(answers).toEqual(Array.from({ length: COUNT }, (_, key) => `answer ${key}`));
    expect(peer.calls).toHaveLength(COUNT);
    const owners = new Map<string, Set<string | undefined>>();
    for (const { headers } of peer.requests) {
      const session = headers['mcp-session-id'];
      if (typeof session === 'string')
        owners.set(session, (owners.get(session) ?? new Set()).add(headers.authorization));
    }
    for (const names of owners.values()) expect(names.size).toBe(1);
  });
});

test('thirty modern clients on server-everything', async () => {
  const { gateway } = await gatewayTo(startEverything);
  const params = { name: 'trigger-sampling-request', arguments: { prompt: 'x', maxTokens: 10 } };
  const call = (key: number, more: Loose = {}): Loose => ({
    ...params,
    arguments: { ...params.arguments, prompt: `prompt ${key}` },
    ...more,
  });
  const options = { capabilities: ASKABLE };
  const rounds = await all(Array(30), async (_, key) =>
    readQuestions(await modern(gateway.url(), 'tools/call', call(key), options)),
  );
  const texts: string[] = [];
  await all(shuffled(30), async (key) => {
    const round = rounds[key] as (typeof rounds)[number];
    expect(JSON.stringify(round.requests[round.key].params.messages)).toContain(`prompt ${key}`);
    const result = { role: 'assistant', model: 'm', content: { type: 'text', text: `sampled ${key}` } };
    const retry = call(key, { requestState: round.state, inputResponses: { [round.key]: result } });
    const answer = await modern(gateway.url(), 'tools/call', retry, options);
    texts[key] = answer.json.result.content[0].text;
  });
  texts.forEach((text, key) => {
    expect(text).toContain(`sampled ${key}`);
  });
});

describe('fifty legacy clients on one server of SDK 2.x', () => {
  test('that speaks the modern era alone', async () => {
    const { gateway } = await gatewayTo(() => startV2({ legacy: 'reject' }));
    const sessions = await all(Array(COUNT), () => legacyClient(gateway.url()));
    const calls = await all(sessions, async (session, key) => {
      const stream = await session.open('tools/call', paramsOf(key, 'request'));
      const question = await questionOn(stream);
      expect(question.params.message).toBe(`ServerRequest ${key}?`);
      return { session, stream, question };
    });
    const answers: string[] = [];
    await all(shuffled(COUNT), async (key) => {
      const { session, stream, question } = calls[key] as (typeof calls)[number];
      await answerTo(session, question, accept(`answer ${key}`));
      answers[key] = (await stream.done).json.result.structuredContent.q.content.value;
    });
    expect(answers).toEqual(Array.from({ length: COUNT }, (_, key) => `answer ${key}`));
  });
});
