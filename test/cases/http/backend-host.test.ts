import { describe, expect, test } from 'vitest';
import { detailOf } from '../../support/error-detail.js';
import { startGateway, type TestGateway } from '../../support/gateway.js';
import { keeper } from '../../support/keeper.js';
import { type ScriptedBackend, startLegacyBackend, startModernBackend } from '../../support/misbehave.js';
import { until } from '../../support/net.js';
import { legacy, modern } from '../../support/raw.js';
import { useVirtualTime } from '../../support/virtual-time.js';

useVirtualTime();

const keep = keeper();

/** A server that looks at Host as SDK servers do on loopback: a list of names, each with any port. */
async function start(
  era: 'legacy' | 'modern',
  route: Record<string, unknown> | ((backend: ScriptedBackend) => Record<string, unknown>),
  { allowed = /^localhost:\d+$/, status = 421, text = 'Invalid Host header' } = {},
): Promise<{ backend: ScriptedBackend; gateway: TestGateway }> {
  const backend = await (era === 'legacy' ? startLegacyBackend : startModernBackend)({
    intercept: ({ headers, sendText }) => {
      if (allowed.test(headers.host ?? '')) return false;
      sendText(text, status);
      return true;
    },
  });
  await keep(backend);
  const given = typeof route === 'function' ? route(backend) : route;
  const gateway = await keep(startGateway({ '/mcp': { backend: { url: backend.url, ...given } } }));
  return { backend, gateway };
}

describe.each(['legacy', 'modern'] as const)('a %s backend', (era) => {
  test('gets its own authority as Host, with the port, on every request', async () => {
    const { backend, gateway } = await start(era, {}, { allowed: /^127\.0\.0\.1:\d+$/ });
    const headers = { host: 'localhost:1', 'x-forwarded-host': 'mcp.example.com' };
    expect((await modern(gateway.url(), 'tools/list', {}, { headers })).status).toBe(200);
    const session = await legacy(gateway.url(), { headers });
    (await session.listen()).abort();
    expect((await session.delete()).status).toBe(200);
    await until(() => era === 'modern' || backend.sessions.size === 1, 'the end of the session');
    expect(new Set(backend.requests.map((request) => request.headers.host))).toEqual(
      new Set([new URL(backend.url).host]),
    );
    for (const { rawHeaders } of backend.requests) {
      const names = rawHeaders.filter((_, index) => index % 2 === 0).map((name) => name.toLowerCase());
      expect(names.filter((name) => name === 'host')).toHaveLength(1);
    }
  });

  test('that wants another Host is reached with the one that the configuration sets', async () => {
    const { backend, gateway } = await start(era, { hostHeader: 'localhost:8000' });
    expect((await modern(gateway.url(), 'tools/list')).status).toBe(200);
    const session = await legacy(gateway.url());
    expect((await session.request('tools/list')).status).toBe(200);
    expect((await (await session.listen()).headers)['content-type']).toBe('text/event-stream');
    await session.delete();
    expect(new Set(backend.requests.map((request) => request.headers.host))).toEqual(
      new Set(['localhost:8000']),
    );
  });

  test.each([
    [421, 'Invalid Host header'],
    [421, 'Misdirected Request'],
    [421, ''],
    [403, 'Forbidden: invalid Host header'],
    [403, '{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Invalid Host: 127.0.0.1"}}'],
  ])(
    'that refuses the Host with %i "%s" is a fault of the configuration, and the log names the key',
    async (status, text) => {
      const { gateway } = await start(era, {}, { status, text });
      const answer = await modern(gateway.url(), 'tools/list');
      // Not 403: nothing that the client could do would help.
      expect(answer.status).toBe(502);
      expect(answer.json.error.code).toBe(-32603);
      const { initialize } = await legacy(gateway.url());
      expect(initialize.status).toBe(502);
      for (const { json } of [answer, initialize])
        expect(json.error.data).toEqual({ eragate: 'ERAGATE_HOST_REFUSED' });
      const lines = gateway.logs.filter(({ method }) => method === 'tools/list' || method === 'initialize');
      expect(lines).toHaveLength(2);
      for (const { hint } of lines) expect(hint).toContain('backend.hostHeader');
    },
  );

  test('whose Host check is fixed is found without a restart of the gateway', async () => {
    let strict = true;
    const backend = await (era === 'legacy' ? startLegacyBackend : startModernBackend)({
      intercept: ({ sendText }) => {
        if (strict) sendText('Invalid Host header', 421);
        return strict;
      },
    });
    await keep(backend);
    const gateway = await keep(startGateway({ '/mcp': backend.url }));
    expect((await modern(gateway.url(), 'tools/list')).status).toBe(502);
    strict = false;
    expect((await modern(gateway.url(), 'tools/list')).status).toBe(200);
    const line = gateway.logs.findLast(({ msg }) => msg === 'era of the backend');
    expect(line.era).toBe(era);
  });
});

test('a 403 that says nothing of a Host is for the client', async () => {
  const { gateway } = await start('modern', {}, { allowed: /^never$/, status: 403, text: 'no such luck' });
  const answer = await modern(gateway.url(), 'tools/list');
  expect(answer.status).toBe(403);
  expect(answer.json.error.data).toEqual({ eragate: 'ERAGATE_FORBIDDEN' });
  expect(detailOf(gateway, answer)).toContain('no such luck');
});
