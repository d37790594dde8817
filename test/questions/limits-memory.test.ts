import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { parseConfig } from '../../src/config/index.js';
import { createGateway } from '../../src/gateway.js';
import { configText } from '../support/gateway.js';
import { collectGarbage } from '../support/memory.js';
import { type Loose, sleep } from '../support/net.js';

const WARM_UP = 1_000;
const CALLS = 4_000;
/** Less than two kilobytes for each call, where one that stayed would take many. Connections and compiled code vary. */
const MAX_GROWTH_BYTES = 6 * 1024 * 1024;

/** The heap in use, once what finalizers and weak references held on to is gone too. */
async function settledHeap(): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let i = 0; i < 8; i++) {
    collectGarbage();
    least = Math.min(least, process.memoryUsage().heapUsed);
    await sleep(30);
  }
  return least;
}

async function ask(child: ChildProcess, message: Loose): Promise<Loose> {
  child.send(message);
  return (await once(child, 'message'))[0];
}

test('thousands of calls that wait and expire leave nothing behind', { timeout: 180_000 }, async () => {
  const child = fork(new URL('forgetful-server.mjs', import.meta.url));
  const [{ url }] = (await once(child, 'message')) as [Loose];
  const text = configText({ '/mcp': { backend: { url, era: 'legacy' }, questions: { timeout: '300ms' } } });
  const gateway = createGateway(parseConfig(text, 'test.yaml', {}), { log: pino({ level: 'silent' }) });
  const target = `${await gateway.listen()}/mcp`;

  /** Lets calls come and expire; gives the heap that is in use afterwards. */
  async function run(calls: number, sofar: number): Promise<{ heap: number; counts: Loose }> {
    const { statuses, counts } = await ask(child, { gateway: target, calls });
    expect(statuses).toEqual([200]);
    expect(counts).toMatchObject({ refused: sofar, cancelled: sofar });
    return { heap: await settledHeap(), counts };
  }

  try {
    const before = await run(WARM_UP, WARM_UP);
    const after = await run(CALLS, WARM_UP + CALLS);
    expect(after.heap - before.heap).toBeLessThan(MAX_GROWTH_BYTES);
    // The sessions are free again, and no more of them are kept than may be.
    expect(after.counts.sessions).toBeLessThanOrEqual(100);
  } finally {
    await gateway.close();
    child.disconnect();
  }
});
