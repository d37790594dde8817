import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ClientKind } from '../support/clients.js';
import type { Loose } from '../support/net.js';
import {
  asking,
  hasPython,
  type Peer,
  PYTHON_LIBRARIES,
  PYTHON_NEEDED,
  runPythonClient,
  startPython,
  startV1,
  startV2,
} from '../support/peers/index.js';
import { legacy } from '../support/raw.js';
import { ALL_CAPABILITIES, answerAll, MODEL, person, type Rig, rawRounds, startRig, textOf } from './rig.js';

const CLIENTS: readonly ClientKind[] = ['v1', 'v2 auto'];
const PAGE = 'https://example.com/connect';

/** Answers to the forms of the server. */
const form = ({ requestedSchema }: Loose) => {
  const answers: Loose = { name: 'Ada', colour: 'green', agreed: true };
  const [key = ''] = Object.keys(requestedSchema.properties);
  return { action: 'accept', content: { [key]: answers[key] } };
};
const failure = (call: Promise<unknown>): Promise<Loose> =>
  call.then(
    () => expect.fail('went well'),
    (error: unknown) => error,
  );

describe.skipIf(!hasPython).each(PYTHON_LIBRARIES)(`a Python server with %s${PYTHON_NEEDED}`, (library) => {
  let rig: Rig;
  beforeAll(async () => {
    // The first answer of a Python server takes its time on a busy machine.
    const timeouts = { connect: '15s', start: '15s', probe: '15s' };
    rig = await startRig(() => startPython(library), { questions: { roots: 'ask' }, timeouts });
    if (library !== 'mcp 2.3.0') return;
    // Its modern side cannot put the questions of these tools, which shows at the first.
    const client = await rig.connect('v2 pin', { handlers: person().handlers });
    await failure(client.callTool('ask_name'));
  });
  afterAll(() => rig?.close());

  describe.each(CLIENTS)('asks client %s', (kind) => {
    const call = async (tool: string, args: Loose = {}, answers = {}) => {
      const someone = person({ form, ...answers });
      const client = await rig.connect(kind, { handlers: someone.handlers });
      const runs = async () => Number(textOf(await client.callTool('runs', { tool })));
      const before = await runs();
      const text = textOf(await client.callTool(tool, args));
      expect(await runs()).toBe(before + 1);
      expect(client.errors).toEqual([]);
      return { text, asked: someone.asked.map(({ method }) => method) };
    };

    test('for a form, and hears what became of it', async () => {
      expect((await call('ask_name')).text).toBe('Hello Ada.');
      for (const action of ['decline', 'cancel']) {
        expect((await call('ask_name', {}, { form: () => ({ action }) })).text).toBe(`Hello (${action}).`);
      }
    });

    test('for two forms at once, and for three one after the other', async () => {
      expect((await call('ask_both')).text).toBe('Ada green');
      const { text, asked } = await call('interview');
      expect(text).toBe('Ada green True');
      expect(asked).toHaveLength(3);
    });

    test('to visit a page', async () => {
      expect((await call('visit', { url: PAGE })).text).toBe('Visited: accept.');
      const declining = { url: () => ({ action: 'decline' }) };
      expect((await call('visit', { url: PAGE }, declining)).text).toBe('Visited: decline.');
    });

    test('for a message of the model, also of one that uses a tool', async () => {
      expect((await call('sample', { prompt: 'Hi' })).text).toBe('Model: 1 heard');
      let asked = 0;
      const sampling = () => {
        asked += 1;
        const use = { type: 'tool_use', id: 'u', name: 'double', input: { number: 21 } };
        if (asked === 1) return { ...MODEL, stopReason: 'toolUse', content: [use] };
        return { ...MODEL, content: { type: 'text', text: '42' } };
      };
      const { text } = await call('sample_tools', { prompt: 'Double 21' }, { sampling });
      expect(text).toBe(library === 'FastMCP 3.4.5' ? 'Model: 42' : "Model: double({'number': 21})");
    });

    test('for the roots', async () => {
      const { text, asked } = await call('roots');
      expect(text).toMatch('file:///work');
      expect(asked).toEqual(['roots/list']);
    });

    // FastMCP makes a result of the error.
    if (library !== 'FastMCP 3.4.5') {
      test('to come back when a page was visited', async () => {
        const someone = person();
        const client = await rig.connect(kind, { handlers: someone.handlers });
        const args = { url: `${PAGE}?${encodeURIComponent(kind)}` };
        if (client.era === 'legacy') {
          const error = await failure(client.callTool('connect', args));
          expect(error.code).toBe(-32042);
          expect(error.data.elicitations[0]).toMatchObject({ mode: 'url', url: args.url });
        }
        expect(textOf(await client.callTool('connect', args))).toBe('Connected.');
        expect(someone.asked.map(({ params }) => params.url)).toEqual(
          client.era === 'legacy' ? [] : [args.url],
        );
      });
    }
  });

  test('tells of progress between the questions, on the stream and under the token of each try', async () => {
    const level = { 'io.modelcontextprotocol/logLevel': 'info' };
    const tokens = ['a', 'b', 3, 'd'];
    const tries = tokens.map((progressToken) => ({ meta: { progressToken, ...level } }));
    const answers = await rawRounds(rig.url, { name: 'interview', arguments: {} }, tries, { form });
    expect(textOf(answers.at(-1)?.json.result)).toBe('Ada green True');
    const progress = answers.map(({ messages }) =>
      messages.flatMap(({ method, params }) =>
        method === 'notifications/progress' ? [[params.progressToken, params.progress]] : [],
      ),
    );
    expect(progress).toEqual([[['a', 1]], [['b', 2]], [[3, 3]], [['d', 4]]]);
    const logs = answers.map(
      ({ messages }) => messages.filter(({ method }) => /message$/.test(method)).length,
    );
    expect(logs).toEqual([1, 1, 1, 1]);
  });

  test('asks a legacy client by hand, under ids of its own', async () => {
    const session = await legacy(rig.url, { capabilities: ALL_CAPABILITIES });
    const stream = await session.open('tools/call', { name: 'interview', arguments: {} });
    const seen = await answerAll(session, stream, { form });
    const questions = seen.filter(({ method }) => method === 'elicitation/create');
    expect(questions).toHaveLength(3);
    expect(questions.map(({ id }) => typeof id)).toEqual(['number', 'number', 'number']);
    expect(textOf(seen.at(-1)?.result)).toBe('Ada green True');
  });

  test('sees only frames of the gateway that fit the schema of their revision', () => {
    expect(rig.recording.violations).toEqual([]);
  });
});

const SERVERS: [string, () => Promise<Peer>][] = [
  ['legacy', () => startV1()],
  ['modern', () => startV2({ legacy: 'reject' })],
];

describe.skipIf(!hasPython).each(SERVERS)(`a %s server${PYTHON_NEEDED}`, (_era, start) => {
  let rig: Rig;
  beforeAll(async () => {
    rig = await startRig(start, { questions: { roots: 'ask' } });
  });
  afterAll(() => rig?.close());

  test.each([
    [1, '2025-11-25', undefined],
    [1, '2025-11-25', 'session'],
    [2, '2026-07-28', undefined],
    [2, '2026-07-28', 'session'],
  ] as const)(
    'asks a client of the Python SDK %d.x (%s) everything, in three rounds (via %s)',
    async (line, revision, via) => {
      const { form, visit, sample, listRoots } = asking;
      const rounds = [
        { a: form('A?'), b: sample('B?') },
        { c: listRoots, d: visit(PAGE) },
        { e: form('E?') },
      ];
      const report = await runPythonClient(line, rig.url, { rounds, via, notes: true });
      const filled = { action: 'accept', content: { value: 'from Python' } };
      expect(report.answers).toMatchObject({
        a: filled,
        b: { model: 'm', content: { type: 'text', text: 'sampled' } },
        c: { roots: [{ uri: 'file:///python' }] },
        d: { action: 'accept' },
        e: filled,
      });
      expect([...report.asked].sort()).toEqual(['form', 'form', 'roots', 'sampling', 'url']);
      expect(report.progress).toEqual([1, 2, 3, 4]);
      expect(report.revision).toBe(revision);
    },
  );

  test('sees only frames of the gateway that fit the schema of their revision', () => {
    expect(rig.recording.violations).toEqual([]);
  });
});
