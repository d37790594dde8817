import { expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../support/gateway.js';
import { keeper } from '../support/keeper.js';
import type { Loose } from '../support/net.js';
import { legacy } from '../support/raw.js';
import { form, type ServerTask, startTaskServer, type TaskServer, text } from './task-server.js';

const keep = keeper();

/** A server with tasks on its modern side alone. */
async function start(backend: Loose = {}, work?: (task: ServerTask) => Promise<Loose>) {
  const server: TaskServer = await startTaskServer(work, undefined, true);
  await keep(server);
  const gateway: TestGateway = await startGateway({ '/mcp': { backend: { url: server.url, ...backend } } });
  await keep(gateway);
  return { server, gateway };
}

const MUST = { name: 'must', arguments: {} };

test.each(['2025-11-25', '2025-06-18'])(
  'a legacy client of %s that is served on the legacy side can call a tool that runs as a task on the other',
  async (version) => {
    const { server, gateway } = await start({}, async (task) => {
      const { content } = await task.ask('name', 'elicitation/create', form('Name?'));
      return text(`Hello, ${content.value}`);
    });
    const session = await legacy(gateway.url(), { version, capabilities: { elicitation: {} } });
    const stream = await session.open('tools/call', MUST);
    const { json: question } = await stream.find(({ json }) => json?.method === 'elicitation/create');
    const result = { action: 'accept', content: { value: 'Ada' } };
    await session.post({ jsonrpc: '2.0', id: question.id, result });
    expect((await stream.done).text).toContain('Hello, Ada');
    expect(server.tasks).toHaveLength(1);
    // It is served where it was, all the same.
    const modern = (json: Loose) =>
      json.params._meta?.['io.modelcontextprotocol/protocolVersion'] !== undefined;
    await session.request('tools/call', { name: 'now', arguments: {} });
    expect(modern(server.received('tools/call').at(-1)?.json)).toBe(false);
    expect(server.received('initialize')).toHaveLength(1);
  },
);

test('where the legacy side is to be used, the refusal is passed on', async () => {
  const { server, gateway } = await start({ leg: 'legacy' });
  const session = await legacy(gateway.url());
  const { json } = await session.request('tools/call', MUST);
  expect(json.error).toMatchObject({ code: -32021, message: 'Missing required client capability' });
  expect(server.tasks).toHaveLength(0);
});

test('a server of the legacy era that refuses in these words is meant as it says', async () => {
  const { gateway } = await start({ era: 'legacy' });
  const session = await legacy(gateway.url());
  expect((await session.request('tools/call', MUST)).json.error.code).toBe(-32021);
});
