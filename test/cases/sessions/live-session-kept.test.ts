import { describe, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../../support/gateway.js';
import { keeper } from '../../support/keeper.js';
import { type ScriptedBackend, startLegacyBackend } from '../../support/misbehave.js';
import { type Loose, until } from '../../support/net.js';
import { legacy, modern, openModern } from '../../support/raw.js';
import { useVirtualTime } from '../../support/virtual-time.js';

useVirtualTime();

const keep = keeper();
const capabilities = { tools: { listChanged: true } };

/** Opens the stream of changes as a client of each era. */
const READERS: Record<string, (gateway: TestGateway) => Promise<unknown>> = {
  legacy: async (gateway) => (await legacy(gateway.url())).listen(),
  modern: (gateway) =>
    openModern(gateway.url(), 'subscriptions/listen', { notifications: { toolsListChanged: true } }),
};

describe.each(Object.entries(READERS))('the session of a %s client whose stream breaks', (_era, read) => {
  test.each([
    [400, 'Session registration failed: session already exists'],
    [406, 'Not Acceptable'],
    [422, 'Unprocessable'],
  ])('lives on when the next GETs get %i, and its stream is opened again', async (status, words) => {
    const backend = await keep(startLegacyBackend({ capabilities }));
    const gateway = await keep(startGateway({ '/mcp': backend.url }));
    await read(gateway);
    await until(() => backend.streams.length === 1);
    let refused = 0;
    backend.on('GET', ({ sendText }) => {
      if (++refused === 3) backend.on('GET', undefined);
      sendText(words, status);
      return undefined;
    });
    backend.streams[0]?.stream.destroy();
    await until(() => backend.streams.length === 2, 'the second stream', 60_000);
    expect(refused).toBe(3);
    expect(backend.streams[1]?.session).toBe(backend.streams[0]?.session);
    expect(backend.received('initialize')).toHaveLength(1);
  });

  test('is opened anew when the backend does not know it any more', async () => {
    const backend = await keep(startLegacyBackend({ capabilities }));
    const gateway = await keep(startGateway({ '/mcp': backend.url }));
    await read(gateway);
    await until(() => backend.streams.length === 1);
    backend.forget();
    await until(() => backend.received('initialize').length === 2);
  });

  test('is not asked for a stream ten times a second when each ends at once', async () => {
    const backend = await keep(startLegacyBackend({ capabilities }));
    const askedAt: number[] = [];
    backend.on('GET', (step) => {
      askedAt.push(performance.now());
      const stream = step.stream();
      stream.write('retry: 1\n\n');
      stream.end();
      return undefined;
    });
    const gateway = await keep(startGateway({ '/mcp': backend.url }));
    await read(gateway);
    await until(() => askedAt.length >= 5, 'five streams', 60_000);
    const pauses = askedAt.slice(1).map((at, i) => at - (askedAt[i] ?? 0));
    for (const [i, pause] of pauses.entries()) {
      expect(pause).toBeGreaterThan(990);
      if (i > 2) expect(pause).toBeGreaterThan((pauses[i - 1] ?? 0) * 1.5);
    }
  });
});

/** Ways to call a tool as a client of each era, on a session that exists already. */
const CALLERS: Record<string, (gateway: TestGateway) => Promise<() => Promise<Loose>>> = {
  legacy: async (gateway) => {
    const session = await legacy(gateway.url());
    await session.request('tools/list');
    return () => session.request('tools/call', { name: 'echo', arguments: {} });
  },
  modern: async (gateway) => {
    await modern(gateway.url(), 'tools/list');
    return () => modern(gateway.url(), 'tools/call', { name: 'echo', arguments: {} });
  },
};

describe.each(Object.entries(CALLERS))("a tool's own words to a %s client", (_era, begin) => {
  test.each([
    [200, -32000, 'Session not found'],
    [200, -32603, 'Invalid session ID'],
    [200, -32603, 'Session expired'],
    [200, -32001, 'Session not found'],
    [500, -32603, 'Session not found'],
  ])(
    'at HTTP %i, %i %s, reach it: the session lives and the tool runs once',
    async (status, code, message) => {
      const backend: ScriptedBackend = await keep(startLegacyBackend());
      const gateway = await keep(startGateway({ '/mcp': backend.url }));
      const call = await begin(gateway);
      backend.on('tools/call', ({ sendJson, frame }) => {
        sendJson(frame({ error: { code, message } }), status);
        return undefined;
      });
      const { json } = await call();
      expect(json.error.message).toBe(message);
      expect(backend.received('tools/call')).toHaveLength(1);
      expect(backend.received('initialize')).toHaveLength(1);
      backend.on('tools/call', undefined);
      expect((await call()).json.result).toBeDefined();
      expect(backend.received('initialize')).toHaveLength(1);
    },
  );
});

describe.each(Object.entries(CALLERS))('a backend that comes up slowly, to a %s client', (_era, begin) => {
  test.each(['initialize', 'notifications/initialized'])('has its %s waited for', async (method) => {
    let slow = true;
    const backend = await keep(
      startLegacyBackend({
        on: {
          [method]: async ({ id, params, res }) => {
            if (slow) await new Promise((resolve) => setTimeout(resolve, 7_000));
            slow = false;
            if (id === undefined) {
              res.writeHead(202).end();
              return undefined;
            }
            const serverInfo = { name: 'slow', version: '1.0.0' };
            return {
              result: { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo },
            };
          },
        },
      }),
    );
    const gateway = await keep(startGateway({ '/mcp': backend.url }));
    const call = await begin(gateway);
    expect((await call()).json.result).toBeDefined();
    expect(backend.received('initialize')).toHaveLength(1);
  });
});
