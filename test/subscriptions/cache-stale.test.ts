import { afterEach, describe, expect, test } from 'vitest';
import { type Loose, sleep } from '../support/net.js';
import { modern } from '../support/raw.js';
import { useVirtualTime } from '../support/virtual-time.js';
import { cacheOf, heardBy, listen, Opened, startTelling, startTellingLegacy, TOOLS_CHANGED } from './rig.js';

useVirtualTime();

const opened = new Opened();
afterEach(() => opened.closeAll());

const TOOLS = [{ name: 'a', inputSchema: { type: 'object' } }];

describe('when the backend is away', () => {
  const CACHE = { 'tools/list': '200ms', staleIfError: '10m' };

  test.each(['legacy', 'modern'] as const)(
    'what was kept of a %s one stands in for it, where the route allows',
    async (era) => {
      const hints = era === 'modern' ? { resultType: 'complete', ttlMs: 200, cacheScope: 'private' } : {};
      const on = { 'tools/list': () => ({ result: { ...hints, tools: TOOLS } }) };
      const { backend, url, gateway } = await opened.routeTo(await startTelling[era]({ on }), {
        cache: CACHE,
      });
      await modern(url, 'tools/list');
      await sleep(250);
      await backend.stop();
      const { status, json } = await modern(url, 'tools/list', {}, { id: 9 });
      expect(status).toBe(200);
      expect(json).toMatchObject({ id: 9, result: { tools: TOOLS, ttlMs: 0, resultType: 'complete' } });
      expect(cacheOf(gateway, 'tools/list').at(-1)).toBe('stale');
      // What was never asked for cannot be had.
      expect((await modern(url, 'tools/list', { cursor: 'x' })).status).toBeGreaterThanOrEqual(500);
      await backend.start();
      await modern(url, 'tools/list');
      expect(cacheOf(gateway, 'tools/list').at(-1)).toBeUndefined();
    },
  );

  test('also when it fails as a server, or lets its callers wait', async () => {
    let fault: Loose;
    const on = {
      'tools/list': (step: Loose) => (fault === undefined ? { result: { tools: TOOLS } } : fault(step)),
    };
    const { url } = await opened.routeTo(await startTellingLegacy({ on }), {
      cache: CACHE,
      timeouts: { total: '700ms' },
    });
    await modern(url, 'tools/list');
    await sleep(250);
    for (const broken of [
      ({ res }: Loose) => res.writeHead(503).end('later'),
      ({ res }: Loose) => res.destroy(),
      ({ sendJson, id }: Loose) =>
        sendJson({ jsonrpc: '2.0', id, error: { code: -32603, message: 'down' } }, 502),
      () => undefined,
    ]) {
      fault = (step: Loose) => void broken(step);
      expect((await modern(url, 'tools/list')).json.result.tools).toEqual(TOOLS);
    }
    for (const [status, refusal] of [
      [401, ({ res }: Loose) => res.writeHead(401, { 'www-authenticate': 'Bearer' }).end()],
      [429, ({ res }: Loose) => res.writeHead(429).end()],
      [
        200,
        ({ sendJson, id }: Loose) => sendJson({ jsonrpc: '2.0', id, error: { code: -32603, message: 'No' } }),
      ],
    ] as [number, Loose][]) {
      fault = (step: Loose) => void refusal(step);
      const answer = await modern(url, 'tools/list');
      expect([answer.status, answer.json.error === undefined]).toEqual([status, false]);
    }
  });

  test('and for no longer than it says, nor where it says nothing', async () => {
    const on = { 'tools/list': () => ({ result: { tools: TOOLS } }) };
    for (const staleIfError of ['300ms', undefined]) {
      const cache = { 'tools/list': '100ms', ...(staleIfError && { staleIfError }) };
      const { backend, url } = await opened.routeTo(await startTellingLegacy({ on }), { cache });
      await modern(url, 'tools/list');
      await sleep(450);
      await backend.stop();
      expect((await modern(url, 'tools/list')).status).toBeGreaterThanOrEqual(500);
    }
  });

  test('and not what a change has made old', async () => {
    const on = { 'tools/list': () => ({ result: { tools: TOOLS } }) };
    const { backend, url } = await opened.routeTo(await startTellingLegacy({ on }), { cache: CACHE });
    const listener = opened.add(await listen(url, { toolsListChanged: true }));
    await modern(url, 'tools/list');
    backend.tell(TOOLS_CHANGED);
    await heardBy(listener, 1);
    await backend.stop();
    expect((await modern(url, 'tools/list')).status).toBeGreaterThanOrEqual(500);
  });
});
