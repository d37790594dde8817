import { expect, test } from 'vitest';
import { keeper } from '../support/keeper.js';
import { type Loose, sleep, until } from '../support/net.js';
import { connectPinned } from '../support/pinned-clients.js';
import { useVirtualTime } from '../support/virtual-time.js';
import { startResumption } from './rig.js';

useVirtualTime();

const HELD = { timeouts: { stream: '100ms' } };

const keep = keeper();

/** A `fetch` that counts how often a client came back. */
function counting() {
  const seen = { resumed: 0 };
  const own: typeof fetch = (input, init) => {
    if (new Headers(init?.headers).has('last-event-id')) seen.resumed += 1;
    return fetch(input, init);
  };
  return { seen, fetch: own };
}

test('clients of the SDK poll as often as they have to, for calls and for the stream of the session', async () => {
  const polling = (['LL', 'LM'] as const).flatMap((cell) =>
    ['SDK 1.32', 'SDK 2.4'].map(async (name) => {
      const rig = await startResumption(cell, {
        route: HELD,
        script: { capabilities: { tools: { listChanged: true } } },
      });
      await keep(rig);
      const network = counting();
      const client = await keep(connectPinned(name, rig.gateway.url(), { fetch: network.fetch }));
      const getStream = cell === 'LL' ? await until(() => rig.backend.streams[0], 'the stream') : undefined;
      const progress: number[] = [];
      const results: Loose[] = [];
      let changes = 0;
      client.sdk.fallbackNotificationHandler = async ({ method }: Loose) => {
        if (method === 'notifications/tools/list_changed') changes += 1;
      };
      const remote = await rig.nextCall(() => {
        const onprogress = (report: Loose) => void progress.push(report.progress);
        void client
          .callTool('slow', {}, { onprogress })
          .then((result) => results.push(result))
          .catch((error) => results.push(error));
      });
      for (let n = 1; n <= 50; n += 1) {
        remote.progress(n);
        if (n % 10 === 0)
          getStream?.stream.event({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' });
        await sleep(100);
      }
      remote.finish('whole');
      await until(() => results.length > 0 && progress.length >= 50, 'all of it', 10_000);
      expect([name, cell, progress]).toEqual([name, cell, Array.from({ length: 50 }, (_, n) => n + 1)]);
      expect(results).toEqual([expect.objectContaining({ content: [{ type: 'text', text: 'whole' }] })]);
      if (getStream !== undefined) await until(() => changes === 5, 'the changes', 10_000);
      // Once a second, for the call as for the stream of the session.
      expect(network.seen.resumed).toBeGreaterThan(5);
      expect(rig.calls).toHaveLength(1);
      expect(client.errors).toEqual([]);
    }),
  );
  await Promise.all(polling);
}, 40_000);
