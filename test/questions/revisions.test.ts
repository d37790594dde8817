import { afterEach, describe, expect, test } from 'vitest';
import type { Loose } from '../support/net.js';
import { asking, startV1, startV2 } from '../support/peers/index.js';
import { legacy } from '../support/raw.js';
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

const { form, visit, sample, listRoots } = asking;
const PAGE = 'https://example.com/visit';

let rig: Rig | undefined;
afterEach(async () => {
  await rig?.close();
  rig = undefined;
});

const frames = (of: Rig, by: string, method: string): Loose[] =>
  of.recording.frames
    .filter((frame) => frame.by === by && frame.message.method === method)
    .map(({ message }) => message);

/** What a raw legacy client sees of one call of `ask`. */
async function callOf(version: string, rounds: asking.Round[], capabilities: Loose = ALL_CAPABILITIES) {
  const session = await legacy((rig as Rig).url, { version, capabilities });
  expect(session.initialize.json.result.protocolVersion).toBe(version);
  const stream = await session.open('tools/call', { name: 'ask', arguments: { rounds } });
  const seen = await answerAll(session, stream);
  const { result, error } = seen.at(-1);
  return { seen, questions: seen.filter(({ id, method }) => id !== undefined && method), result, error };
}

describe.each(['2025-11-25', '2025-06-18'])('a legacy client of %s', (version) => {
  test('is asked by a legacy server in the very words of the server, and heard in its own', async () => {
    rig = await startRig(() => startV1());
    const rounds = [{ a: form('A?'), b: sample('B?') }, { c: listRoots }];
    const { questions, result } = await callOf(version, rounds);
    expect(JSON.parse(textOf(result))).toEqual({
      a: { action: 'accept', content: { value: 'to: A?' } },
      b: { ...MODEL, content: { type: 'text', text: '1 heard' } },
      c: ROOTS,
    });
    const asked = ['elicitation/create', 'sampling/createMessage', 'roots/list'].flatMap((method) =>
      frames(rig as Rig, 'backend', method),
    );
    // Before 2025-11-25 there was no word for a form.
    for (const { params } of version < '2025-11-25' ? asked : []) delete params?.mode;
    expect(questions).toEqual(asked);
  });

  test('is asked by a modern server in the words of its own revision', async () => {
    rig = await startRig(() => startV2({ legacy: 'reject' }));
    const several = sample('', {
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'one' },
            { type: 'text', text: 'two' },
          ],
        },
      ],
    });
    const { questions, result } = await callOf(version, [{ a: form('A?'), b: several, c: listRoots }]);
    const told = JSON.parse(textOf(result));
    expect(told.a).toEqual({ action: 'accept', content: { value: 'to: A?' } });
    expect(told.c).toEqual(ROOTS);
    const [asked, model] = questions.map(({ params }) => params);
    // Before 2025-11-25 there was no word for a form, and one block in a message.
    expect(asked.mode).toBe(version === '2025-11-25' ? 'form' : undefined);
    expect(model.messages).toHaveLength(version === '2025-11-25' ? 1 : 2);
    expect(rig.recording.violations).toEqual([]);
  });
});

describe('a modern server is not told of what a client of an older revision cannot have', () => {
  const MISSING = { code: -32021 };

  test.each<[string, string, asking.Ask]>([
    ['a page', '2025-06-18', visit(PAGE)],
    [
      'tools for the model',
      '2025-06-18',
      sample('S?', { tools: [{ name: 't', inputSchema: { type: 'object' } }] }),
    ],
  ])('%s, in %s', async (_what, version, ask) => {
    rig = await startRig(() => startV2({ legacy: 'reject' }));
    const { questions, error } = await callOf(version, [{ a: ask }]);
    expect(error).toMatchObject(MISSING);
    expect(questions).toEqual([]);
  });

  test.each(['2025-03-26', '2024-11-05'])(
    'a form, which a client of %s does not declare, but one that does is asked',
    async (version) => {
      rig = await startRig(() => startV2({ legacy: 'reject' }));
      const { elicitation, ...others } = ALL_CAPABILITIES;
      const refused = await callOf(version, [{ a: form('A?') }], others);
      expect([refused.error, refused.questions]).toMatchObject([MISSING, []]);
      const { questions, result } = await callOf(version, [{ a: form('A?') }], { ...others, elicitation });
      expect(JSON.parse(textOf(result)).a).toEqual({ action: 'accept', content: { value: 'to: A?' } });
      expect(questions.map(({ params }) => params)).toEqual([{ ...form('A?').params, mode: undefined }]);
    },
  );

  test('a page that a client of 2025-11-25 visits under an id, and is told to be done with', async () => {
    rig = await startRig(() => startV2({ legacy: 'reject' }));
    const { seen, result } = await callOf('2025-11-25', [{ a: visit(PAGE) }, { b: form('B?') }]);
    expect(JSON.parse(textOf(result)).a).toEqual({ action: 'accept' });
    const [question, second, complete, last] = seen;
    expect(question.params).toEqual({ ...visit(PAGE).params, elicitationId: expect.any(String) });
    expect(second.method).toBe('elicitation/create');
    expect(complete.method).toBe('notifications/elicitation/complete');
    expect(complete.params).toEqual({ elicitationId: question.params.elicitationId });
    expect(last.result).toEqual(result);
    expect(rig.recording.violations).toEqual([]);
  });
});

describe('a legacy server that is held to 2025-06-18', () => {
  const route = { backend: { era: '2025-06-18' }, questions: { roots: 'ask' } };
  const declared = (of: Rig) =>
    of.recording.exchanges
      .filter(({ side, body }) => side === 'backend' && body?.method === 'initialize')
      .map(({ body }) => [body.params.protocolVersion, body.params.capabilities]);

  test('asks a modern client, whose answers come in the words of that revision', async () => {
    rig = await startRig(() => startV1(), route);
    const several = {
      ...MODEL,
      content: [
        { type: 'text', text: 'one' },
        { type: 'text', text: 'two' },
      ],
    };
    const rounds = [{ a: form('A?'), b: sample('B?'), c: listRoots }];
    const tries = await rawRounds(rig.url, { name: 'ask', arguments: { rounds } }, [{}, {}], {
      sampling: () => several,
    });
    const told = JSON.parse(textOf(tries.at(-1)?.json.result));
    expect(told.a).toEqual({ action: 'accept', content: { value: 'to: A?' } });
    expect(told.b).toEqual({ ...MODEL, content: { type: 'text', text: 'one\ntwo' } });
    expect(told.c).toEqual(ROOTS);
    expect(rig.recording.violations).toEqual([]);
  });

  test.each<[Loose, Loose]>([
    [ALL_CAPABILITIES, { elicitation: {}, sampling: {}, roots: {} }],
    [{ elicitation: { url: {} }, sampling: { context: {} } }, { sampling: {} }],
    [{ elicitation: {} }, { elicitation: {} }],
  ])('gets %j in the form of that revision', async (capabilities, expected) => {
    rig = await startRig(() => startV1(), route);
    const client = await rig.connect('v2 pin', { capabilities });
    await client.callTool('add', { a: 1, b: 2 });
    expect(new Set(declared(rig).map((entry) => JSON.stringify(entry)))).toEqual(
      new Set([JSON.stringify(['2025-06-18', expected])]),
    );
  });

  test('asks a legacy client of a newer revision', async () => {
    rig = await startRig(() => startV1(), route);
    const client = await rig.connect('v1', { handlers: person().handlers });
    const result = await client.callTool('ask', { rounds: [{ a: form('A?'), b: sample('B?') }] });
    expect(JSON.parse(textOf(result))).toMatchObject({ a: { action: 'accept' }, b: { model: MODEL.model } });
  });
});
