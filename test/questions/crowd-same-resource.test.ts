import { describe, expect, test } from 'vitest';
import { startGateway } from '../support/gateway.js';
import { keeper } from '../support/keeper.js';
import type { ScriptedBackend } from '../support/misbehave.js';
import { startModernBackend } from '../support/misbehave.js';
import { type Loose, sleep } from '../support/net.js';
import { modern } from '../support/raw.js';
import { useVirtualTime } from '../support/virtual-time.js';
import {
  ASKABLE,
  accept,
  all,
  answerTo,
  asking,
  elicitation,
  form,
  legacyClient,
  questionOn,
  readQuestions,
  shuffled,
  startAskingBackend,
} from './scripted.js';

useVirtualTime();

const COUNT = 6;
const everyone = Array.from({ length: COUNT }, (_, key) => `person ${key}`);
const keep = keeper();

async function gatewayTo(backend: ScriptedBackend, route: Loose = {}): Promise<string> {
  const gateway = await startGateway({ '/mcp': { backend: { url: backend.url }, ...route } });
  await keep(backend);
  await keep(gateway);
  return gateway.url();
}

const URI = 'file:///guest-book';
const options = { capabilities: ASKABLE };
const contents = (text: string): Loose => ({ contents: [{ uri: URI, text }] });
/** Also where results are kept for a while. */
const CACHES: [string, Loose][] = [
  ['kept no longer than the server says', {}],
  ['kept for a minute', { cache: { 'resources/read': '60s' } }],
];

/** Clients that nothing tells apart read one resource, for which each of them is asked. */
describe.each(CACHES)('a resource that asks its reader, %s', (_name, route) => {
  test('of a legacy server, for modern clients', async () => {
    const backend = await startAskingBackend();
    backend.on('resources/read', (step) => {
      const stream = step.stream({ 'mcp-session-id': step.session ?? '' });
      stream.event({ jsonrpc: '2.0', id: 0, method: 'elicitation/create', params: form('Who?') });
      void (async () => {
        for (;;) {
          const answer = backend.answers.find(({ session }) => session === step.session);
          if (answer !== undefined) {
            stream.event(step.frame({ result: contents(answer.json.result.content.value) }));
            stream.end();
            return;
          }
          await sleep(10);
        }
      })();
      return undefined;
    });
    const url = await gatewayTo(backend, { sessions: { isolation: 'call' }, ...route });
    const rounds = await all(everyone, async () =>
      readQuestions(await modern(url, 'resources/read', { uri: URI }, options)),
    );
    const texts: string[] = [];
    await all(shuffled(COUNT), async (key) => {
      const round = rounds[key] as (typeof rounds)[number];
      const answer = await modern(
        url,
        'resources/read',
        { uri: URI, requestState: round.state, inputResponses: { [round.key]: accept(`person ${key}`) } },
        options,
      );
      texts[key] = answer.json.result.contents[0].text;
    });
    expect(texts).toEqual(everyone);
    // What one was told in person is not kept for the next.
    await modern(url, 'resources/read', { uri: URI }, options).then(readQuestions);
  });

  test('of a modern server, for legacy clients', async () => {
    const backend = await startModernBackend();
    backend.on('resources/read', async ({ params }) => {
      await sleep(50);
      const freshness = { ttlMs: 60_000, cacheScope: 'public' };
      if (params.inputResponses === undefined) return { result: asking({ a: elicitation('Who?') }, 's') };
      return {
        result: { resultType: 'complete', ...contents(params.inputResponses.a.content.value), ...freshness },
      };
    });
    const url = await gatewayTo(backend, route);
    const sessions = await all(everyone, () => legacyClient(url));
    const streams = await all(sessions, async (session) => {
      const stream = await session.open('resources/read', { uri: URI });
      return { session, stream, question: await questionOn(stream) };
    });
    const texts: string[] = [];
    await all(shuffled(COUNT), async (key) => {
      const { session, stream, question } = streams[key] as (typeof streams)[number];
      await answerTo(session, question, accept(`person ${key}`));
      texts[key] = (await stream.done).json.result.contents[0].text;
    });
    expect(texts).toEqual(everyone);
    const stream = await (await legacyClient(url)).open('resources/read', { uri: URI });
    expect((await questionOn(stream)).params.message).toBe('Who?');
    stream.abort();
  });

  test('of a modern server, for modern clients: each has the state of its own request', async () => {
    const backend = await startModernBackend();
    let count = 0;
    backend.on('resources/read', async ({ params }) => {
      await sleep(100);
      if (params.inputResponses === undefined)
        return { result: asking({ a: elicitation('Who?') }, `state ${++count}`) };
      const text = `${params.requestState} ${params.inputResponses.a.content.value}`;
      return { result: { resultType: 'complete', ...contents(text), ttlMs: 60_000, cacheScope: 'private' } };
    });
    const url = await gatewayTo(backend, route);
    const rounds = await all(everyone, async () =>
      readQuestions(await modern(url, 'resources/read', { uri: URI }, options)),
    );
    expect(new Set(rounds.map(({ state }) => state)).size).toBe(COUNT);
    const texts = await all(rounds, async ({ state, key }, index) => {
      const answer = await modern(
        url,
        'resources/read',
        { uri: URI, requestState: state, inputResponses: { [key]: accept(`person ${index}`) } },
        options,
      );
      return answer.json.result.contents[0].text;
    });
    expect(texts).toEqual(rounds.map(({ state }, index) => `${state} person ${index}`));
  });
});
