import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CELLS, type Rig, startCell } from '../../support/cells.js';
import { sleep, until } from '../../support/net.js';
import { useVirtualTime } from '../../support/virtual-time.js';

useVirtualTime();

const calls = (rig: Rig) => rig.backend.received('tools/call').length;

describe.each(CELLS)('%s', (cell) => {
  let rig: Rig;
  beforeAll(async () => {
    rig = await startCell(cell);
    await rig.call('tools/list');
  });
  afterAll(() => rig.close());

  test('a call that takes too long ends in one clear error, is cancelled, and is not tried again', async () => {
    const slow = await startCell(cell, { route: { timeouts: { total: '400ms' } } });
    try {
      await slow.call('tools/list');
      slow.on('tools/call', ({ params, stream }) => {
        const progressToken = params._meta?.progressToken;
        if (progressToken !== undefined) {
          stream().event({
            jsonrpc: '2.0',
            method: 'notifications/progress',
            params: { progressToken, progress: 1 },
          });
        }
        return undefined;
      });
      const startedAt = Date.now();
      const [silent, begun] = await Promise.all([
        slow.call('tools/call', { name: 'slow' }, { id: 6 }),
        slow.call('tools/call', { name: 'slow', _meta: { progressToken: 1 } }, { id: 7 }),
      ]);
      expect(Date.now() - startedAt).toBeGreaterThanOrEqual(390);
      expect(Date.now() - startedAt).toBeLessThan(2_000);
      // The code that SDKs of the era have for it.
      const code = slow.modernClient ? -32603 : -32001;
      const message = expect.stringContaining('400 ms');
      const data = { eragate: 'ERAGATE_TIMEOUT' };
      expect(silent.json).toEqual({ jsonrpc: '2.0', id: 6, error: { code, message, data } });
      expect(silent.status).toBe(slow.modernClient ? 504 : 200);
      expect(begun.json).toEqual({ jsonrpc: '2.0', id: 7, error: { code, message, data } });
      expect([begun.status, begun.messages.length]).toEqual([200, 1]);
      for (const request of slow.backend.received('tools/call')) {
        await until(
          () =>
            slow.modernBackend
              ? request.disconnected
              : slow.backend
                  .received('notifications/cancelled')
                  .some(({ json }) => json.params.requestId === request.json.id),
          'the cancellation',
        );
      }
      await sleep(50);
      expect(calls(slow)).toBe(2);
      slow.on('tools/call', undefined);
      expect((await slow.call('tools/call', { name: 'echo', arguments: {} })).json.result).toBeDefined();
    } finally {
      await slow.close();
    }
  });

  test.each([
    ['breaks the connection at once', (step: { destroy(): void }) => step.destroy()],
    [
      'breaks the connection after a while',
      (step: { destroy(): void }) => {
        setTimeout(() => step.destroy(), 50);
      },
    ],
    [
      'breaks off a stream',
      (step: { stream(): { comment(text: string): void; destroy(): void } }) => {
        const events = step.stream();
        events.comment('begun');
        setTimeout(() => events.destroy(), 20);
      },
    ],
    ['ends a stream without an answer', (step: { stream(): { end(): void } }) => step.stream().end()],
  ])('a call whose backend %s has run once', async (_what, fail) => {
    const before = calls(rig);
    rig.on('tools/call', (step) => void fail(step) as undefined);
    const { json } = await rig.call('tools/call', { name: 'pay' }, { id: 6 });
    expect(json).toMatchObject({ id: 6, error: { code: -32603 } });
    await sleep(50);
    expect(calls(rig)).toBe(before + 1);
    rig.on('tools/call', undefined);
    expect((await rig.call('tools/call', { name: 'echo', arguments: {} })).json.result).toBeDefined();
  });

  test.each([500, 502, 503, 504, 408, 425])('a call that HTTP %i answers has run once', async (status) => {
    const before = calls(rig);
    rig.on('tools/call', ({ sendText }) => void sendText('try later', status) as undefined);
    const { json } = await rig.call('tools/call', { name: 'pay' }, { id: 6 });
    expect(json.error).toBeDefined();
    expect(calls(rig)).toBe(before + 1);
  });

  test('an error that merely speaks of some session of the tool’s own is no reason to call again', async () => {
    for (const error of [
      { code: -32603, message: 'Your login session has expired' },
      { code: -32000, message: 'browser session not found: tab 3' },
    ]) {
      const before = calls(rig);
      rig.on('tools/call', () => ({ error }));
      const { json } = await rig.call('tools/call', { name: 'pay' }, { id: 6 });
      expect(json.error).toEqual(error);
      expect(calls(rig)).toBe(before + 1);
    }
  });
});

test.each(['LL', 'ML'] as const)(
  '%s: a call refused for want of the session runs on a new one',
  async (cell) => {
    const rig = await startCell(cell);
    try {
      await rig.call('tools/list');
      rig.backend.forget();
      const { json } = await rig.call('tools/call', { name: 'echo', arguments: { a: 1 } });
      expect(json.result.structuredContent).toEqual({ a: 1 });
      // The refused one was answered before anything ran.
      expect(calls(rig)).toBe(2);
    } finally {
      await rig.close();
    }
  },
);
