import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { describe, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../../support/gateway.js';
import { keeper } from '../../support/keeper.js';
import {
  type ScriptedBackend,
  type Step,
  startLegacyBackend,
  startModernBackend,
} from '../../support/misbehave.js';
import { type Loose, sleep, until } from '../../support/net.js';
import { type LegacySession, legacy, modern, modernRequest } from '../../support/raw.js';
import { useVirtualTime } from '../../support/virtual-time.js';

useVirtualTime();

const keep = keeper();

/** What a backend writes in all, and what buffers of the system on the way may take in of it before a reader reads. */
const MESSAGES = 1_400;
const PADDING = 'x'.repeat(20_000);
const IN_BUFFERS_BYTES = 20 * 1024 * 1024;

/** A client that could come back would be waited for. */
const CANNOT_COME_BACK = { limits: { replay: 0 } };

/** Writes numbered messages as fast as they are taken, and counts what has been taken. */
class Chatter {
  taken = 0;
  over = false;
  async run(res: Step['res'], message: (n: number) => Loose, end: (res: Step['res']) => void): Promise<void> {
    let go = (): void => {};
    res.on('drain', () => go()).on('close', () => go());
    for (let n = 0; n < MESSAGES && !res.destroyed; n++) {
      const event = `data: ${JSON.stringify(message(n))}\n\n`;
      this.taken += event.length;
      if (res.write(event)) continue;
      await new Promise<void>((resolve) => {
        go = resolve;
      });
    }
    this.over = true;
    end(res);
  }
  /** Resolves once nothing has been taken for a while. */
  async stalled(): Promise<number> {
    let before = -1;
    await until(
      async () => {
        const same = this.taken > 0 && before === this.taken;
        before = this.taken;
        if (!same) await sleep(300);
        return same;
      },
      'the backend to be held up',
      15_000,
    );
    return this.taken;
  }
}

/** Opens a request and reads nothing of its answer until told to. */
async function openUnread(
  url: string,
  headers: Record<string, string | undefined>,
  body?: string,
): Promise<IncomingMessage> {
  const given = Object.entries(headers).filter(([, value]) => value !== undefined) as [string, string][];
  const request = httpRequest(url, {
    method: body === undefined ? 'GET' : 'POST',
    agent: false,
    headers: Object.fromEntries([
      ['accept', 'application/json, text/event-stream'],
      ...(body === undefined ? [] : [['content-type', 'application/json'] as [string, string]]),
      ...given,
    ]),
  });
  request.on('error', () => {});
  request.end(body);
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  response.pause();
  response.on('error', () => {});
  return response;
}

/** Reads to the end, or to the event that `last` says is the last, and gives the messages. */
async function readAll(response: IncomingMessage, last: (message: Loose) => boolean): Promise<Loose[]> {
  const messages: Loose[] = [];
  let pending = '';
  for await (const chunk of response) {
    pending += chunk;
    const events = pending.split('\n\n');
    pending = events.pop() ?? '';
    for (const event of events) {
      const data = /^data: (.*)$/m.exec(event)?.[1];
      if (!data) continue;
      messages.push(JSON.parse(data));
      if (last(messages.at(-1))) return messages;
    }
  }
  return messages;
}

const isAnswer = (message: Loose) => 'result' in message || 'error' in message;

function expectAll(messages: Loose[]): void {
  const numbers = messages
    .filter(({ params }) => params?.progress !== undefined)
    .map(({ params }) => params.progress);
  expect(numbers).toEqual(Array.from({ length: MESSAGES }, (_, n) => n));
}

describe.each(['legacy', 'modern'] as const)(
  'a client that reads nothing of a call to a chatty %s backend',
  (era) => {
    async function start(
      chatter: Chatter,
      config: Loose = {},
    ): Promise<{ backend: ScriptedBackend; gateway: TestGateway }> {
      const backend = await (era === 'legacy' ? startLegacyBackend : startModernBackend)({
        on: {
          'tools/call': (step) => {
            step.stream();
            const { progressToken } = step.params._meta;
            void chatter.run(
              step.res,
              (progress) => ({
                jsonrpc: '2.0',
                method: 'notifications/progress',
                params: { progressToken, progress, message: PADDING },
              }),
              (res) => {
                const answer = step.frame({ result: { resultType: 'complete', content: [] } });
                res.end(`data: ${JSON.stringify(answer)}\n\n`);
              },
            );
            return undefined;
          },
        },
      });
      const gateway = await startGateway({ '/mcp': backend.url }, config);
      await keep(backend);
      await keep(gateway);
      return { backend, gateway };
    }

    const params = { name: 'echo', arguments: {}, _meta: { progressToken: 'mine' } };
    const calls: Record<string, (gateway: TestGateway) => Promise<IncomingMessage>> = {
      modern: (gateway) => {
        const { headers, body } = modernRequest('tools/call', params);
        return openUnread(gateway.url(), headers as Record<string, string>, body as string);
      },
      legacy: async (gateway) => {
        const session = await legacy(gateway.url());
        return openUnread(
          gateway.url(),
          session.headers,
          JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
        );
      },
    };

    test.each(Object.keys(calls))('holds the backend up, and loses nothing (%s client)', async (client) => {
      const chatter = new Chatter();
      const { gateway } = await start(chatter);
      const response = await (calls[client] as (typeof calls)[string])(gateway);
      expect(await chatter.stalled()).toBeLessThan(IN_BUFFERS_BYTES);
      expect(chatter.over).toBe(false);
      // Others are served as before.
      expect((await modern(gateway.url(), 'tools/list')).status).toBe(200);
      const messages = await readAll(response, isAnswer);
      expectAll(messages);
      expect(messages.at(-1).result.content).toEqual([]);
    });

    // What becomes of a client that leaves is the same whatever the backend.
    if (era === 'modern') return;
    test.each(Object.keys(calls))('frees the backend when it goes away (%s client)', async (client) => {
      const chatter = new Chatter();
      const { gateway, backend } = await start(chatter, CANNOT_COME_BACK);
      const response = await (calls[client] as (typeof calls)[string])(gateway);
      await chatter.stalled();
      response.destroy();
      await until(() => chatter.over, 'the backend to go on, or to be left', 10_000);
      expect(backend.received('tools/call')).toHaveLength(1);
    });
  },
);

describe('a client that reads nothing of its session stream', () => {
  async function start(config: Loose = {}): Promise<{
    chatter: Chatter;
    session: LegacySession;
    response: IncomingMessage;
    backend: ScriptedBackend;
  }> {
    const chatter = new Chatter();
    const backend = await startLegacyBackend({
      capabilities: { tools: {}, logging: {} },
      on: {
        GET: ({ stream, res }) => {
          stream();
          void chatter.run(
            res,
            (progress) => ({
              jsonrpc: '2.0',
              method: 'notifications/message',
              params: { level: 'info', data: PADDING, progress },
            }),
            () => {},
          );
          return undefined;
        },
      },
    });
    await keep(backend);
    const gateway = await keep(startGateway({ '/mcp': backend.url }, config));
    const session = await legacy(gateway.url());
    const response = await openUnread(gateway.url(), { ...session.headers, accept: 'text/event-stream' });
    return { chatter, session, response, backend };
  }

  test('holds the backend up, loses nothing, and can go on calling tools', async () => {
    const { chatter, session, response } = await start();
    expect(await chatter.stalled()).toBeLessThan(IN_BUFFERS_BYTES);
    expect(chatter.over).toBe(false);
    expect((await session.request('tools/call', { name: 'echo', arguments: {} })).status).toBe(200);
    const messages = await readAll(response, ({ params }) => params?.progress === MESSAGES - 1);
    expectAll(messages);
    response.destroy();
  });

  test('frees the backend when it goes away', async () => {
    const { chatter, response, backend } = await start(CANNOT_COME_BACK);
    await chatter.stalled();
    response.destroy();
    await until(
      () => chatter.over || backend.requests.find(({ method }) => method === 'GET')?.disconnected,
      'the stream to be left, or to go on',
      10_000,
    );
  });
});

test('what a server says on its own stream during the call of a slow reader is held up as well', async () => {
  const chatter = new Chatter();
  let answer = (): void => {};
  const backend = await startLegacyBackend({
    capabilities: { tools: {}, logging: {} },
    on: {
      'logging/setLevel': () => ({ result: {} }),
      'tools/call': (step) => {
        step.stream();
        const { stream } = backend.streams.at(-1) as (typeof backend.streams)[number];
        const sent = streams.get(stream);
        if (sent === undefined) throw new Error('no stream');
        void chatter.run(
          sent,
          (progress) => ({
            jsonrpc: '2.0',
            method: 'notifications/message',
            params: { level: 'error', data: PADDING, progress },
          }),
          () => {},
        );
        answer = () => {
          const frame = step.frame({ result: { content: [] } });
          step.res.end(`data: ${JSON.stringify(frame)}\n\n`);
        };
        return undefined;
      },
      GET: (step) => {
        const stream = step.stream();
        streams.set(stream, step.res);
        backend.streams.push({ session: step.session, stream });
        return undefined;
      },
    },
  });
  const streams = new Map<unknown, Step['res']>();
  await keep(backend);
  const gateway = await keep(startGateway({ '/mcp': backend.url }));
  const { headers, body } = modernRequest(
    'tools/call',
    { name: 'echo', arguments: {} },
    { capabilities: { elicitation: {} }, meta: { 'io.modelcontextprotocol/logLevel': 'debug' } },
  );
  const response = await openUnread(gateway.url(), headers as Record<string, string>, body as string);
  expect(await chatter.stalled()).toBeLessThan(IN_BUFFERS_BYTES);
  expect(chatter.over).toBe(false);
  const reading = readAll(response, isAnswer);
  await until(() => chatter.over, 'the backend to have said everything', 15_000);
  await sleep(300);
  answer();
  expectAll(await reading);
});

test('changes that a slow reader has not read yet are sent to it once', async () => {
  const flood = 15_000;
  let written = 0;
  const backend = await startModernBackend({
    capabilities: { tools: { listChanged: true }, resources: { subscribe: true } },
    on: {
      'subscriptions/listen': async ({ stream, id, params, res }) => {
        const _meta = { 'io.modelcontextprotocol/subscriptionId': id };
        const events = stream();
        const note = (method: string, more: Loose = {}) =>
          events.event({ jsonrpc: '2.0', method, params: { ...more, _meta } });
        note('notifications/subscriptions/acknowledged', { notifications: params.notifications });
        await sleep(300);
        for (written = 0; written < flood && !res.destroyed; written++) {
          note('notifications/tools/list_changed', { filler: 'x'.repeat(2_000) });
          if (written % 50 === 0) await new Promise(setImmediate);
        }
        note('notifications/resources/list_changed', { last: true });
        return undefined;
      },
    },
  });
  await keep(backend);
  const gateway = await keep(startGateway({ '/mcp': backend.url }));
  const session = await legacy(gateway.url());
  const response = await openUnread(gateway.url(), { ...session.headers, accept: 'text/event-stream' });
  await until(() => written === flood, 'the backend to have told of everything', 20_000);
  await sleep(500);
  const messages = await readAll(response, ({ method }) => method === 'notifications/resources/list_changed');
  expect(messages.length).toBeGreaterThan(1);
  expect(messages.length).toBeLessThan(flood - 1_000);
  response.destroy();
});
