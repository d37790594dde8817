import { describe, expect, test } from 'vitest';
import { startGateway } from '../../support/gateway.js';
import { keeper } from '../../support/keeper.js';
import { startModernBackend } from '../../support/misbehave.js';
import type { Loose } from '../../support/net.js';
import { legacy, MODERN, modern } from '../../support/raw.js';
import { useVirtualTime } from '../../support/virtual-time.js';

useVirtualTime();

const keep = keeper();

/** A server that refuses the version of the first so many requests with this method, and names the versions it takes. */
async function startRefusing(method: string, times: number, supported: string[]) {
  let left = times;
  return keep(
    startModernBackend({
      intercept: ({ json, sendJson }) => {
        if (json?.method !== method || left === 0) return false;
        left--;
        const error = {
          code: -32022,
          message: 'Unsupported protocol version',
          data: { supported, requested: MODERN },
        };
        sendJson({ jsonrpc: '2.0', id: json.id, error }, 400);
        return true;
      },
    }),
  );
}

describe.each(['auto', 'modern'])('a modern backend (era %s) that refuses a version and names it', (era) => {
  const start = async (method: string, times = 1, supported = [MODERN]) => {
    const backend = await startRefusing(method, times, supported);
    const gateway = await keep(startGateway({ '/mcp': { backend: { url: backend.url, era } } }));
    return { backend, gateway };
  };

  test('describes itself when it is asked again', async () => {
    const { gateway } = await start('server/discover', 1, ['2099-01-01', MODERN]);
    expect((await legacy(gateway.url())).initialize.json.result.serverInfo.name).toBe('scripted-modern');
    expect((await modern(gateway.url(), 'server/discover')).json.result.supportedVersions).toEqual([MODERN]);
  });

  test.each(['tools/call', 'tools/list'])('answers a %s of a legacy client', async (method) => {
    const { backend, gateway } = await start(method);
    const client = await legacy(gateway.url());
    const { json } = await client.request(method, method === 'tools/call' ? { name: 'echo' } : {});
    expect(json).toHaveProperty('result');
    if (method === 'tools/call') expect(backend.received(method)).toHaveLength(2);
  });

  test('is not asked a third time', async () => {
    const { backend, gateway } = await start('tools/call', 9);
    const client = await legacy(gateway.url());
    const { json } = await client.request('tools/call', { name: 'echo' });
    expect(json.error).toMatchObject({ code: -32603, message: expect.stringContaining('-32022') });
    expect(backend.received('tools/call')).toHaveLength(2);
  });

  test('speaks for itself to a modern client, which asks again as it likes', async () => {
    const { backend, gateway } = await start('tools/call');
    const call = () => modern(gateway.url(), 'tools/call', { name: 'echo' });
    const { status, json }: Loose = await call();
    expect(status).toBe(400);
    expect(json.error).toMatchObject({ code: -32022, data: { supported: [MODERN] } });
    expect((await call()).json).toHaveProperty('result');
    expect(backend.received('tools/call')).toHaveLength(2);
  });
});
