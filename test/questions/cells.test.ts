import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CLIENT_KINDS, type ClientKind } from '../support/clients.js';
import type { Loose } from '../support/net.js';
import { asking, type Peer, startV1, startV2 } from '../support/peers/index.js';
import { useVirtualTime } from '../support/virtual-time.js';
import { type Answers, MODEL, person, type Rig, ROOTS, startRig, textOf } from './rig.js';

useVirtualTime();

const { form, visit, sample, listRoots, GUEST_BOOK_URI } = asking;

const SERVERS: [string, () => Promise<Peer>, leg?: string][] = [
  ['SDK 1.x with sessions', () => startV1()],
  ['SDK 1.x with sessions and resumable streams', () => startV1({ resumable: true })],
  ['SDK 2.x, modern alone', () => startV2({ legacy: 'reject' })],
  ['SDK 2.x, legacy sessions beside modern', () => startV2({ legacy: 'sessions' })],
  ['SDK 2.x, on its legacy side alone', () => startV2({ legacy: 'sessions' }), 'legacy'],
];

const PAGE = 'https://example.com/visit?a=1&b=%20';

const CALCULATOR = {
  name: 'calculate',
  description: 'Calculates',
  inputSchema: { type: 'object', properties: { term: { type: 'string' } } },
};
const USE = { type: 'tool_use', id: 'use-1', name: 'calculate', input: { term: '6*7' } };
const CONVERSATION = [
  { role: 'user', content: { type: 'text', text: 'What is 6*7?' } },
  { role: 'assistant', content: [USE] },
  {
    role: 'user',
    content: [{ type: 'tool_result', toolUseId: 'use-1', content: [{ type: 'text', text: '42' }] }],
  },
];
const answeringModel = ({ messages }: Loose) =>
  messages.length === 1
    ? { ...MODEL, stopReason: 'toolUse', content: [USE] }
    : { ...MODEL, content: { type: 'text', text: 'It is 42.' } };

interface Scenario {
  readonly rounds: asking.Round[];
  readonly person?: Answers;
  /** What the tool has been told, by key. */
  readonly answers: Loose;
  /** Methods of what the client is asked, in order. */
  readonly asked?: string[];
}

const elicitation = 'elicitation/create';
const sampling = 'sampling/createMessage';

const SCENARIOS: Record<string, Scenario> = {
  'a form that is accepted': {
    rounds: [{ name: form('Who?', 'name') }],
    answers: { name: { action: 'accept', content: { name: 'to: Who?' } } },
    asked: [elicitation],
  },
  'a form that is declined': {
    rounds: [{ name: form('Who?') }],
    person: { form: () => ({ action: 'decline' }) },
    answers: { name: { action: 'decline' } },
  },
  'a form that is cancelled': {
    rounds: [{ name: form('Who?') }],
    person: { form: () => ({ action: 'cancel' }) },
    answers: { name: { action: 'cancel' } },
  },
  'a page that is visited': {
    rounds: [{ page: visit(PAGE) }],
    answers: { page: { action: 'accept' } },
    asked: [elicitation],
  },
  'a page that is not visited': {
    rounds: [{ page: visit(PAGE) }],
    person: { url: () => ({ action: 'decline' }) },
    answers: { page: { action: 'decline' } },
  },
  'a message of the model': {
    rounds: [{ said: sample('Hello', { systemPrompt: 'Be brief.', temperature: 0.5 }) }],
    answers: { said: { ...MODEL, content: { type: 'text', text: '1 heard' } } },
    asked: [sampling],
  },
  'a message of the model, which uses a tool': {
    rounds: [
      { use: sample('What is 6*7?', { tools: [CALCULATOR], toolChoice: { mode: 'auto' } }) },
      { said: sample('', { messages: CONVERSATION, tools: [CALCULATOR] }) },
    ],
    person: { sampling: answeringModel },
    answers: {
      use: { ...MODEL, stopReason: 'toolUse', content: [USE] },
      said: { ...MODEL, content: { type: 'text', text: 'It is 42.' } },
    },
    asked: [sampling, sampling],
  },
  'the roots': { rounds: [{ where: listRoots }], answers: { where: ROOTS }, asked: ['roots/list'] },
  'two forms at once': {
    rounds: [{ first: form('One?'), second: form('Two?') }],
    answers: {
      first: { action: 'accept', content: { value: 'to: One?' } },
      second: { action: 'accept', content: { value: 'to: Two?' } },
    },
    asked: [elicitation, elicitation],
  },
  'a form, a message of the model and the roots at once': {
    rounds: [{ name: form('Who?'), said: sample('Hello'), where: listRoots }],
    answers: {
      name: { action: 'accept', content: { value: 'to: Who?' } },
      said: { ...MODEL, content: { type: 'text', text: '1 heard' } },
      where: ROOTS,
    },
  },
  'three rounds, one after the other': {
    rounds: [{ a: form('A?') }, { b: form('B?'), page: visit(PAGE) }, { c: form('C?') }],
    answers: {
      a: { action: 'accept', content: { value: 'to: A?' } },
      b: { action: 'accept', content: { value: 'to: B?' } },
      page: { action: 'accept' },
      c: { action: 'accept', content: { value: 'to: C?' } },
    },
    asked: [elicitation, elicitation, elicitation, elicitation],
  },
};

/** Clients beside each other in the words of their eras: V1 clients get an id for each page, modern ones none. */
const withoutIds = (params: Loose) => {
  const { elicitationId: _legacyOnly, _meta, task: _task, ...rest } = params ?? {};
  return rest;
};

describe.each(SERVERS)('a server of %s', (_name, start, leg = 'auto') => {
  let rig: Rig;
  beforeAll(async () => {
    rig = await startRig(start, { backend: { leg }, questions: { roots: 'ask' } });
  });
  afterAll(() => rig?.close());

  describe.each(CLIENT_KINDS)('asks client %s for', (kind: ClientKind) => {
    test.each(Object.entries(SCENARIOS))('%s', async (_what, { rounds, answers, asked, ...scenario }) => {
      const someone = person(scenario.person);
      const client = await rig.connect(kind, { handlers: someone.handlers });
      const result = await client.callTool('ask', { rounds });
      expect(JSON.parse(textOf(result))).toEqual(answers);
      if (asked) expect(someone.asked.map(({ method }) => method)).toEqual(asked);
      const expected = rounds.flatMap((round) => Object.values(round)).map(({ params }) => params ?? {});
      expect(someone.asked.map(({ params }) => withoutIds(params))).toEqual(
        expect.arrayContaining(expected.map((params) => expect.objectContaining(params))),
      );
      expect(client.errors).toEqual([]);
    });

    test('a name before it gives a prompt, and before it gives a resource', async () => {
      const someone = person({ form: () => ({ action: 'accept', content: { name: 'Ada' } }) });
      const client = await rig.connect(kind, { handlers: someone.handlers });
      const { messages } = await client.getPrompt('introduce');
      expect(messages[0].content.text).toBe('Greet Ada.');
      const { contents } = await client.readResource(GUEST_BOOK_URI);
      expect(contents[0].text).toBe('Last guest: Ada');
    });
  });

  test('is shown only frames of the gateway that fit the schema of their revision', () => {
    expect(rig.recording.violations).toEqual([]);
  });
});
