import { request as httpRequest, type IncomingMessage } from 'node:http';
import { afterEach, describe, expect, test } from 'vitest';
import { startGateway } from '../support/gateway.js';
import { type Loose, sleep, until } from '../support/net.js';
import { modern, modernRequest } from '../support/raw.js';
import {
  heardBy,
  listen,
  Opened,
  SUBSCRIPTION_ID,
  startTelling,
  startTellingLegacy,
  TOOLS_CHANGED,
  UPDATED,
} from './rig.js';

const opened = new Opened();
afterEach(() => opened.closeAll());

const LISTS = { toolsListChanged: true };
const as = (name: string) => ({ headers: { authorization: `Bearer ${name}` } });

describe.each(['legacy', 'modern'] as const)('with a limit of open subscriptions, on a %s backend', (era) => {
  async function startRoute(listeners: number) {
    const backend = opened.add(await startTelling[era]());
    const gateway = opened.add(await startGateway({ '/mcp': backend.url }, { limits: { listeners } }));
    const open = async (options?: Loose) => opened.add(await listen(gateway.url(), LISTS, options));
    const refused = () =>
      modern(gateway.url(), 'subscriptions/listen', { notifications: LISTS }, { id: 'r' });
    return { backend, url: gateway.url(), open, refused };
  }

  test('one too many is refused for the time being, and let in when another leaves', async () => {
    const { backend, url, open, refused } = await startRoute(2);
    const [first, second] = [await open(), await open()];
    for (let n = 0; n < 3; n += 1) {
      const { status, headers, json } = await refused();
      expect([status, headers['retry-after']]).toEqual([503, '1']);
      expect(json).toMatchObject({ id: 'r', error: { code: -32603 } });
    }
    // Other requests are not concerned.
    expect((await modern(url, 'tools/list')).status).toBe(200);
    first.close();
    const third = await until(() => open().catch(() => undefined), 'room');
    backend.tell(TOOLS_CHANGED);
    for (const listener of [second, third]) expect(await heardBy(listener, 1)).toEqual([TOOLS_CHANGED]);
  });

  test('nobody keeps all others out', async () => {
    const { backend, open, refused } = await startRoute(4);
    const greedy = [];
    for (let n = 0; n < 4; n += 1) greedy.push(await open({ id: `greedy ${n}`, ...as('greedy') }));
    const other = await open(as('other'));
    // Its oldest was ended in the proper way.
    const { json } = await (greedy[0] as Loose).stream.done;
    expect(json).toMatchObject({ id: 'greedy 0', result: { resultType: 'complete' } });
    const another = await open(as('other'));
    expect((await (greedy[1] as Loose).stream.done).json.id).toBe('greedy 1');
    // With two each there is nothing left to share.
    await expect(open(as('greedy'))).rejects.toThrow();
    await expect(open(as('other'))).rejects.toThrow();
    await open();
    expect((await refused()).status).toBe(503);
    backend.tell(TOOLS_CHANGED);
    for (const listener of [other, another]) expect(await heardBy(listener, 1)).toEqual([TOOLS_CHANGED]);
  });
});

/** A client that opens a subscription and reads nothing until it is told to. */
async function openUnread(url: string, notifications: Loose, id: string): Promise<IncomingMessage> {
  const { headers, body } = modernRequest('subscriptions/listen', { notifications }, { id });
  return new Promise((resolve, reject) => {
    const request = httpRequest(url, {
      method: 'POST',
      agent: false,
      headers: {
        ...(Object.fromEntries(
          Object.entries(headers as Record<string, string | undefined>).filter(
            ([, value]) => value !== undefined,
          ),
        ) as Record<string, string>),
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
      },
    });
    request.on('error', reject);
    request.on('response', (response) => {
      response.pause();
      resolve(response);
    });
    request.end(body as string);
  });
}

async function readAll(response: IncomingMessage): Promise<Loose[]> {
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk);
  return Buffer.concat(chunks)
    .toString()
    .split('\n\n')
    .flatMap((event) => {
      const data = /^data: (.*)$/m.exec(event)?.[1];
      return data ? [JSON.parse(data)] : [];
    });
}

describe('a listener that does not read', () => {
  const A = 'file:///a';
  const filter = { resourceSubscriptions: [A] };
  const padding = 'x'.repeat(4_000);
  const COUNT = 1_500;

  test('is ended in the proper way after what it has got, and holds nobody up', async () => {
    const backend = opened.add(await startTellingLegacy());
    const gateway = opened.add(await startGateway({ '/mcp': backend.url }));
    const readers = await Promise.all(
      Array.from({ length: 3 }, async () => opened.add(await listen(gateway.url(), filter))),
    );
    const slow = await openUnread(gateway.url(), filter, 'slow');
    const before = performance.now();
    for (let n = 1; n <= COUNT; n += 1) {
      backend.tell(UPDATED, { uri: A, n, padding });
      if (n % 50 === 0) await sleep(1);
    }
    for (const reader of readers) {
      await until(() => reader.heard().length === COUNT, 'all of it', 10_000);
      expect(reader.changes().map(({ params }) => params.n)).toEqual(
        Array.from({ length: COUNT }, (_, n) => n + 1),
      );
    }
    expect(performance.now() - before).toBeLessThan(10_000);
    // The log line says what became of it.
    const line = await until(
      () => gateway.logs.find(({ method }) => method === 'subscriptions/listen'),
      'the end of the subscription',
    );
    expect(line.outcome).toBe('cancelled');
    const [ack, ...events] = await readAll(slow);
    const last = events.pop();
    expect(ack.params._meta[SUBSCRIPTION_ID]).toBe('slow');
    expect(last).toEqual({
      jsonrpc: '2.0',
      id: 'slow',
      result: { resultType: 'complete', _meta: { [SUBSCRIPTION_ID]: 'slow' } },
    });
    expect(events.length).toBeLessThan(COUNT);
    expect(events.map(({ params }) => params.n)).toEqual(Array.from(events, (_, n) => n + 1));
    const again = opened.add(await listen(gateway.url(), filter));
    backend.tell(UPDATED, { uri: A, n: 'later' });
    await heardBy(again, 1);
  });

  test('of a modern backend holds up its own stream alone, and loses nothing', async () => {
    const backend = opened.add(await startTelling.modern());
    const gateway = opened.add(await startGateway({ '/mcp': backend.url }));
    const reader = opened.add(await listen(gateway.url(), filter));
    const slow = await openUnread(gateway.url(), filter, 'slow');
    for (let n = 1; n <= COUNT; n += 1) backend.tell(UPDATED, { uri: A, n, padding });
    await until(() => reader.heard().length === COUNT, 'all of it', 10_000);
    for (const stream of backend.listeners()) stream.end();
    const events = (await readAll(slow)).filter(({ method }) => method === UPDATED);
    expect(events.map(({ params }) => params.n)).toEqual(Array.from({ length: COUNT }, (_, n) => n + 1));
  });

  test('and had too much to hear before its acknowledgement is ended too', async () => {
    let agree = () => {};
    const backend = opened.add(
      await startTellingLegacy({
        on: {
          'resources/subscribe': () =>
            new Promise((resolve) => {
              agree = () => resolve({ result: {} });
            }),
        },
      }),
    );
    const gateway = opened.add(await startGateway({ '/mcp': backend.url }));
    const answer = modern(gateway.url(), 'subscriptions/listen', { notifications: filter }, { id: 'e' });
    await until(() => backend.received('resources/subscribe').length === 1, 'the subscription');
    for (let n = 0; n < 2_100; n += 1) backend.tell(UPDATED, { uri: `${A}/${n}` });
    await sleep(200);
    agree();
    expect((await answer).json).toMatchObject({ id: 'e', result: { resultType: 'complete' } });
  });
});
