import { afterEach, describe, expect, test } from 'vitest';
import type { ClientKind } from '../support/clients.js';
import { asking, startV1, startV2 } from '../support/peers/index.js';
import { useVirtualTime } from '../support/virtual-time.js';
import { person, type Rig, startRig, textOf } from './rig.js';

useVirtualTime();

const { form } = asking;
const KINDS: readonly ClientKind[] = ['v1', 'v2 legacy', 'v2 auto'];
const SEAL_KEY = Buffer.alloc(32, 9).toString('base64');

let rig: Rig | undefined;
afterEach(async () => {
  await rig?.close();
  rig = undefined;
});

async function start(peer: Parameters<typeof startRig>[0], kind: ClientKind, route = {}) {
  rig = await startRig(peer, route, { sealKeys: [SEAL_KEY] });
  const someone = person();
  const client = await rig.connect(kind, { handlers: someone.handlers });
  const { recording } = rig;
  return {
    ...rig,
    /** Calls a tool that asks twice, on one of the streams, and says on which session. */
    async ask(via?: 'session') {
      const before = someone.asked.length;
      const result = await client.callTool('ask', { rounds: [{ a: form('A?') }, { b: form('B?') }], via });
      expect(JSON.parse(textOf(result))).toEqual({
        a: { action: 'accept', content: { value: 'to: A?' } },
        b: { action: 'accept', content: { value: 'to: B?' } },
      });
      expect(someone.asked.length - before).toBe(2);
      expect(client.errors).toEqual([]);
      expect(recording.violations).toEqual([]);
      return rig?.peer.calls.at(-1)?.sessionId;
    },
  };
}

describe.each(KINDS)('client %s is asked', (kind) => {
  describe.each([
    ['on the stream of the call', undefined],
    ["on the session's stream", 'session'],
  ] as const)('%s', (_where, via) => {
    test.each([
      ['says so as the specification has it', {}],
      ['says so as many servers do', { unknownSession: 400 }],
      ['keeps events', { resumable: true }],
    ] as const)('by a server that lost the session, and %s', async (_how, options) => {
      const { ask, peer } = await start(() => startV1(options), kind);
      const first = await ask(via);
      await peer.restart();
      const second = await ask(via);
      expect(second).not.toBe(first);
      expect(await ask(via)).toBe(second);
    });

    test('by the same server through a gateway that was restarted', async () => {
      const { ask, gateway } = await start(() => startV1(), kind);
      await ask(via);
      await gateway.restart();
      await ask(via);
    });

    test('on a session of its own for each call', async () => {
      const { ask } = await start(() => startV1(), kind, { sessions: { isolation: 'call' } });
      const sessions = new Set([await ask(via), await ask(via)]);
      expect(sessions.size).toBe(kind === 'v2 auto' ? 2 : 1);
    });
  });

  test('by a modern server that was restarted', async () => {
    const { ask, peer } = await start(() => startV2({ legacy: 'reject' }), kind);
    await ask();
    await peer.restart();
    await ask();
  });
});
