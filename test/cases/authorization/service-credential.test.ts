import { describe, expect, test } from 'vitest';
import { startSseBackend, TOOLS } from '../../http-sse/scripted.js';
import { type Backend, startBackend } from '../../support/backend.js';
import { startGateway, type TestGateway } from '../../support/gateway.js';
import { keeper } from '../../support/keeper.js';
import { startLegacyBackend, startModernBackend } from '../../support/misbehave.js';
import { legacy, modern } from '../../support/raw.js';
import { useVirtualTime } from '../../support/virtual-time.js';

useVirtualTime();

const keep = keeper();

/** A server that refuses every credential. */
async function refusing(status: number): Promise<Backend> {
  const backend = await startBackend(({ sendText }) =>
    sendText('Token expired', status, { 'www-authenticate': 'Bearer error="invalid_token"' }),
  );
  await keep(backend);
  return backend;
}

async function gatewayTo(url: string, authorization: 'forward' | 'drop', era: string): Promise<TestGateway> {
  const headers = authorization === 'drop' ? { authorization: 'Bearer service' } : {};
  const gateway = await keep(startGateway({ '/mcp': { backend: { url, era, authorization, headers } } }));
  return gateway;
}

const OWN = { headers: { authorization: 'Bearer caller' } };
const ask = {
  legacy: async (url: string) => (await legacy(url, OWN)).initialize,
  modern: (url: string) => modern(url, 'tools/list', {}, OWN),
};

describe.each(['legacy', 'modern'] as const)('a %s server that refuses the credential', (era) => {
  describe.each(['legacy', 'modern'] as const)('of a %s client', (client) => {
    test('asks the client for another one, where it is the client that has it', async () => {
      const backend = await refusing(401);
      const answer = await ask[client]((await gatewayTo(backend.url, 'forward', era)).url());
      expect(answer.status).toBe(401);
      expect(answer.headers['www-authenticate']).toBe('Bearer error="invalid_token"');
      expect(backend.requests.at(-1)?.headers.authorization).toBe('Bearer caller');
    });

    test('is out of order, where it is the gateway that has it', async () => {
      const backend = await refusing(401);
      const answer = await ask[client]((await gatewayTo(backend.url, 'drop', era)).url());
      expect(answer.status).toBe(502);
      expect(answer.headers['www-authenticate']).toBeUndefined();
      expect(answer.json.error.message).toContain('the credential that the gateway has');
      expect(answer.text).not.toContain('Token expired');
      for (const { headers } of backend.requests) expect(headers.authorization).toBe('Bearer service');
    });
  });
});

describe.each([
  ['a legacy server', () => startLegacyBackend()],
  ['a modern server', () => startModernBackend()],
  ['a server on HTTP+SSE', () => startSseBackend({ results: { 'tools/list': TOOLS } })],
] as const)('%s that knows the gateway by a credential', (_name, begin) => {
  async function shown(authorization?: 'forward'): Promise<{ own: unknown[]; none: unknown[] }> {
    const backend = await begin();
    await keep<{ close(): unknown }>(backend);
    const gateway = await startGateway({
      '/mcp': {
        backend: {
          url: backend.url,
          headers: { Authorization: 'Bearer service' },
          ...(authorization && { authorization }),
        },
      },
    });
    await keep(gateway);
    const asked = async (options: typeof OWN | undefined): Promise<unknown[]> => {
      const before = backend.requests.length;
      await modern(gateway.url(), 'tools/list', {}, options);
      const session = await legacy(gateway.url(), options);
      await session.request('tools/list');
      await session.delete();
      const seen = backend.requests
        .slice(before)
        .filter(({ json }) => json?.method === 'tools/list')
        .map(({ rawHeaders }) =>
          rawHeaders.filter((_, i) => i % 2 === 1 && rawHeaders[i - 1]?.toLowerCase() === 'authorization'),
        );
      return [...new Set(seen.map((values) => values.join(' and ')))];
    };
    return { none: await asked(undefined), own: await asked(OWN) };
  }

  test('is shown no other, unless the route says so', async () => {
    expect(await shown()).toEqual({ none: ['Bearer service'], own: ['Bearer service'] });
  });

  test('is shown the one of the caller in its place, and never both, where the route says so', async () => {
    expect(await shown('forward')).toEqual({ none: ['Bearer service'], own: ['Bearer caller'] });
  });
});
