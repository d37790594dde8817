import { describe, expect, test } from 'vitest';
import { startGateway } from '../../support/gateway.js';
import { keeper } from '../../support/keeper.js';
import { startLegacyBackend, startModernBackend } from '../../support/misbehave.js';
import { sleep, until } from '../../support/net.js';
import { legacy, modern, send } from '../../support/raw.js';

const keep = keeper();

describe('a gateway that ends', () => {
  test('fails its readiness first, and serves every cell until the delay is over', async () => {
    const old = await keep(startLegacyBackend());
    const young = await keep(startModernBackend());
    const gateway = await keep(
      startGateway({ '/old': old.url, '/young': young.url }, { shutdown: { delay: '2s' } }),
    );
    const session = await legacy(gateway.url('/old'));
    expect(await send(gateway.url('/readyz'))).toMatchObject({ status: 200, json: { status: 'ok' } });
    const closed = gateway.stop();
    const unready = await send(gateway.url('/readyz'));
    expect(unready).toMatchObject({ status: 503, json: { status: 'closing' } });
    expect((await send(gateway.url('/healthz'))).status).toBe(200);
    for (const path of ['/old', '/young']) {
      expect((await modern(gateway.url(path), 'tools/list')).status).toBe(200);
      expect((await legacy(gateway.url(path))).initialize.status).toBe(200);
    }
    expect((await session.request('tools/list')).status).toBe(200);
    await closed;
    await expect(send(gateway.url('/readyz'))).rejects.toThrow();
  });

  test.each([
    ['a legacy backend', startLegacyBackend],
    ['a modern backend', startModernBackend],
  ])('gives calls the time of shutdown.grace: %s', async (_name, startBackend) => {
    const backend = await keep(startBackend({ on: { 'tools/call': () => undefined } }));
    const gateway = await keep(startGateway({ '/mcp': backend.url }, { shutdown: { grace: '100ms' } }));
    const call = modern(gateway.url(), 'tools/call', { name: 'slow', arguments: {} });
    await until(() => backend.received('tools/call').length === 1, 'the call');
    const late = sleep(4_000).then(() => 'late');
    const stopped = gateway.stop();
    const outcome = await Promise.race([call, late]);
    expect(outcome).toMatchObject({ json: { error: { message: expect.stringMatching(/shutting down/) } } });
    await stopped;
  });
});

describe('the time that idle connections are kept', () => {
  test.each([
    ['by default longer than any balancer keeps them', {}, 'timeout=3605'],
    ['as configured', { listen: { keepAliveTimeout: '90s' } }, 'timeout=90'],
  ])('is told in responses: %s', async (_name, overrides, value) => {
    const backend = await keep(startLegacyBackend());
    const gateway = await keep(startGateway({ '/mcp': backend.url }, overrides));
    const headers = { connection: 'keep-alive' };
    expect((await send(gateway.url('/healthz'), { headers })).headers['keep-alive']).toBe(value);
    const { headers: own } = await send(gateway.url(), { method: 'PUT', headers });
    expect(own['keep-alive']).toBe(value);
  });
});
