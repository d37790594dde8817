import { describe, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../../support/gateway.js';
import { keeper } from '../../support/keeper.js';
import {
  type BackendExchange,
  type ScriptedBackend,
  type Step,
  startLegacyBackend,
  startModernBackend,
} from '../../support/misbehave.js';
import { type Loose, sleep, until } from '../../support/net.js';
import { legacy, modern, openModern, type RawResponse } from '../../support/raw.js';
import { useVirtualTime } from '../../support/virtual-time.js';

useVirtualTime();

const keep = keeper();

const params = { name: 'echo', arguments: {}, _meta: { progressToken: 'mine' } };
const CLIENTS: Record<string, (gateway: TestGateway) => Promise<RawResponse>> = {
  modern: (gateway) => modern(gateway.url(), 'tools/call', params),
  // Of a revision whose clients are not told to come back, as those of the next one are.
  legacy: async (gateway) =>
    (await legacy(gateway.url(), { version: '2025-06-18' })).request('tools/call', params),
};

type End = 'end' | 'destroy';

interface Script {
  /** What the answer stream of the call says before it breaks off. */
  first(step: Step): string;
  /** Answers a GET that takes the stream up again; `n` counts from 1. */
  again(exchange: BackendExchange, n: number, call: Step): void;
  end?: End;
  timeouts?: Record<string, string>;
  sessions?: Record<string, unknown>;
}

/** A legacy backend that breaks off the stream of its one call, to go on when it is asked for the rest. */
async function start({ first, again, end = 'end', timeouts = {}, sessions = {} }: Script) {
  let call: Step | undefined;
  let resumptions = 0;
  const backend: ScriptedBackend = await startLegacyBackend({
    intercept: (exchange) => {
      if (exchange.method !== 'GET' || exchange.headers['last-event-id'] === undefined) return false;
      resumptions += 1;
      again(exchange, resumptions, call as Step);
      return true;
    },
    on: {
      'tools/call': async (step) => {
        call = step;
        const events = step.stream({ 'mcp-session-id': step.session ?? '' });
        events.write(first(step));
        await sleep(20);
        events[end]();
        return undefined;
      },
    },
  });
  await keep(backend);
  const gateway = await keep(startGateway({ '/mcp': { backend: { url: backend.url }, timeouts, sessions } }));
  const resumed = () =>
    backend.requests.filter(
      ({ method, headers }) => method === 'GET' && headers['last-event-id'] !== undefined,
    );
  return { backend, gateway, resumed };
}

const event = (id: string, message: Loose) => `id: ${id}\ndata: ${JSON.stringify(message)}\n\n`;
const PRIMING = 'id: p-0\nretry: 30\ndata:\n\n';
const progressOf = (call: Step, progress: number) => ({
  jsonrpc: '2.0',
  method: 'notifications/progress',
  params: { progressToken: call.params._meta.progressToken, progress },
});
const answerOf = (call: Step) => call.frame({ result: { content: [{ type: 'text', text: 'resumed' }] } });

describe.each(Object.keys(CLIENTS))('a call of a %s client', (client) => {
  const call = CLIENTS[client] as (typeof CLIENTS)[string];

  test.each(['end', 'destroy'] as const)(
    'goes on after its stream broke off (%s), from the last event that came',
    async (end) => {
      const { backend, gateway, resumed } = await start({
        end,
        first: (step) => PRIMING + event('p-1', progressOf(step, 1)),
        again: ({ stream }, _n, step) => {
          const events = stream();
          events.write(event('p-2', progressOf(step, 2)) + event('p-3', answerOf(step)));
        },
      });
      const answer = await call(gateway);
      expect(answer.json.result.content[0].text).toBe('resumed');
      expect(answer.messages.map((message) => message.params)).toEqual([
        { progressToken: 'mine', progress: 1 },
        { progressToken: 'mine', progress: 2 },
      ]);
      expect(resumed()).toHaveLength(1);
      const [get] = resumed();
      expect(get?.headers).toMatchObject({ accept: 'text/event-stream', 'last-event-id': 'p-1' });
      const [post] = backend.received('tools/call');
      expect(get?.headers['mcp-session-id']).toBe(post?.headers['mcp-session-id']);
      // Not before the server wants it.
      expect((get?.at ?? 0) - (post?.at ?? 0)).toBeGreaterThanOrEqual(30);
      expect(backend.received('tools/call')).toHaveLength(1);
    },
  );

  test('may be resumed many times, by a server that has its clients poll', async () => {
    const { gateway, resumed } = await start({
      first: () => PRIMING,
      again: ({ stream }, n, step) => {
        const events = stream();
        events.write(n < 25 ? `id: p-${n}\nretry: 20\ndata:\n\n` : event(`p-${n}`, answerOf(step)));
        events.end();
      },
    });
    expect((await call(gateway)).json.result.content[0].text).toBe('resumed');
    expect(resumed().map(({ headers }) => headers['last-event-id'])).toEqual(
      Array.from({ length: 25 }, (_, n) => `p-${n}`),
    );
  });

  test('is given up when its time is up, and its stream never told anything', async () => {
    const { gateway, resumed } = await start({
      timeouts: { total: '1s' },
      first: () => 'id: p-0\nretry: 1\ndata:\n\n',
      again: ({ stream }, n) => {
        const events = stream();
        events.write(`id: p-${n}\nretry: 1\ndata:\n\n`);
        events.end();
      },
    });
    expect((await call(gateway)).json.error.message).toMatch(/timed out/i);
    // The pause that the server wants is too short for anybody's good.
    expect(resumed().length).toBeGreaterThan(2);
    expect(resumed().length).toBeLessThan(60);
  });

  const refusals: Record<string, Script['again']> = {
    'with 404': ({ sendText }) => sendText('Not Found', 404),
    'with 405': ({ sendText }) => sendText('', 405),
    'with 400 and JSON': ({ sendJson }) =>
      sendJson({ jsonrpc: '2.0', id: null, error: { code: -32000, message: 'Invalid event ID' } }, 400),
    'with 409': ({ sendText }) => sendText('Conflict', 409),
    'with a stream that is empty': ({ stream }) => stream().end(),
  };
  test.each(Object.keys(refusals))('is an error when it is refused to go on %s', async (name) => {
    const { gateway, backend } = await start({
      first: () => PRIMING,
      again: refusals[name] as Script['again'],
    });
    const begun = Date.now();
    const answer = await call(gateway);
    expect(answer.json.error.code).toBe(-32603);
    expect(Date.now() - begun).toBeLessThan(3_000);
    expect(backend.received('tools/call')).toHaveLength(1);
  });

  test('goes on although the connection breaks that was to take it up', async () => {
    const { gateway, resumed } = await start({
      first: () => PRIMING,
      again: ({ stream, destroy }, n, step) => {
        if (n === 1) destroy();
        else stream().write(event('p-1', answerOf(step)));
      },
    });
    expect((await call(gateway)).json.result.content[0].text).toBe('resumed');
    expect(resumed().map(({ headers }) => headers['last-event-id'])).toEqual(['p-0', 'p-0']);
  });

  test('is an error at once when the stream gave no event ids', async () => {
    const { gateway, resumed } = await start({
      first: (step) => `retry: 10\ndata: ${JSON.stringify(progressOf(step, 1))}\n\n`,
      again: ({ sendText }) => sendText('', 405),
    });
    const begun = Date.now();
    const answer = await call(gateway);
    expect(answer.json.error.code).toBe(-32603);
    expect(answer.json.error.message).toMatch(/^The connection to the server behind route .* broke/);
    expect(Date.now() - begun).toBeLessThan(1_000);
    expect(resumed()).toEqual([]);
  });

  test('whose answer had come before the stream broke off is not resumed', async () => {
    const { gateway, resumed } = await start({
      first: (step) => PRIMING + event('p-1', answerOf(step)),
      again: ({ sendText }) => sendText('', 405),
    });
    expect((await call(gateway)).json.result.content[0].text).toBe('resumed');
    await sleep(200);
    expect(resumed()).toEqual([]);
  });
});

test('a call that its client leaves during the pause is not resumed', async () => {
  const { gateway, backend, resumed } = await start({
    first: (step) => `id: p-0\nretry: 500\ndata:\n\n${event('p-1', progressOf(step, 1))}`,
    again: ({ sendText }) => sendText('', 405),
  });
  const stream = await openModern(gateway.url(), 'tools/call', params);
  await stream.next();
  await sleep(100);
  stream.abort();
  await until(() => backend.received('notifications/cancelled').length > 0, 'the cancellation');
  await sleep(600);
  expect(resumed()).toEqual([]);
});

test('a call that is cancelled during the pause gives its session back at once', async () => {
  const { gateway } = await start({
    first: (step) => `id: p-0\nretry: 10000\ndata:\n\n${event('p-1', progressOf(step, 1))}`,
    again: ({ sendText }) => sendText('', 405),
    sessions: { isolation: 'call', max: 1 },
  });
  const stream = await openModern(gateway.url(), 'tools/call', params);
  await stream.next();
  const next = modern(gateway.url(), 'tools/list');
  await sleep(100);
  stream.abort();
  const begun = Date.now();
  expect((await next).status).toBe(200);
  expect(Date.now() - begun).toBeLessThan(2_000);
});

test('the modern era has no resumption: a stream that broke off is an error at once, whatever ids it gave', async () => {
  for (const end of ['end', 'destroy'] as const) {
    const backend = await startModernBackend({
      on: {
        'tools/call': async ({ stream }) => {
          const events = stream();
          events.write(PRIMING);
          await sleep(20);
          events[end]();
          return undefined;
        },
      },
    });
    await keep(backend);
    const gateway = await keep(startGateway({ '/mcp': backend.url }));
    for (const call of Object.values(CLIENTS)) {
      const begun = Date.now();
      const answer = await call(gateway);
      expect(answer.json.error.code).toBe(-32603);
      expect(Date.now() - begun).toBeLessThan(1_500);
    }
    expect(backend.requests.filter(({ method }) => method === 'GET')).toEqual([]);
  }
});

test('nothing of the ids and pauses of a backend reaches a modern client', async () => {
  const { gateway } = await start({
    first: (step) => `${PRIMING}event: prime\nid: x\ndata:\n\n${event('p-1', answerOf(step))}`,
    again: ({ sendText }) => sendText('', 405),
  });
  const answer = await modern(gateway.url(), 'tools/call', params, {
    headers: { accept: 'text/event-stream' },
  });
  expect(answer.text).not.toMatch(/^(id|retry):/m);
});
