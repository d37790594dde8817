import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CLIENT_KINDS } from '../support/clients.js';
import { startGateway } from '../support/gateway.js';
import { startLegacyBackend } from '../support/misbehave.js';
import { asking, startV1 } from '../support/peers/index.js';
import { legacy, modern } from '../support/raw.js';
import { useVirtualTime } from '../support/virtual-time.js';
import {
  ALL_CAPABILITIES,
  answerAll,
  MODEL,
  person,
  type Rig,
  ROOTS,
  rawRounds,
  startRig,
  textOf,
} from './rig.js';

useVirtualTime();

const { form, visit, sample, listRoots } = asking;

/** With `via: 'session'` the server asks as `server.elicitInput()` and the like do: on the stream that the client GETs. */
const ask = (...rounds: asking.Round[]) => ({ rounds, via: 'session' });

test('a server that holds the head of its stream back delays the first call, and no other', async () => {
  const backend = await startLegacyBackend({ on: { GET: () => undefined } });
  const gateway = await startGateway({
    '/mcp': { backend: { url: backend.url }, sessions: { isolation: 'call' } },
  });
  try {
    const took: number[] = [];
    for (let n = 0; n < 3; n += 1) {
      const startedAt = performance.now();
      const { json } = await modern(
        gateway.url(),
        'tools/call',
        { name: 'echo' },
        { capabilities: ALL_CAPABILITIES },
      );
      expect(json.result.resultType).toBe('complete');
      took.push(performance.now() - startedAt);
    }
    expect(took[0]).toBeGreaterThan(900);
    expect(Math.max(...took.slice(1))).toBeLessThan(700);
  } finally {
    await gateway.close();
    await backend.close();
  }
});

describe.each([
  ['', {}],
  [' that can be resumed', { resumable: true }],
])("a legacy server that asks on the session's own stream%s", (_which, options) => {
  let rig: Rig;
  beforeAll(async () => {
    rig = await startRig(() => startV1(options), { questions: { roots: 'ask' } });
  });
  afterAll(() => rig?.close());

  describe.each(CLIENT_KINDS)('is answered by client %s', (kind) => {
    test('in one round with questions of every kind', async () => {
      const someone = person();
      const client = await rig.connect(kind, { handlers: someone.handlers });
      const round = {
        a: form('A?'),
        page: visit('https://example.com/'),
        said: sample('S?'),
        where: listRoots,
      };
      const answers = JSON.parse(textOf(await client.callTool('ask', ask(round))));
      expect(answers).toEqual({
        a: { action: 'accept', content: { value: 'to: A?' } },
        page: { action: 'accept' },
        said: { ...MODEL, content: { type: 'text', text: '1 heard' } },
        where: ROOTS,
      });
      expect(client.errors).toEqual([]);
    });

    test('in three rounds', async () => {
      const client = await rig.connect(kind, { handlers: person().handlers });
      const answers = JSON.parse(
        textOf(await client.callTool('ask', ask({ a: form('A?') }, { b: form('B?') }, { c: form('C?') }))),
      );
      expect(Object.values(answers)).toEqual(
        ['A', 'B', 'C'].map((letter) => ({ action: 'accept', content: { value: `to: ${letter}?` } })),
      );
    });

    test('with a refusal', async () => {
      const client = await rig.connect(kind, {
        handlers: person({ form: () => ({ action: 'decline' }) }).handlers,
      });
      const answers = JSON.parse(textOf(await client.callTool('ask', ask({ a: form('A?') }))));
      expect(answers).toEqual({ a: { action: 'decline' } });
    });

    test('in five calls at once, each with its own answer', async () => {
      const client = await rig.connect(kind, { handlers: person().handlers });
      const results = await Promise.all(
        [1, 2, 3, 4, 5].map((n) => client.callTool('ask', ask({ a: form(`${n}?`) }))),
      );
      expect(results.map((result) => JSON.parse(textOf(result)).a.content.value)).toEqual(
        [1, 2, 3, 4, 5].map((n) => `to: ${n}?`),
      );
    });
  });

  test("reaches a legacy client on the stream that it GETs, under the server's own id, and nowhere else", async () => {
    const session = await legacy(rig.url, { capabilities: ALL_CAPABILITIES });
    const bystander = await legacy(rig.url, { capabilities: ALL_CAPABILITIES });
    const [getStream, other] = [await session.listen(), await bystander.listen()];
    const call = session.open('tools/call', { name: 'ask', arguments: ask({ a: form('A?') }) });
    const { json: question } = await getStream.find(({ json }) => json?.method === 'elicitation/create');
    const asked = rig.recording.frames.filter(
      ({ by, message }) => by === 'backend' && message.method === 'elicitation/create',
    );
    expect(question).toEqual(asked.at(-1)?.message);
    expect(typeof question.id).toBe('number');
    const result = { action: 'accept', content: { value: 'mine' } };
    expect((await session.post({ jsonrpc: '2.0', id: question.id, result })).status).toBe(202);
    const { json, events } = await (await call).done;
    expect(JSON.parse(textOf(json.result))).toEqual({ a: result });
    expect(events.filter(({ json }) => json?.method === 'elicitation/create')).toEqual([]);
    expect(other.events.filter(({ json }) => json !== undefined)).toEqual([]);
    getStream.abort();
    other.abort();
  });

  test('reaches a legacy client that holds no such stream on that of its call', async () => {
    const session = await legacy(rig.url, { capabilities: ALL_CAPABILITIES });
    for (const name of ['A?', 'B?']) {
      const stream = await session.open('tools/call', { name: 'ask', arguments: ask({ a: form(name) }) });
      const seen = await answerAll(session, stream);
      expect(seen.map(({ method }) => method)).toEqual(['elicitation/create', undefined]);
      expect(JSON.parse(textOf(seen[1]?.result)).a.content).toEqual({ value: `to: ${name}` });
    }
  });

  test('and then on the stream of the call is answered in both', async () => {
    const rounds = await rawRounds(rig.url, { name: 'ask', arguments: ask({ a: form('A?') }) }, [{}, {}]);
    expect(JSON.parse(textOf(rounds.at(-1)?.json.result)).a.action).toBe('accept');
    const direct = { name: 'ask', arguments: { rounds: [{ b: form('B?') }] } };
    const later = await rawRounds(rig.url, direct, [{}, {}]);
    expect(JSON.parse(textOf(later.at(-1)?.json.result)).b.action).toBe('accept');
  });

  test('is shown only frames of the gateway that fit the schema of their revision', () => {
    expect(rig.recording.violations).toEqual([]);
  });
});
