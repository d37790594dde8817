import { afterEach, describe, expect, test } from 'vitest';
import { type Backend, startBackend } from '../../support/backend.js';
import { startGateway, type TestGateway } from '../../support/gateway.js';
import { legacy, modern } from '../../support/raw.js';

const open: { close(): unknown }[] = [];
afterEach(async () => {
  for (const thing of open.splice(0).reverse()) await thing.close();
});

/** A server that refuses every credential. */
async function refusing(status: number): Promise<Backend> {
  const backend = await startBackend(({ sendText }) =>
    sendText('Token expired', status, { 'www-authenticate': 'Bearer error="invalid_token"' }),
  );
  open.push(backend);
  return backend;
}

async function gatewayTo(url: string, authorization: 'forward' | 'drop', era: string): Promise<TestGateway> {
  const headers = authorization === 'drop' ? { authorization: 'Bearer service' } : {};
  const gateway = await startGateway({ '/mcp': { backend: { url, era, authorization, headers } } });
  open.push(gateway);
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
      expect(answer.json.error.message).toContain('Token expired');
      for (const { headers } of backend.requests) expect(headers.authorization).toBe('Bearer service');
    });
  });
});
