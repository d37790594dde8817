import { McpError } from '@modelcontextprotocol/sdk/types.js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Loose } from '../support/net.js';
import { asking, startV1, startV2 } from '../support/peers/index.js';
import { useVirtualTime } from '../support/virtual-time.js';
import { person, type Rig, startRig, textOf } from './rig.js';

useVirtualTime();

const { form, visit, sample, listRoots } = asking;

const refuse = (): never => {
  throw new McpError(-32050, 'I would rather not');
};
const REFUSING = { form: refuse, url: refuse, sampling: refuse, roots: refuse };
const failure = (call: Promise<unknown>): Promise<Loose> =>
  call.then(
    () => expect.fail('went well'),
    (error: unknown) => error,
  );

const ROUNDS: [string, asking.Ask][] = [
  ['a form', form('A?')],
  ['a page', visit('https://example.com/')],
  ['a message of the model', sample('S?')],
  ['the roots', listRoots],
];

describe.each([
  ['on the stream of the call', undefined],
  ["on the session's stream", 'session'],
])('a legacy server that asks %s', (_where, via) => {
  let rig: Rig;
  beforeAll(async () => {
    rig = await startRig(() => startV1(), { questions: { roots: 'ask' } });
  });
  afterAll(() => rig?.close());

  test.each(ROUNDS)(
    'is told the code and the words in which a legacy client refuses %s',
    async (_what, ask) => {
      const client = await rig.connect('v1', { handlers: person(REFUSING).handlers });
      const result = await client.callTool('ask', { rounds: [{ a: ask }], via });
      const { error } = JSON.parse(textOf(result)).a;
      expect(error.code).toBe(-32050);
      expect(error.message).toMatch(/I would rather not/);
    },
  );

  test('gets the other answers of a round in which one question is refused', async () => {
    const client = await rig.connect('v1', { handlers: person({ sampling: refuse }).handlers });
    const result = await client.callTool('ask', { rounds: [{ a: form('A?'), b: sample('B?') }], via });
    expect(JSON.parse(textOf(result))).toMatchObject({
      a: { action: 'accept' },
      b: { error: { code: -32050 } },
    });
  });

  test('is shown only frames that fit the schema of their revision', () => {
    expect(rig.recording.violations).toEqual([]);
  });
});

describe('a modern server', () => {
  let rig: Rig;
  beforeAll(async () => {
    rig = await startRig(() => startV2({ legacy: 'reject' }));
  });
  afterAll(() => rig?.close());

  // The era has no word for an error of the client: what comes nearest is told, or else the call fails.
  test.each([
    ['a form', form('A?'), { action: 'cancel' }],
    ['a page', visit('https://example.com/'), { action: 'cancel' }],
    ['the roots', listRoots, { roots: [] }],
  ])('is told what comes nearest where a legacy client refuses %s', async (_what, ask, told) => {
    const client = await rig.connect('v1', { handlers: person(REFUSING).handlers });
    const result = await client.callTool('ask', { rounds: [{ a: ask }] });
    expect(JSON.parse(textOf(result))).toEqual({ a: told });
  });

  test('is not told anything where there is nothing near to a refusal: the tool has failed', async () => {
    const client = await rig.connect('v1', { handlers: person(REFUSING).handlers });
    const result = await client.callTool('ask', { rounds: [{ a: sample('S?') }] });
    expect(result).toMatchObject({ isError: true });
    expect(textOf(result)).toMatch(/I would rather not/);
  });

  test('is shown only frames that fit the schema of their revision', () => {
    expect(rig.recording.violations).toEqual([]);
  });
});

// The SDK's client then fails its call, and never comes back.
describe('a modern client whose handler fails', () => {
  test('leaves a call behind that a legacy server hears about in time', async () => {
    const rig = await startRig(() => startV1(), { questions: { timeout: '1s' } });
    try {
      const client = await rig.connect('v2 pin', { handlers: person(REFUSING).handlers });
      await failure(client.callTool('ask', { rounds: [{ a: form('A?') }, { b: form('B?') }] }));
      const [call] = rig.peer.calls;
      expect(call).toMatchObject({ finished: false, cancelled: false });
      await expect.poll(() => call?.cancelled, { timeout: 5_000 }).toBe(true);
      const answers = rig.recording.frames.filter(
        ({ by, message }) => by === 'gateway' && message.result?.action,
      );
      expect(answers.map(({ message }) => message.result)).toEqual([{ action: 'cancel' }]);
      expect(rig.recording.violations).toEqual([]);
    } finally {
      await rig.close();
    }
  });
});
