import { describe, expect, test } from 'vitest';
import { startCell } from '../support/cells.js';
import { type Loose, sleep, until } from '../support/net.js';
import { legacy, type RawStream } from '../support/raw.js';
import { useVirtualTime } from '../support/virtual-time.js';
import { lastIdOf, resume } from './rig.js';

useVirtualTime();

const MESSAGES = 1_200;
const PADDING = 'x'.repeat(16_000);

/** A tool that reports once, and when it is let as fast as it is read; it counts what has been taken. */
async function startChatty(cell: 'LL' | 'LM') {
  const rig = await startCell(cell, { handshake: { version: '2025-11-25' } });
  const seen = { taken: 0, goOn: (): void => {} };
  const allowed = new Promise<void>((resolve) => {
    seen.goOn = resolve;
  });
  rig.on('tools/call', async (step) => {
    step.stream({ 'mcp-session-id': step.session ?? '' });
    const { res } = step;
    let go = (): void => {};
    res.on('drain', () => go()).on('close', () => go());
    for (let n = 0; n < MESSAGES && !res.destroyed; n += 1) {
      const { progressToken } = step.params._meta;
      const params = { progressToken, progress: n, message: PADDING };
      seen.taken = n;
      if (n === 1) await allowed;
      if (
        res.write(`data: ${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/progress', params })}\n\n`)
      )
        continue;
      await new Promise<void>((resolve) => {
        go = resolve;
      });
    }
    const { result } = rig.result('{"content":[]}');
    res.end(`data: ${JSON.stringify(step.frame({ result: JSON.parse(result.text) }))}\n\n`);
    return undefined;
  });
  return { rig, seen };
}

const numbers = (stream: RawStream): number[] =>
  stream.events.flatMap(({ json }: { json: Loose }) => json.params?.progress ?? []);
/** Waits until nothing has been taken for a while. */
async function stalled(seen: { taken: number }): Promise<number> {
  let before = -1;
  while (before !== seen.taken) {
    before = seen.taken;
    await sleep(300);
  }
  return before;
}

describe.each(['LL', 'LM'] as const)('%s: a call that tells more than can be kept', (cell) => {
  test('waits for a client that is away, which misses nothing of it', async () => {
    const { rig, seen } = await startChatty(cell);
    try {
      const session = await legacy(rig.gateway.url());
      const stream = await session.open('tools/call', { name: 'a', _meta: { progressToken: 'p' } });
      await stream.next();
      stream.abort();
      await until(() => stream.ended, 'the end of the connection');
      await sleep(50);
      seen.goOn();
      const first = numbers(stream);
      expect(await stalled(seen)).toBeLessThan(MESSAGES - 1);
      const again = await resume(session, lastIdOf(stream));
      await again.done;
      const all = [...first, ...numbers(again)];
      expect(all).toEqual(Array.from({ length: MESSAGES }, (_, n) => n));
      expect(again.events.at(-1)?.json.result).toBeDefined();
    } finally {
      await rig.close();
    }
  }, 60_000);
});
