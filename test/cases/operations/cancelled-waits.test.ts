import { expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../../support/gateway.js';
import { keeper } from '../../support/keeper.js';
import { type StepHandler, startLegacyBackend, startModernBackend } from '../../support/misbehave.js';
import { sleep, until } from '../../support/net.js';
import { legacy, MODERN, modern } from '../../support/raw.js';
import { useVirtualTime } from '../../support/virtual-time.js';

useVirtualTime();

/** Nothing that a call waits for at a backend is waited for once the call is cancelled. */

const keep = keeper();

const never: StepHandler = () => undefined;
/** Longer than any test takes, so that only the cancellation can end a wait. */
const TIMEOUTS = { connect: '60s', start: '60s', probe: '60s', idle: '60s', total: '60s' };

async function gatewayTo(url: string, route: Record<string, unknown> = {}): Promise<TestGateway> {
  const gateway = await keep(startGateway({ '/mcp': { backend: { url }, timeouts: TIMEOUTS, ...route } }));
  return gateway;
}

/** A request of a client that leaves before there is an answer. */
function leaving(gateway: TestGateway, method: string, params?: Record<string, unknown>): AbortController {
  const controller = new AbortController();
  modern(gateway.url(), method, params, { signal: controller.signal }).catch(() => {});
  return controller;
}

const cancelledIn =
  ({ logs }: TestGateway, method: string) =>
  () =>
    logs.some((line) => line.method === method && line.outcome === 'cancelled');

test('the search for the era of a backend', async () => {
  const backend = await keep(startModernBackend({ on: { 'server/discover': never } }));
  const gateway = await gatewayTo(backend.url);
  const call = leaving(gateway, 'tools/list');
  await until(() => backend.received('server/discover').length > 0, 'the probe');
  call.abort();
  await until(cancelledIn(gateway, 'tools/list'), 'the end of the call');
});

test('the handshake with a backend, for a description of it', async () => {
  let refuse = (): void => {};
  const held = new Promise<void>((resolve) => {
    refuse = resolve;
  });
  const backend = await startLegacyBackend({
    on: {
      initialize: async ({ frame }) => {
        await held;
        return frame({ error: { code: -32603, message: 'no' } });
      },
    },
  });
  await keep(backend);
  const gateway = await gatewayTo(backend.url, { backend: { url: backend.url, era: 'legacy' } });
  const call = leaving(gateway, 'server/discover');
  await until(() => backend.received('initialize').length > 0, 'the handshake');
  call.abort();
  await until(cancelledIn(gateway, 'server/discover'), 'the end of the request');
  refuse();
});

test('a place in the queue for a session, which goes to the next', async () => {
  const backend = await keep(startLegacyBackend({ on: { 'tools/call': never } }));
  const gateway = await gatewayTo(backend.url, { sessions: { isolation: 'call', max: 1 } });
  const holder = leaving(gateway, 'tools/call', { name: 'echo', arguments: {} });
  await until(() => backend.received('tools/call').length > 0, 'the call');
  const queued = leaving(gateway, 'prompts/list');
  await sleep(50);
  const next = modern(gateway.url(), 'tools/list');
  queued.abort();
  await until(cancelledIn(gateway, 'prompts/list'), 'the end of the request');
  holder.abort();
  expect((await next).status).toBe(200);
  expect(backend.received('prompts/list')).toEqual([]);
});

test("the backend's answer about a task, whose request is then ended", async () => {
  const TASKS = { extensions: { 'io.modelcontextprotocol/tasks': {} } };
  let closed = false;
  const backend = await startModernBackend({
    on: {
      'server/discover': ({ frame }) =>
        frame({
          result: {
            resultType: 'complete',
            supportedVersions: [MODERN],
            capabilities: { tools: {}, ...TASKS },
          },
        }),
      'tools/call': ({ frame }) =>
        frame({ result: { resultType: 'task', taskId: 't', status: 'working', ttlMs: null } }),
      'tasks/get': ({ res }) => {
        res.on('close', () => {
          closed = true;
        });
        return undefined;
      },
    },
  });
  await keep(backend);
  const gateway = await gatewayTo(backend.url);
  const client = await legacy(gateway.url(), { capabilities: { tasks: {} } });
  const call = await client.request('tools/call', { name: 'a', arguments: {}, task: {} });
  const { taskId } = call.json.result.task;
  const asking = client.request('tasks/get', { taskId }, { id: 7 });
  await until(() => backend.received('tasks/get').length > 0, 'the request');
  await client.notify('notifications/cancelled', { requestId: 7 });
  await asking;
  await until(() => closed, 'the end of the request to the backend');
});
