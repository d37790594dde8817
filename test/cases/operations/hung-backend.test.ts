import { createServer, type Server, type Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import { detailOf } from '../../support/error-detail.js';
import { startGateway, type TestGateway } from '../../support/gateway.js';
import { keeper } from '../../support/keeper.js';
import { type StepHandler, startLegacyBackend, startModernBackend } from '../../support/misbehave.js';
import { until } from '../../support/net.js';
import { legacy, modern, send } from '../../support/raw.js';
import { useVirtualTime } from '../../support/virtual-time.js';

useVirtualTime();

const keep = keeper();

const TIMEOUTS = { connect: '1200ms', start: '1200ms', probe: '600ms', idle: '500ms', total: '1500ms' };
/** Long enough for others to be served meanwhile, on a busy machine as well. */
const PATIENT = { ...TIMEOUTS, connect: '2s', start: '2s', probe: '800ms', total: '20s' };
/** Probe, handshake and some time to spare. */
const SHORT_MS = 8_000;

const never: StepHandler = () => undefined;
/** Headers and a part of the body, and then nothing. */
const stalls =
  (type: string, beginning: string): StepHandler =>
  ({ res }) => {
    res.writeHead(200, { 'content-type': type });
    res.write(beginning);
    return undefined;
  };

async function gatewayBefore(url: string, timeouts: Record<string, string> = TIMEOUTS): Promise<TestGateway> {
  const healthy = await keep(startLegacyBackend());
  const gateway = await startGateway({
    '/hung': { backend: { url }, timeouts },
    '/healthy': { backend: { url: healthy.url }, timeouts: TIMEOUTS },
  });
  await keep(gateway);
  return gateway;
}

async function timed<T>(work: Promise<T>): Promise<{ value: T; ms: number }> {
  const begun = Date.now();
  return { value: await work, ms: Date.now() - begun };
}

/** Takes connections and says nothing on them. */
async function silentServer(): Promise<{ url: string; close(): Promise<void> }> {
  const sockets = new Set<Socket>();
  const server: Server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {}).resume();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address() as { port: number };
  return {
    url: `http://127.0.0.1:${address.port}/mcp`,
    close: () =>
      new Promise((resolve) => {
        for (const socket of sockets) socket.destroy();
        server.close(() => resolve());
      }),
  };
}

const HUNG: Record<string, () => Promise<{ url: string; close(): Promise<void> }>> = {
  'that takes connections and says nothing': silentServer,
  'that hangs on the handshake': () => startLegacyBackend({ on: { initialize: never } }),
  'that stalls in the middle of its answer to the handshake': () =>
    startLegacyBackend({ on: { initialize: stalls('application/json', '{"jsonrpc":"2.0",') } }),
  'that opens a stream for its answer to the handshake and leaves it empty': () =>
    startLegacyBackend({ on: { initialize: stalls('text/event-stream', ': wait\n\n') } }),
  'that hangs once the handshake is acknowledged': () =>
    startLegacyBackend({ on: { 'notifications/initialized': never } }),
};

describe.each(Object.keys(HUNG))('a backend %s', (name) => {
  const begin = HUNG[name] as (typeof HUNG)[string];

  test('gives clients of both eras a clear error soon, and leaves other routes alone', async () => {
    const backend = await keep(begin());
    const gateway = await gatewayBefore(backend.url, PATIENT);
    const waiting = [
      timed(legacy(gateway.url('/hung')).then(({ initialize }) => initialize)),
      timed(modern(gateway.url('/hung'), 'server/discover', {}, { id: 'd' })),
      timed(modern(gateway.url('/hung'), 'tools/list', {}, { id: 'd' })),
    ];
    let answered = false;
    for (const one of waiting) {
      void one.then(() => {
        answered = true;
      });
    }
    const { initialize } = await legacy(gateway.url('/healthy'));
    expect(initialize.status).toBe(200);
    expect((await modern(gateway.url('/healthy'), 'tools/list')).status).toBe(200);
    expect(answered).toBe(false);
    for (const { value, ms } of await Promise.all(waiting)) {
      expect(ms).toBeLessThan(SHORT_MS);
      // Never 4xx, which clients take for an answer about the era. Legacy clients read the error of a 200 best.
      expect([200, 502, 503, 504]).toContain(value.status);
      expect(value.json.id).not.toBeNull();
      expect(value.json.error.code).toBe(-32603);
      expect(value.json.error.message).toContain('route /hung');
      expect(detailOf(gateway, value)).toContain('127.0.0.1');
    }
    const discovered = await waiting[1];
    expect(discovered?.value.status).toBeGreaterThanOrEqual(502);
  });
});

test('a backend that hung is served once it has recovered', async () => {
  let hung = true;
  const backend = await keep(startLegacyBackend({ intercept: () => hung }));
  const gateway = await gatewayBefore(backend.url);
  expect((await modern(gateway.url('/hung'), 'tools/list')).status).toBeGreaterThan(500);
  hung = false;
  const answer = await until(async () => {
    const tried = await modern(gateway.url('/hung'), 'tools/list');
    return tried.status === 200 ? tried : undefined;
  }, 'the backend to be served again');
  expect(answer.json.result.tools).toHaveLength(1);
});

describe('a backend that hangs in the middle of its work', () => {
  const cases: Record<string, StepHandler> = {
    'without a byte': never,
    'after the head of a JSON answer': stalls('application/json', ''),
    'in the middle of a JSON answer': stalls('application/json', '{"jsonrpc":"2.0","id":1,"res'),
    'after the head of a stream': stalls('text/event-stream', ''),
    'in the middle of an event': stalls('text/event-stream', 'data: {"jsonrpc":"2.0",'),
  };
  test.each(Object.keys(cases))('%s, ends with an error when its time is up', async (name) => {
    await Promise.all(
      [startLegacyBackend, startModernBackend].map(async (begin) => {
        const backend = await keep(begin({ on: { 'tools/call': cases[name] as StepHandler } }));
        const gateway = await gatewayBefore(backend.url);
        const params = { name: 'echo', arguments: {} };
        const headers = { accept: 'application/json' };
        const session = await legacy(gateway.url('/hung'));
        const answers = await Promise.all([
          timed(modern(gateway.url('/hung'), 'tools/call', params, { headers })),
          timed(session.request('tools/call', params, { headers })),
        ]);
        for (const { value, ms } of answers) {
          expect(ms).toBeLessThan(3_500);
          expect(value.json.error.message).toMatch(/timed out|stopped in the middle of its response/);
          expect([-32603, -32001]).toContain(value.json.error.code);
        }
        // Nobody waits any more, so that the backend need not work on it either.
        await until(
          () => backend.received('tools/call').every(({ disconnected }) => disconnected),
          'the backend to be left alone',
        );
      }),
    );
  });

  test('a hung request for the log level does not hold up the call for ever', async () => {
    const backend = await startLegacyBackend({
      capabilities: { tools: {}, logging: {} },
      on: { 'logging/setLevel': never },
    });
    await keep(backend);
    const gateway = await gatewayBefore(backend.url);
    const { value, ms } = await timed(
      modern(
        gateway.url('/hung'),
        'tools/call',
        { name: 'echo', arguments: {} },
        {
          meta: { 'io.modelcontextprotocol/logLevel': 'debug' },
          headers: { accept: 'application/json' },
        },
      ),
    );
    expect(ms).toBeLessThan(3_500);
    expect(value.json).toBeDefined();
  });

  test('a hung list of tools, which a call for a legacy client would look into, is given up soon', async () => {
    const backend = await keep(startModernBackend({ on: { 'tools/list': never } }));
    const gateway = await gatewayBefore(backend.url);
    const session = await legacy(gateway.url('/hung'));
    const { value, ms } = await timed(session.request('tools/call', { name: 'echo', arguments: {} }));
    expect(ms).toBeLessThan(3_500);
    // Only tools with parameters in headers could not be called without it.
    expect(value.json.result.content).toHaveLength(1);
  });
});

test.each([
  ['legacy', startLegacyBackend],
  ['modern', startModernBackend],
] as const)(
  'callers of a %s backend that has kept others waiting in vain get an error at once',
  async (_era, begin) => {
    let hung = false;
    const backend = await keep(begin({ intercept: () => hung }));
    const gateway = await startGateway({
      '/hung': { backend: { url: backend.url }, timeouts: { ...TIMEOUTS, connect: '400ms', start: '400ms' } },
    });
    await keep(gateway);
    // Its era is known before it hangs.
    expect((await modern(gateway.url(), 'tools/list')).status).toBe(200);
    hung = true;
    const handshake = () => timed(legacy(gateway.url()).then(({ initialize }) => initialize));
    for (let i = 0; i < 3; i++) expect((await handshake()).ms).toBeGreaterThan(300);
    const before = backend.requests.length;
    for (let i = 0; i < 5; i++) {
      const { value } = await handshake();
      expect(value.json.error.code).toBe(-32603);
      expect(value.json.error.message).toMatch(/did not (answer initialize|respond) in time/);
    }
    expect(backend.requests).toHaveLength(before);
  },
);

test('a hundred requests to a hung backend leave the health check and other routes as fast as before', async () => {
  const backend = await keep(silentServer());
  const gateway = await gatewayBefore(backend.url);
  const stuck = Array.from({ length: 100 }, () => modern(gateway.url('/hung'), 'tools/list'));
  for (let i = 0; i < 5; i++) {
    const { value, ms } = await timed(
      Promise.all([send(gateway.url('/healthz')), modern(gateway.url('/healthy'), 'tools/list')]),
    );
    expect(value.map(({ status }) => status)).toEqual([200, 200]);
    expect(ms).toBeLessThan(1_000);
  }
  for (const { status } of await Promise.all(stuck)) expect(status).toBeGreaterThanOrEqual(502);
});
