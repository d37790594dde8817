import { expect, test } from 'vitest';
import { startGateway } from '../support/gateway.js';
import { keeper } from '../support/keeper.js';
import { type Step, startLegacyBackend } from '../support/misbehave.js';
import { legacy } from '../support/raw.js';
import { useVirtualTime } from '../support/virtual-time.js';
import { lastIdOf, resume } from './rig.js';

useVirtualTime();

const keep = keeper();

const params = { name: 'slow', arguments: {} };

/** A server that ends the stream of a call to have it resumed, or whose connection breaks. */
async function start(how: 'end' | 'destroy', route: object = {}) {
  let call: Step | undefined;
  const backend = await startLegacyBackend({
    intercept: ({ method, headers, res }) => {
      if (method !== 'GET' || headers['last-event-id'] !== 'p-0') return false;
      res.writeHead(200, { 'content-type': 'text/event-stream' });
      res.end(`id: p-1\ndata: ${JSON.stringify(call?.frame({ result: { content: [] } }))}\n\n`);
      return true;
    },
    on: {
      'tools/call': (step) => {
        call = step;
        const events = step.stream({ 'mcp-session-id': step.session ?? '' });
        events.write('id: p-0\nretry: 30\ndata:\n\n');
        setTimeout(() => events[how](), 20);
        return undefined;
      },
    },
  });
  await keep(backend);
  const gateway = await keep(startGateway({ '/mcp': { backend: { url: backend.url } } }, route));
  return gateway.url();
}

test('a client lets its connection go where the server wants none to be held, and comes back for the result', async () => {
  const session = await legacy(await start('end'), { version: '2025-11-25' });
  const stream = await session.open('tools/call', params, { id: 'call' });
  const { events } = await stream.done;
  expect(events).toEqual([]);
  expect(stream.primings).toHaveLength(1);
  const again = await (await resume(session, lastIdOf(stream))).done;
  expect(again.events.map(({ json }) => json)).toEqual([
    { jsonrpc: '2.0', id: 'call', result: { content: [] } },
  ]);
});

test.each([
  ['the connection of the server broke', 'destroy', {}, '2025-11-25'],
  ['nothing is kept for clients that come back', 'end', { limits: { replay: 0 } }, '2025-11-25'],
  ['the client knows nothing of coming back', 'end', {}, '2025-06-18'],
] as const)('a client keeps its connection where %s', async (_what, how, config, version) => {
  const session = await legacy(await start(how, config), { version });
  expect((await session.request('tools/call', params)).json.result).toEqual({ content: [] });
});
