import type { Socket } from 'node:net';
import { beforeAll, describe, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../../support/gateway.js';
import { keeper } from '../../support/keeper.js';
import {
  type BackendExchange,
  type ScriptedBackend,
  startLegacyBackend,
  startModernBackend,
} from '../../support/misbehave.js';
import { type Loose, sleep } from '../../support/net.js';
import { legacy, modern, type RawResponse } from '../../support/raw.js';
import { useVirtualTime } from '../../support/virtual-time.js';

useVirtualTime();

const keep = keeper();

/** Ways in which a connection turns out to be dead once a request was written to it. */
const DEATHS: Record<string, (socket: Socket) => void> = {
  'is reset': (socket) => void socket.resetAndDestroy(),
  'is closed': (socket) => void socket.destroy(),
  'is closed after a while': (socket) => void setTimeout(() => socket.destroy(), 50),
};
type Death = keyof typeof DEATHS;

interface Rig {
  backend: ScriptedBackend;
  gateway: TestGateway;
  /** From now on every connection that has carried a request before dies of the next one. */
  doom(death: Death, fits?: (exchange: BackendExchange) => boolean): void;
  /** Requests that met a dead connection. */
  lost: BackendExchange[];
}

async function start(era: 'legacy' | 'modern', script: Loose = {}): Promise<Rig> {
  let used = new WeakSet<Socket>();
  let dead = new WeakSet<Socket>();
  let doomed: { death: Death; fits: (exchange: BackendExchange) => boolean } | undefined;
  const lost: BackendExchange[] = [];
  const result = { resultType: 'complete', ttlMs: 0, cacheScope: 'private' };
  const backend = await (era === 'legacy' ? startLegacyBackend : startModernBackend)({
    capabilities: { tools: {}, prompts: {}, resources: {}, completions: {} },
    ...script,
    intercept: (exchange) => {
      const socket = exchange.res.socket as Socket;
      if (doomed && dead.has(socket) && doomed.fits(exchange)) {
        lost.push(exchange);
        (DEATHS[doomed.death] as (socket: Socket) => void)(socket);
        return true;
      }
      used.add(socket);
      return false;
    },
    on: {
      'prompts/list': () => ({ result: { ...result, prompts: [] } }),
      'prompts/get': () => ({ result: { ...result, messages: [] } }),
      'resources/list': () => ({ result: { ...result, resources: [] } }),
      'resources/templates/list': () => ({ result: { ...result, resourceTemplates: [] } }),
      'resources/read': () => ({ result: { ...result, contents: [] } }),
      'completion/complete': () => ({ result: { ...result, completion: { values: [] } } }),
      'x/custom': () => ({ result: { ...result } }),
      ...script.on,
    },
  });
  await keep(backend);
  const gateway = await keep(startGateway({ '/mcp': backend.url }));
  const rig: Rig = {
    backend,
    gateway,
    lost,
    doom(death, fits = () => true) {
      doomed = { death, fits };
      dead = used;
      used = new WeakSet();
    },
  };
  return rig;
}

const SAFE: Record<string, Loose> = {
  'tools/list': {},
  'prompts/list': {},
  'prompts/get': { name: 'p' },
  'resources/list': {},
  'resources/templates/list': {},
  'resources/read': { uri: 'file:///a' },
  'completion/complete': { ref: { type: 'ref/prompt', name: 'p' }, argument: { name: 'a', value: '' } },
};
const UNSAFE: Record<string, Loose> = {
  'tools/call': { name: 'echo', arguments: { text: 'once' } },
  'x/custom': { any: 1 },
};

type Call = (method: string, params: Loose) => Promise<RawResponse>;
const CLIENTS: Record<string, (gateway: TestGateway) => Promise<Call>> = {
  modern: async (gateway) => (method, params) => modern(gateway.url(), method, params),
  legacy: async (gateway) => {
    const session = await legacy(gateway.url());
    return (method, params) => session.request(method, params);
  },
};

describe.each(['legacy', 'modern'] as const)('a %s backend', (era) => {
  describe.each(Object.keys(CLIENTS))('asked by a %s client', (client) => {
    const clientOf = CLIENTS[client] as (typeof CLIENTS)[string];

    describe.each(Object.keys(DEATHS))('whose kept connection %s as the request goes out', (death) => {
      test('gets what changes nothing again, over a new connection', async () => {
        const rig = await start(era);
        const call = await clientOf(rig.gateway);
        for (const [method, params] of Object.entries(SAFE)) {
          expect((await call(method, params)).status, method).toBe(200);
          const lost = rig.lost.length;
          rig.doom(death);
          const answer = await call(method, params);
          expect(answer.status, method).toBe(200);
          expect(answer.json.result).toBeDefined();
          expect(rig.lost.length, method).toBeGreaterThan(lost);
          // The second one said the same as the first.
          const [first, second] = rig.backend.received(method).slice(-2);
          expect(second?.json).toEqual(first?.json);
          expect(second?.headers['mcp-session-id']).toBe(first?.headers['mcp-session-id']);
        }
      });

      test.each(Object.keys(UNSAFE))('never gets %s twice', async (method) => {
        const rig = await start(era);
        const call = await clientOf(rig.gateway);
        // Whatever has to be learned first, is.
        expect((await call(method, UNSAFE[method])).status).toBe(200);
        const before = rig.backend.received(method).length;
        rig.doom(death, ({ json }) => json?.method === method);
        const answer = await call(method, UNSAFE[method]);
        expect(rig.lost).toHaveLength(1);
        expect(rig.backend.received(method)).toHaveLength(before + 1);
        expect(answer.json.error.code).toBe(-32603);
        expect(answer.json.error.message).toMatch(/^The connection to the server behind route .* broke/);
        // The dead connection is not taken again.
        expect((await call(method, UNSAFE[method])).status).toBe(200);
        expect(rig.lost).toHaveLength(1);
      });
    });

    test('is asked twice and no more when every connection dies', async () => {
      const rig = await start(era, {
        on: { 'tools/list': ({ destroy }: BackendExchange) => void destroy() },
      });
      const call = await clientOf(rig.gateway);
      const answer = await call('tools/list', {});
      expect(answer.status).toBe(502);
      expect(rig.backend.received('tools/list')).toHaveLength(2);
    });

    test('is not asked again once a byte of the answer has come', async () => {
      const rig = await start(era, {
        on: {
          'tools/list': ({ res }: BackendExchange) => {
            res.writeHead(200, { 'content-type': 'application/json', 'content-length': '100' });
            res.write('{');
            setTimeout(() => res.destroy(), 20);
          },
        },
      });
      const call = await clientOf(rig.gateway);
      const answer = await call('tools/list', {});
      expect(answer.status).toBe(502);
      expect(rig.backend.received('tools/list')).toHaveLength(1);
    });

    test('that was restarted, so that all its connections are dead, costs nobody an answer', async () => {
      const rig = await start(era);
      const call = await clientOf(rig.gateway);
      const several = () => Promise.all(Array.from({ length: 8 }, () => call('tools/list', {})));
      for (const { status } of await several()) expect(status).toBe(200);
      rig.doom('is reset', ({ method }) => method === 'POST');
      for (const { status } of await several()) expect(status).toBe(200);
      // What comes later goes over connections that were made since.
      const lost = rig.lost.length;
      const later = await call('tools/call', { name: 'echo', arguments: {} });
      expect(later.status).toBe(200);
      expect(rig.lost).toHaveLength(lost);
    });

    test('that cannot be connected to certainly did not run the call, and the error says so at once', async () => {
      const rig = await start(era);
      const call = await clientOf(rig.gateway);
      expect((await call('tools/call', UNSAFE['tools/call'])).status).toBe(200);
      await rig.backend.stop();
      const begun = Date.now();
      const answer = await call('tools/call', UNSAFE['tools/call']);
      expect(answer.json.error.message).toContain('Cannot reach the server behind route');
      expect(Date.now() - begun).toBeLessThan(1_000);
      await rig.backend.start();
      expect((await call('tools/call', UNSAFE['tools/call'])).status).toBe(200);
    });
  });

  test.each(Object.keys(DEATHS))(
    'whose connection %s during the handshake or the probe is asked again',
    async (death) => {
      const seen = new Set<string>();
      const backend = await (era === 'legacy' ? startLegacyBackend : startModernBackend)({
        intercept: ({ json, method, res }) => {
          const key = json?.method ?? method;
          if (method !== 'POST' || seen.has(key)) return false;
          seen.add(key);
          (DEATHS[death] as (socket: Socket) => void)(res.socket as Socket);
          return true;
        },
      });
      await keep(backend);
      const gateway = await keep(startGateway({ '/mcp': backend.url }));
      const session = await legacy(gateway.url());
      expect(session.initialize.status).toBe(200);
      expect((await session.request('tools/list')).status).toBe(200);
      expect((await modern(gateway.url(), 'server/discover')).status).toBe(200);
      const expected = era === 'legacy' ? ['initialize', 'notifications/initialized'] : [];
      expect([...seen]).toEqual(expect.arrayContaining(['server/discover', 'tools/list', ...expected]));
      const line = gateway.logs.find(({ msg }) => msg === 'era of the backend');
      expect(line.era).toBe(era);
    },
  );
});

/** Begun first, since it waits for longer than all the rest takes. */
let idle: Promise<{ kept: Set<unknown>; later: unknown }>;
beforeAll(() => {
  idle = waitBetweenCalls();
});

async function waitBetweenCalls(): Promise<{ kept: Set<unknown>; later: unknown }> {
  const sockets: unknown[] = [];
  const backend = await startModernBackend({
    on: {
      'x/custom': ({ res, frame, sendJson }) => {
        sockets.push(res.socket);
        sendJson(frame({ result: { resultType: 'complete' } }), 200, { 'keep-alive': 'timeout=600' });
        return undefined;
      },
    },
  });
  const gateway = await startGateway({ '/mcp': backend.url });
  try {
    for (let i = 0; i < 10; i++) await modern(gateway.url(), 'x/custom', {});
    const kept = new Set(sockets);
    await sleep(4_600);
    await modern(gateway.url(), 'x/custom', {});
    return { kept, later: sockets.at(-1) };
  } finally {
    await gateway.close();
    await backend.close();
  }
}

test('a connection that waited for longer than a balancer may keep it is not taken, whatever the server says of it', async () => {
  const { kept, later } = await idle;
  expect(kept.size).toBeLessThan(4);
  expect(kept.has(later)).toBe(false);
});

test('the connection of a stream that its server has ended is not taken again: the server is about to go', async () => {
  const used: { method: string; socket: Loose; end(): void }[] = [];
  const { gateway } = await start('legacy', {
    capabilities: { tools: { listChanged: true } },
    on: {
      GET: ({ res, stream }: Loose) => {
        used.push({ method: 'GET', socket: res.socket, end: stream().end });
        return undefined;
      },
      'x/custom': ({ res }: Loose) => {
        used.push({ method: 'POST', socket: res.socket, end() {} });
        return { result: {} };
      },
    },
  });
  const client = await legacy(gateway.url());
  const listening = await client.listen();
  await expect.poll(() => used.length).toBe(1);
  used[0]?.end();
  // That it asks for another says that it has seen the end of the first.
  await expect.poll(() => used.length, { timeout: 5_000 }).toBe(2);
  await client.request('x/custom');
  expect(used.map(({ method }) => method)).toEqual(['GET', 'GET', 'POST']);
  expect(used.slice(1).map(({ socket }) => socket)).not.toContain(used[0]?.socket);
  listening.abort();
});

test('the gateway keeps the connections of its clients for longer than balancers keep theirs', async () => {
  const backend = await keep(startModernBackend());
  const gateway = await keep(startGateway({ '/mcp': backend.url }));
  const answer = await modern(gateway.url(), 'tools/list', {}, { headers: { connection: 'keep-alive' } });
  const seconds = Number(/timeout=(\d+)/.exec(String(answer.headers['keep-alive']))?.[1]);
  expect(seconds).toBeGreaterThan(60);
});
