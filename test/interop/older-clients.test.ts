import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { TestClient } from '../support/clients.js';
import { startGateway, type TestGateway } from '../support/gateway.js';
import { type Loose, until } from '../support/net.js';
import { asking, type Peer, startV1, startV2 } from '../support/peers/index.js';
import { connectPinned, PINNED, type PinnedOptions } from '../support/pinned-clients.js';
import { record, type Tap } from '../support/tap.js';
import { RESTARTS, SCENARIOS } from './scenarios.js';
import { SUBJECTS, type Subject } from './subjects.js';

/** The newest releases are in the matrix with everybody. */
const OLDER = Object.entries(PINNED).filter(([, { revision }]) => revision < '2025-11-25');
/** One server of each era, and the one that everybody tries first. */
const SERVERS = SUBJECTS.filter(({ name }) =>
  ['server-everything', 'V1 stateful', 'v2 reject'].includes(name),
);
const SEAL_KEY = Buffer.alloc(32, 7).toString('base64');

interface Stand {
  readonly peer: Peer;
  readonly gateway: TestGateway;
  readonly front: Tap;
  readonly recording: ReturnType<typeof record>;
  close(): Promise<void>;
}

async function stand(start: () => Promise<Peer>): Promise<Stand> {
  const recording = record();
  const peer = await start();
  const back = await recording.backend(peer.url);
  const gateway = await startGateway({ '/mcp': back.url }, { sealKeys: [SEAL_KEY] });
  const front = await recording.client(gateway.url());
  return {
    peer,
    gateway,
    front,
    recording,
    async close() {
      for (const part of [front, gateway, back, peer]) await part.close();
    },
  };
}

describe.each(OLDER)('the client of %s', (name, { revision }) => {
  describe.each(SERVERS)('with $name', (subject: Subject) => {
    let rig: Stand;
    let client: TestClient;
    const another = (options?: PinnedOptions) => connectPinned(name, rig.front.url, options);
    const pair = () => ({ client, subject, peer: rig.peer, aborts: subject.aborts, another });
    beforeAll(async () => {
      rig = await stand(subject.start);
      client = await another();
    });
    afterAll(async () => {
      await client?.close();
      await rig?.close();
    });

    test(`speaks ${revision}`, () => {
      const answers = rig.recording.frames.filter(
        ({ by, message }) => by === 'gateway' && message.result?.serverInfo !== undefined,
      );
      expect(answers.map(({ message }) => message.result.protocolVersion)).toContain(revision);
      expect(new Set(answers.map(({ message }) => message.result.protocolVersion))).toEqual(
        new Set([revision]),
      );
    });
    test.each(Object.entries(SCENARIOS))('%s', (_sentence, scenario) => scenario(pair()));
    test.each(Object.entries(RESTARTS))('%s', (_sentence, scenario) =>
      scenario({ ...pair(), restartGateway: () => rig.gateway.restart() }),
    );
    test('complains of nothing, and neither does the schema of its revision', () => {
      // An answer has to end somehow, also that to a request which the client does not want any more.
      expect(client.errors.filter(({ message }) => !message.includes('Request cancelled'))).toEqual([]);
      expect(rig.recording.violations).toEqual([]);
    });
  });
});

const { form, sample, listRoots } = asking;

describe.each([
  ['a legacy server', () => startV1()],
  ['a modern server', () => startV2({ legacy: 'reject' })],
] as const)('asked by %s', (_era, start) => {
  let rig: Stand;
  beforeAll(async () => {
    rig = await stand(start);
  });
  afterAll(() => rig.close());

  test.each(OLDER)('the client of %s answers what its revision knows', async (name, { revision }) => {
    const elicits = revision >= '2025-06-18';
    const asked: string[] = [];
    const handle = (method: string, answer: Loose) => async () => {
      asked.push(method);
      return answer;
    };
    const message = { role: 'assistant', model: 'm', content: { type: 'text', text: 'heard' } };
    const client = await connectPinned(name, rig.front.url, {
      capabilities: { sampling: {}, roots: {}, ...(elicits && { elicitation: {} }) },
      handlers: {
        'sampling/createMessage': handle('sampling/createMessage', message),
        'roots/list': handle('roots/list', { roots: [{ uri: 'file:///home' }] }),
        ...(elicits && {
          'elicitation/create': handle('elicitation/create', { action: 'accept', content: { value: 'v' } }),
        }),
      },
    });
    try {
      const rounds = [
        { model: sample('Hello'), ...(elicits && { person: form('Who?') }) },
        { home: listRoots },
      ];
      const told = JSON.parse((await client.callTool('ask', { rounds })).content[0].text);
      expect(told).toMatchObject({
        model: message,
        home: { roots: [{ uri: 'file:///home' }] },
        ...(elicits && { person: { action: 'accept', content: { value: 'v' } } }),
      });
      await until(() => asked.length === (elicits ? 3 : 2), 'all questions');
      expect(client.errors).toEqual([]);
      expect(rig.recording.violations).toEqual([]);
    } finally {
      await client.close();
    }
  });

  test.each(OLDER)(
    'the client of %s gets choices with titles as the server writes them, if it says that it knows forms',
    async (name, { revision }) => {
      const before = rig.recording.violations.length;
      const shown: Loose[] = [];
      const client = await connectPinned(name, rig.front.url, {
        capabilities: { elicitation: {} },
        handlers: {
          'elicitation/create': async ({ requestedSchema }) => {
            shown.push(requestedSchema.properties.colour);
            return { action: 'accept', content: { colour: 'g' } };
          },
        },
      });
      const titled = ['r', 'Red', 'g', 'Green'];
      const oneOf = [0, 2].map((n) => ({ const: titled[n], title: titled[n + 1] }));
      const colour = { type: 'string', title: 'Colour', oneOf };
      const requestedSchema = { type: 'object', properties: { colour }, required: ['colour'] };
      const question = { method: 'elicitation/create', params: { message: 'Which?', requestedSchema } };
      try {
        const told = JSON.parse((await client.callTool('ask', { rounds: [{ question }] })).content[0].text);
        expect(told.question).toMatchObject({ action: 'accept', content: { colour: 'g' } });
        expect(shown).toEqual([colour]);
        expect(client.errors).toEqual([]);
        const unknown = `gateway: ${revision} s2c elicitation/create: came with 2025-06-18`;
        expect(rig.recording.violations.slice(before)).toEqual(revision < '2025-06-18' ? [unknown] : []);
      } finally {
        await client.close();
      }
    },
  );
});
