import { describe, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../../support/gateway.js';
import { keeper } from '../../support/keeper.js';
import { startLegacyBackend, startModernBackend } from '../../support/misbehave.js';
import type { ReceivedRequest } from '../../support/net.js';
import { startV2 } from '../../support/peers/index.js';
import { LEGACY, legacy, MODERN, modern } from '../../support/raw.js';
import { useVirtualTime } from '../../support/virtual-time.js';

useVirtualTime();

const keep = keeper();
const gatewayTo = (url: string, backend: Record<string, string> = {}): Promise<TestGateway> =>
  keep(startGateway({ '/mcp': { backend: { url, ...backend } } }));

const sum = { name: 'add', arguments: { a: 3, b: 4 } };
const seven = 'The sum of 3 and 4 is 7.';
const methods = (requests: readonly ReceivedRequest[]) => requests.map(({ json }) => json?.method);

/** Calls the same tool as a client of each era. */
async function callAsBoth(gateway: TestGateway): Promise<void> {
  const answer = await modern(gateway.url(), 'tools/call', sum);
  expect(answer.json.result).toMatchObject({ resultType: 'complete', content: [{ text: seven }] });
  const session = await legacy(gateway.url());
  const { result } = (await session.request('tools/call', sum)).json;
  expect(result.content[0].text).toBe(seven);
  expect(result).not.toHaveProperty('resultType');
}

describe('a server that speaks both eras', () => {
  test('is asked in the modern one by itself', async () => {
    const peer = await keep(startV2());
    const gateway = await gatewayTo(peer.url);
    await callAsBoth(gateway);
    expect(gateway.logs.filter(({ msg }) => msg === 'era of the backend')).toEqual([
      expect.objectContaining({ era: 'modern', reason: expect.stringContaining(MODERN) }),
    ]);
    expect(gateway.logs.find(({ cell }) => cell?.startsWith('M'))?.cell).toBe('MM');
  });

  test.each(['legacy', LEGACY])('is asked in the handshake alone where %s is pinned', async (era) => {
    const peer = await keep(startV2());
    await callAsBoth(await gatewayTo(peer.url, { era }));
    expect(methods(peer.requests)).toContain('initialize');
    expect(methods(peer.requests)).not.toContain('server/discover');
    expect(peer.requests.every(({ headers }) => headers['mcp-protocol-version'] !== MODERN)).toBe(true);
  });

  test.each(['modern', MODERN])('never sees a handshake where %s is pinned', async (era) => {
    const peer = await keep(startV2());
    await callAsBoth(await gatewayTo(peer.url, { era }));
    expect(methods(peer.requests)).not.toContain('initialize');
    expect(peer.requests.every(({ headers }) => headers['mcp-session-id'] === undefined)).toBe(true);
  });

  test('is asked in the handshake where the leg is set to legacy, though it is found to be modern', async () => {
    const peer = await keep(startV2());
    await callAsBoth(await gatewayTo(peer.url, { leg: 'legacy' }));
    expect(methods(peer.requests)).toContain('initialize');
    expect(peer.calls).toHaveLength(2);
    expect(
      peer.requests.filter(
        ({ json }) =>
          json?.method === 'tools/call' && json.params._meta?.['io.modelcontextprotocol/protocolVersion'],
      ),
    ).toEqual([]);
  });

  test('never sees a handshake where the leg is set to modern', async () => {
    const peer = await keep(startV2());
    await callAsBoth(await gatewayTo(peer.url, { leg: 'modern' }));
    expect(methods(peer.requests)).not.toContain('initialize');
  });
});

test.each(['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'])(
  'a backend pinned to %s is offered this revision, and no newer one',
  async (era) => {
    const backend = await keep(startLegacyBackend());
    const gateway = await gatewayTo(backend.url, { era });
    await modern(gateway.url(), 'tools/list');
    for (const version of ['2024-11-05', LEGACY]) {
      const session = await legacy(gateway.url(), { version });
      expect(session.initialize.json.result.protocolVersion).toBe(version);
    }
    const offered = backend.received('initialize').map(({ json }) => json.params.protocolVersion);
    expect(offered).toEqual([era, '2024-11-05', era]);
    expect(backend.received('server/discover')).toEqual([]);
  },
);

test('a legacy server behind a route that is pinned to modern is an error that says so, never a handshake', async () => {
  const backend = await keep(startLegacyBackend());
  const gateway = await gatewayTo(backend.url, { era: 'modern' });
  const listed = await modern(gateway.url(), 'tools/list', {}, { id: 'x' });
  expect(listed.status).toBe(502);
  expect(listed.json).toMatchObject({
    id: 'x',
    error: { code: -32603, message: expect.stringMatching(/HTTP 400/) },
  });
  const { initialize } = await legacy(gateway.url());
  expect(initialize.status).toBe(502);
  expect(initialize.json.error.message).toMatch(/HTTP 400/);
  expect(methods(backend.requests)).not.toContain('initialize');
});

test('a modern server behind a route that is pinned to legacy is an error that says so, never a probe', async () => {
  const backend = await keep(startModernBackend());
  const gateway = await gatewayTo(backend.url, { era: 'legacy' });
  const listed = await modern(gateway.url(), 'tools/list', {}, { id: 'x' });
  expect(listed.status).toBe(502);
  expect(listed.json.error.message).toMatch(/refused the handshake with HTTP 400: -32022/);
  const { initialize } = await legacy(gateway.url());
  expect(initialize.json.error.message).toMatch(/refused the handshake/);
  expect(methods(backend.requests)).not.toContain('server/discover');
});
