import { afterEach, expect, test } from 'vitest';
import { startGateway } from '../support/gateway.js';
import { startLegacyBackend, startModernBackend } from '../support/misbehave.js';
import { modern } from '../support/raw.js';

const TOOLS = [{ name: 'a', inputSchema: { type: 'object' } }];
const open: { close(): Promise<void> }[] = [];

afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.close();
});

async function gatewayFor(backend: { url: string; close(): Promise<void> }, route: object = {}) {
  const gateway = await startGateway({ '/mcp': { backend: { url: backend.url }, ...route } } as never);
  open.push(backend, gateway);
  return gateway.url('/mcp');
}

test('a list of a modern backend is served again for as long as it says, with what is left of that', async () => {
  const backend = await startModernBackend({
    on: {
      'tools/list': () => ({
        result: { tools: TOOLS, resultType: 'complete', ttlMs: 400, cacheScope: 'private' },
      }),
    },
  });
  const url = await gatewayFor(backend);
  const first = (await modern(url, 'tools/list', {}, { id: 1 })).json;
  const second = (await modern(url, 'tools/list', {}, { id: 'two' })).json;
  expect(second.id).toBe('two');
  expect(second.result).toMatchObject({ tools: TOOLS, resultType: 'complete', cacheScope: 'private' });
  expect(second.result.ttlMs).toBeLessThanOrEqual(first.result.ttlMs);
  expect(backend.received('tools/list')).toHaveLength(1);
  await new Promise((resolve) => setTimeout(resolve, 450));
  await modern(url, 'tools/list', {}, { id: 3 });
  expect(backend.received('tools/list')).toHaveLength(2);
});

test('equal requests in flight are one request to the backend', async () => {
  const backend = await startLegacyBackend({ tools: TOOLS } as never);
  const url = await gatewayFor(backend);
  await modern(url, 'tools/list', {}, { id: 0 });
  const before = backend.received('tools/list').length;
  await Promise.all(Array.from({ length: 8 }, (_, id) => modern(url, 'prompts/list', {}, { id })));
  expect(backend.received('prompts/list').length).toBeLessThanOrEqual(8);
  expect(backend.received('tools/list')).toHaveLength(before);
});
