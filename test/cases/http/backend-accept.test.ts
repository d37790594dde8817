import { describe, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../../support/gateway.js';
import { keeper } from '../../support/keeper.js';
import { type ScriptedBackend, startLegacyBackend, startModernBackend } from '../../support/misbehave.js';
import { legacy, modern } from '../../support/raw.js';
import { useVirtualTime } from '../../support/virtual-time.js';

useVirtualTime();

const USUAL = 'application/json, text/event-stream';
const keep = keeper();

type Refusal = 'text' | 'json';

/** A server that answers POSTs with 406 unless it likes their Accept. */
async function start(
  era: 'legacy' | 'modern',
  likes: (accept: string) => boolean,
  { refusal = 'text' as Refusal, route = {} as Record<string, unknown> } = {},
): Promise<{ backend: ScriptedBackend; gateway: TestGateway }> {
  const backend = await (era === 'legacy' ? startLegacyBackend : startModernBackend)({
    intercept: ({ method, headers, sendText, sendJson }) => {
      if (method !== 'POST' || likes(headers.accept ?? '')) return false;
      const message = 'Not Acceptable: Client must accept both application/json and text/event-stream';
      if (refusal === 'text') sendText(message, 406);
      else sendJson({ jsonrpc: '2.0', id: null, error: { code: -32000, message } }, 406);
      return true;
    },
  });
  await keep(backend);
  const gateway = await keep(startGateway({ '/mcp': { backend: { url: backend.url, ...route } } }));
  return { backend, gateway };
}

async function expectServed(
  { backend, gateway }: Awaited<ReturnType<typeof start>>,
  era: string,
): Promise<void> {
  const params = { name: 'echo', arguments: { a: 1 } };
  expect((await modern(gateway.url(), 'tools/call', params)).json.result.structuredContent).toEqual({ a: 1 });
  const session = await legacy(gateway.url());
  expect(session.initialized?.status).toBe(202);
  expect((await session.request('tools/call', params)).json.result.structuredContent).toEqual({ a: 1 });
  const line = gateway.logs.find(({ msg }) => msg === 'era of the backend');
  expect(line.era).toBe(era);
  const posts = backend.requests.filter(({ method }) => method === 'POST');
  for (const { headers } of posts) {
    expect(headers.accept).toContain('application/json');
    expect(headers.accept).toContain('text/event-stream');
  }
}

describe.each(['legacy', 'modern'] as const)('a %s backend', (era) => {
  test('that compares Accept with the usual text is served at once', async () => {
    const rig = await start(era, (accept) => accept === USUAL);
    await expectServed(rig, era);
    expect(
      new Set(
        rig.backend.requests.filter(({ method }) => method === 'POST').map(({ headers }) => headers.accept),
      ),
    ).toEqual(new Set([USUAL]));
  });

  test.each(['text', 'json'] as const)(
    'that wants the stream first, and says so with a 406 in %s, gets it first from then on',
    async (refusal) => {
      const rig = await start(era, (accept) => accept.startsWith('text/event-stream'), { refusal });
      await expectServed(rig, era);
      const refused = rig.backend.requests.filter(
        ({ method, headers }) => method === 'POST' && headers.accept === USUAL,
      );
      expect(refused.length).toBeLessThanOrEqual(2);
    },
  );

  test('that takes no Accept at all is an error, after two tries of each message', async () => {
    const { backend, gateway } = await start(era, () => false);
    const answer = await modern(gateway.url(), 'tools/list');
    expect(answer.status).toBe(502);
    expect(answer.json.error.message).toContain('406');
    expect((await legacy(gateway.url())).initialize.status).toBe(502);
    for (const method of ['server/discover', 'initialize', 'tools/list']) {
      expect(backend.received(method).length).toBeLessThan(9);
    }
  });

  test.each([
    { accept: 'application/json' },
    { Accept: '*/*' },
    { ACCEPT: 'text/event-stream', 'Content-Type': 'text/plain' },
  ])('gets both types and JSON whatever the configuration adds: %o', async (headers) => {
    const rig = await start(era, (accept) => accept === USUAL, { route: { headers } });
    await expectServed(rig, era);
    const types = rig.backend.requests
      .filter(({ method }) => method === 'POST')
      .map((request) => request.headers['content-type']);
    expect(new Set(types)).toEqual(new Set(['application/json']));
  });
});
