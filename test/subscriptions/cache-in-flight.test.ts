import { afterEach, describe, expect, test } from 'vitest';
import { type Loose, sleep, until } from '../support/net.js';
import { modern } from '../support/raw.js';
import { useVirtualTime } from '../support/virtual-time.js';
import { cacheOf, heardBy, listen, Opened, startTelling, TOOLS_CHANGED } from './rig.js';

useVirtualTime();

const opened = new Opened();
afterEach(() => opened.closeAll());

const TOOLS = [{ name: 'a', inputSchema: { type: 'object' } }];

describe('equal requests in flight', () => {
  /** A backend that answers `tools/list` when told to. */
  async function startHeld(era: 'legacy' | 'modern', route: Loose = {}) {
    const held: ((outcome?: Loose) => void)[] = [];
    const result =
      era === 'modern'
        ? { resultType: 'complete', ttlMs: 0, cacheScope: 'private', tools: TOOLS }
        : { tools: TOOLS };
    const backend = await startTelling[era]({
      on: {
        'tools/list': () =>
          new Promise<Loose>((resolve) => {
            held.push((outcome = { result }) => resolve(outcome));
          }),
      },
    });
    return { held, ...(await opened.routeTo(backend, route)) };
  }

  describe.each(['legacy', 'modern'] as const)('to a %s backend', (era) => {
    test('are one, and each is answered under its own id', async () => {
      const { url, backend, held, gateway } = await startHeld(era);
      const ids = [0, 'a', 1, '1', 'x'.repeat(50)];
      const answers = Promise.all(ids.map((id) => modern(url, 'tools/list', {}, { id })));
      await until(() => held.length === 1, 'the request');
      await sleep(100);
      held[0]?.();
      for (const [index, { json }] of (await answers).entries())
        expect(json).toMatchObject({ id: ids[index], result: { tools: TOOLS, resultType: 'complete' } });
      expect(backend.received('tools/list')).toHaveLength(1);
      expect(cacheOf(gateway, 'tools/list').sort()).toEqual([
        'joined',
        'joined',
        'joined',
        'joined',
        undefined,
      ]);
    });

    test('go on when the first client leaves, by one request for all of the others', async () => {
      const { url, backend, held } = await startHeld(era);
      const leaving = new AbortController();
      const first = modern(url, 'tools/list', {}, { signal: leaving.signal });
      await until(() => held.length === 1, 'the request');
      const others = Promise.all([1, 2, 3].map((id) => modern(url, 'tools/list', {}, { id })));
      await sleep(100);
      leaving.abort();
      await expect(first).rejects.toThrow();
      await until(() => held.length === 2, 'another request');
      await sleep(100);
      held[1]?.();
      for (const { json } of await others) expect(json.result.tools).toEqual(TOOLS);
      expect(backend.received('tools/list')).toHaveLength(2);
      held[0]?.();
    });

    test('one of which is given up does not wait for the others', async () => {
      const { url, held, gateway } = await startHeld(era);
      const first = modern(url, 'tools/list', {}, { id: 1 });
      await until(() => held.length === 1, 'the request');
      const leaving = new AbortController();
      const second = modern(url, 'tools/list', {}, { id: 2, signal: leaving.signal });
      await sleep(50);
      leaving.abort();
      await expect(second).rejects.toThrow();
      await until(() => gateway.logs.some(({ outcome }) => outcome === 'cancelled'), 'its end');
      held[0]?.();
      expect((await first).json.result.tools).toEqual(TOOLS);
    });

    test('fail together where the backend refuses or fails', async () => {
      const { url, backend, held } = await startHeld(era);
      const ask = (id: number) => modern(url, 'tools/list', {}, { id });
      const answers = Promise.all([1, 2, 3].map(ask));
      await until(() => held.length === 1, 'the request');
      await sleep(50);
      held[0]?.({ error: { code: -32603, message: 'No list today' } });
      for (const [index, { json }] of (await answers).entries())
        expect(json).toMatchObject({ id: index + 1, error: { message: 'No list today' } });
      expect(backend.received('tools/list')).toHaveLength(1);
    });

    test('are two where something changes between them, and what was asked for before is not kept', async () => {
      const { url, backend, held } = await startHeld(era, { cache: { 'tools/list': '1m' } });
      const listener = opened.add(await listen(url, { toolsListChanged: true }));
      const before = modern(url, 'tools/list', {}, { id: 'before' });
      await until(() => held.length === 1, 'the request');
      backend.tell(TOOLS_CHANGED);
      await heardBy(listener, 1, 20);
      const after = modern(url, 'tools/list', {}, { id: 'after' });
      await until(() => held.length === 2, 'another request');
      const hints = era === 'modern' ? { resultType: 'complete', ttlMs: 60_000, cacheScope: 'private' } : {};
      held[1]?.({ result: { ...hints, tools: [{ ...TOOLS[0], name: 'new' }] } });
      expect((await after).json.result.tools[0].name).toBe('new');
      held[0]?.({ result: { ...hints, tools: [{ ...TOOLS[0], name: 'old' }] } });
      expect((await before).json.result.tools[0].name).toBe('old');
      expect((await modern(url, 'tools/list')).json.result.tools[0].name).toBe('new');
      expect(backend.received('tools/list')).toHaveLength(2);
    });
  });
});
