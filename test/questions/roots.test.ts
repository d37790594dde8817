import { afterEach, describe, expect, test } from 'vitest';
import type { Loose } from '../support/net.js';
import { asking, type Peer, startEverything, startV1, startV2 } from '../support/peers/index.js';
import { ALL_CAPABILITIES, person, type Rig, ROOTS, startRig, textOf } from './rig.js';

type Handler = (params: Loose) => Promise<Loose>;
const CALL = { rounds: [{ where: asking.listRoots }] };
const answerOf = (result: unknown) => JSON.parse(textOf(result)).where;

let rig: Rig | undefined;
afterEach(async () => {
  await rig?.close();
  rig = undefined;
});

async function start(roots: string | undefined, peer: () => Promise<Peer> = () => startV1()) {
  rig = await startRig(peer, roots === undefined ? {} : { questions: { roots } });
  return rig;
}
const declared = (rig: Rig) =>
  rig.recording.exchanges
    .filter(({ side, body }) => side === 'backend' && body?.method === 'initialize')
    .map(({ body }) => body.params.capabilities);

describe('a legacy server', () => {
  test.each([undefined, 'off'])(
    'is not told of the roots of modern clients, where the setting is %s',
    async (setting) => {
      const { recording, connect } = await start(setting);
      const someone = person();
      const client = await connect('v2 auto', { handlers: someone.handlers });
      const { error } = answerOf(await client.callTool('ask', CALL));
      expect(error.message).toMatch(/roots/);
      expect(someone.asked).toEqual([]);
      expect(declared(rig as Rig)).not.toContainEqual(expect.objectContaining({ roots: expect.anything() }));
      expect(recording.violations).toEqual([]);
    },
  );

  test('asks a modern client each time, where it is `ask`, and is never promised news', async () => {
    const { recording, connect } = await start('ask');
    const someone = person({ roots: (_params, earlier) => ({ roots: [{ uri: `file:///${earlier}` }] }) });
    const capabilities = { ...ALL_CAPABILITIES, roots: { listChanged: true } };
    const client = await connect('v2 auto', { handlers: someone.handlers, capabilities });
    for (const n of [0, 1, 2]) {
      expect(answerOf(await client.callTool('ask', CALL))).toEqual({ roots: [{ uri: `file:///${n}` }] });
    }
    expect(declared(rig as Rig)).toContainEqual(ALL_CAPABILITIES);
    expect(recording.violations).toEqual([]);
  });

  test('asks a modern client once, where it is `cached`, and each client for its own', async () => {
    const { recording, connect } = await start('cached');
    const [one, two] = ['one', 'two'].map((name) =>
      person({ roots: () => ({ roots: [{ uri: `file:///${name}` }] }) }),
    ) as [ReturnType<typeof person>, ReturnType<typeof person>];
    const first = await connect('v2 auto', { handlers: one.handlers, name: 'One' });
    const second = await connect('v2 auto', { handlers: two.handlers, name: 'Two' });
    for (let n = 0; n < 3; n += 1) {
      expect(answerOf(await first.callTool('ask', CALL))).toEqual({ roots: [{ uri: 'file:///one' }] });
      expect(answerOf(await second.callTool('ask', CALL))).toEqual({ roots: [{ uri: 'file:///two' }] });
    }
    expect([one.asked.length, two.asked.length]).toEqual([1, 1]);
    expect(recording.violations).toEqual([]);
  });

  test.each(['ask', 'cached'])(
    'that asks while no call is there to carry the question is told what is known, where it is `%s`',
    async (setting) => {
      const { recording, connect } = await start(setting, startEverything);
      const someone = person();
      const client = await connect('v2 auto', { handlers: someone.handlers });
      expect(textOf(await client.callTool('get-roots-list'))).toContain('file:///work');
      const answers = () =>
        recording.frames.filter(({ by, message }) => by === 'gateway' && message.result?.roots);
      const before = answers().length;
      // Another session of the same client: the server asks on it a while after the handshake.
      const { 'roots/list': answer } = someone.handlers;
      const capabilities = { roots: {} };
      const again = await connect('v2 auto', { handlers: { 'roots/list': answer as Handler }, capabilities });
      await again.listTools();
      await expect.poll(() => answers().length, { timeout: 5_000 }).toBeGreaterThan(before);
      expect(answers().at(-1)?.message.result).toEqual(ROOTS);
      expect(recording.violations).toEqual([]);
    },
  );

  test('asks a legacy client whatever the setting, and hears of changes', async () => {
    const { recording, connect } = await start('off', startEverything);
    let roots = ROOTS;
    const someone = person({ roots: () => roots });
    const client = await connect('v1', {
      handlers: someone.handlers,
      capabilities: { ...ALL_CAPABILITIES, roots: { listChanged: true } },
    });
    // The server asks by itself a while after the handshake, or else when the tool is called.
    expect(textOf(await client.callTool('get-roots-list'))).toContain('file:///work');
    roots = { roots: [{ uri: 'file:///elsewhere', name: 'Elsewhere' }] };
    await client.sdk.sendRootsListChanged();
    await expect
      .poll(async () => textOf(await client.callTool('get-roots-list')))
      .toContain('file:///elsewhere');
    expect(recording.violations).toEqual([]);
  });
});

test.each(['v1', 'v2 auto'] as const)('a modern server asks client %s whatever the setting', async (kind) => {
  const { recording, connect } = await start('off', () => startV2({ legacy: 'reject' }));
  const client = await connect(kind, { handlers: person().handlers });
  expect(answerOf(await client.callTool('ask', CALL))).toEqual(ROOTS);
  expect(recording.violations).toEqual([]);
});
