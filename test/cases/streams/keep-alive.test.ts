import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../../support/gateway.js';
import { type ScriptedBackend, startLegacyBackend, startModernBackend } from '../../support/misbehave.js';
import { type Loose, sleep, until } from '../../support/net.js';
import { type LegacySession, legacy, modern, openModern, type RawStream } from '../../support/raw.js';
import { useVirtualTime } from '../../support/virtual-time.js';

useVirtualTime();

/** Short, so that the tests are; the ticking of the gateway adds up to 250 ms. */
const KEEP_ALIVE_MS = 300;
const BETWEEN_COMMENTS_MS = KEEP_ALIVE_MS + 250;
const ACKNOWLEDGED = 'notifications/subscriptions/acknowledged';

/** A modern backend's stream for changes: acknowledged, and silent from then on. */
function listen({ stream, frame, id, params }: Loose): undefined {
  const events = stream();
  const { notifications } = params;
  const _meta = { 'io.modelcontextprotocol/subscriptionId': id };
  events.event({ ...frame({}), id: undefined, method: ACKNOWLEDGED, params: { _meta, notifications } });
  return undefined;
}

function expectUnbuffered({ headers }: RawStream): void {
  expect(headers['content-type']).toBe('text/event-stream');
  expect(headers['x-accel-buffering']).toBe('no');
  const control = String(headers['cache-control']);
  for (const word of ['no-cache', 'no-transform']) expect(control).toContain(word);
  expect(headers['content-length']).toBeUndefined();
  expect(headers['content-encoding']).toBeUndefined();
}

/** Waits for `count` further comments, and checks the pauses between them. */
async function expectComments(stream: RawStream, count: number): Promise<void> {
  const before = stream.comments.length;
  const events = stream.events.length;
  const begun = Date.now();
  await until(() => stream.comments.length >= before + count, `${count} comments`, 10_000);
  const ms = (Date.now() - begun) / count;
  expect(ms).toBeGreaterThan(KEEP_ALIVE_MS / 2);
  expect(ms).toBeLessThan(BETWEEN_COMMENTS_MS * 2);
  expect(stream.events).toHaveLength(events);
}

describe.concurrent.each(['legacy', 'modern'] as const)('in front of a %s backend', (era) => {
  let backend: ScriptedBackend;
  let gateway: TestGateway;
  let session: LegacySession;
  beforeAll(async () => {
    backend = await (era === 'legacy' ? startLegacyBackend : startModernBackend)({
      capabilities: { tools: { listChanged: true } },
      on: {
        'subscriptions/listen': listen,
        'tools/call': async ({ params }) => {
          await sleep(params.arguments.ms);
          return { result: { resultType: 'complete', content: [{ type: 'text', text: 'done' }] } };
        },
      },
    });
    gateway = await startGateway({ '/mcp': backend.url }, { keepAlive: `${KEEP_ALIVE_MS}ms` });
    session = await legacy(gateway.url());
  });
  afterAll(async () => {
    await gateway.close();
    await backend.close();
  });

  test('the stream of a session has a first byte at once, and then a comment now and again', async () => {
    const begun = Date.now();
    const stream = await session.listen({ 'accept-encoding': 'gzip, br' });
    expect(stream.status).toBe(200);
    expectUnbuffered(stream);
    await until(() => stream.comments.length > 0, 'the first comment');
    expect(Date.now() - begun).toBeLessThan(KEEP_ALIVE_MS);
    await expectComments(stream, 4);
    stream.abort();
  });

  test('so has a subscription, as long as it lasts', async () => {
    const begun = Date.now();
    const params = { notifications: { toolsListChanged: true } };
    const stream = await openModern(gateway.url(), 'subscriptions/listen', params, { id: 'listen:0' });
    expect(stream.status).toBe(200);
    expectUnbuffered(stream);
    await until(() => stream.comments.length > 0, 'the first comment');
    expect(Date.now() - begun).toBeLessThan(KEEP_ALIVE_MS + 500);
    expect((await stream.next()).json.method).toBe(ACKNOWLEDGED);
    if (stream.ended) return;
    await expectComments(stream, 3);
    stream.abort();
  });

  const params = (ms: number) => ({ name: 'echo', arguments: { ms } });
  const clients: Record<string, (ms: number, accept?: string) => Promise<RawStream>> = {
    modern: (ms, accept) => openModern(gateway.url(), 'tools/call', params(ms), { headers: { accept } }),
    legacy: (ms, accept) => session.open('tools/call', params(ms), { headers: { accept } }),
  };
  for (const client of Object.keys(clients)) {
    const call = clients[client] as (typeof clients)[string];

    test(`a ${client} client that takes streams is given signs of life while a slow tool works`, async () => {
      const begun = Date.now();
      const stream = await call(1_800);
      expect(Date.now() - begun).toBeLessThan(1_000);
      expectUnbuffered(stream);
      const whole = await stream.done;
      expect(stream.comments.length).toBeGreaterThanOrEqual(2);
      expect(whole.json.result.content[0].text).toBe('done');
      expect(whole.events).toHaveLength(1);
    });

    test(`a ${client} client that takes JSON alone waits for the one answer`, async () => {
      const whole = await (await call(1_200, 'application/json')).done;
      expect(whole.headers['content-type']).toBe('application/json');
      expect(whole.headers['content-length']).toBe(String(whole.bytes.length));
      expect(whole.json.result.content[0].text).toBe('done');
    });

    test(`a ${client} client gets JSON for what takes no time`, async () => {
      const whole = await (await call(0)).done;
      expect(whole.headers['content-type']).toBe('application/json');
    });
  }

  test('an error that takes long comes on the stream that was opened for it', async () => {
    const slow = await (era === 'legacy' ? startLegacyBackend : startModernBackend)({
      on: {
        'tools/call': async () => {
          await sleep(1_000);
          return { error: { code: -32602, message: 'no such thing', data: { a: 1 } } };
        },
      },
    });
    const front = await startGateway({ '/mcp': slow.url }, { keepAlive: `${KEEP_ALIVE_MS}ms` });
    try {
      const answer = await modern(front.url(), 'tools/call', params(0));
      expect(answer.status).toBe(200);
      expect(answer.headers['content-type']).toBe('text/event-stream');
      expect(answer.json.error).toMatchObject({ code: -32602, message: 'no such thing' });
    } finally {
      await front.close();
      await slow.close();
    }
  });

  test('a slow handshake is no stream, since its headers hold the session id', async () => {
    const slow = await (era === 'legacy' ? startLegacyBackend : startModernBackend)({
      on: {
        [era === 'legacy' ? 'initialize' : 'server/discover']: async ({ params: asked }) => {
          await sleep(900);
          const common = { capabilities: {}, serverInfo: { name: 'slow', version: '1' } };
          const own =
            era === 'legacy'
              ? { protocolVersion: asked.protocolVersion }
              : {
                  resultType: 'complete',
                  supportedVersions: ['2026-07-28'],
                  ttlMs: 0,
                  cacheScope: 'private',
                };
          return { result: { ...common, ...own } };
        },
      },
    });
    const front = await startGateway({ '/mcp': slow.url }, { keepAlive: `${KEEP_ALIVE_MS}ms` });
    try {
      for (const accept of [undefined, 'text/event-stream']) {
        const { id, initialize, initialized } = await legacy(front.url(), { headers: { accept } });
        expect(initialize.status).toBe(200);
        expect(id).toMatch(/^[\x21-\x7e]+$/);
        expect(initialized?.status).toBe(202);
      }
    } finally {
      await front.close();
      await slow.close();
    }
  });
});

test('a busy stream needs no comments', async () => {
  const backend = await startModernBackend({
    on: {
      'tools/call': async ({ stream, frame }) => {
        const events = stream();
        for (let progress = 0; progress < 20; progress++) {
          events.event({
            jsonrpc: '2.0',
            method: 'notifications/progress',
            params: { progressToken: 'p', progress },
          });
          await sleep(50);
        }
        events.event(frame({ result: { resultType: 'complete', content: [] } }));
        events.end();
        return undefined;
      },
    },
  });
  const gateway = await startGateway({ '/mcp': backend.url }, { keepAlive: `${KEEP_ALIVE_MS}ms` });
  try {
    const stream = await openModern(gateway.url(), 'tools/call', {
      name: 'echo',
      _meta: { progressToken: 'p' },
    });
    expect((await stream.done).messages).toHaveLength(20);
    expect(stream.comments).toEqual([]);
  } finally {
    await gateway.close();
    await backend.close();
  }
});

test('with the usual setting a quiet stream has a first byte too', async () => {
  const backend = await startLegacyBackend();
  const gateway = await startGateway({ '/mcp': backend.url });
  try {
    const stream = await (await legacy(gateway.url())).listen();
    await until(() => stream.comments.length > 0, 'the first comment', 300);
    stream.abort();
  } finally {
    await gateway.close();
    await backend.close();
  }
});
