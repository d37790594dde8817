import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { afterEach, describe, expect, test } from 'vitest';
import { HttpResponse } from '../../src/downstream/http-response.js';
import { HttpSseResponse } from '../../src/downstream/http-sse-response.js';
import { ReplayBudget } from '../../src/downstream/replay-budget.js';
import type { Recorder } from '../../src/downstream/replay-stream.js';
import { SessionReplay } from '../../src/downstream/session-replay.js';
import { Ticker } from '../../src/exchange/utils/ticker.js';
import { Rope } from '../../src/jsonrpc/index.js';
import { open, type RawStream } from '../support/raw.js';

const KEEP_ALIVE_MS = 15_000;
const BOTH = 'application/json, text/event-stream';

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** A server whose responses the test writes, and a function that sends it a request. */
async function start() {
  const ticker = new Ticker();
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  closers.push(() => {
    ticker.stop();
    server.closeAllConnections();
    server.close();
  });
  const ask = async (accept = BOTH): Promise<{ response: HttpResponse; answer: Promise<RawStream> }> => {
    const arrived = once(server, 'request') as Promise<[IncomingMessage, ServerResponse]>;
    const answer = open(`http://127.0.0.1:${port}/`, { headers: { accept }, body: {} });
    answer.catch(() => {});
    const [req, res] = await arrived;
    const options = {
      requestId: 'r1',
      headers: { 'x-common': 'a' },
      rewriteChallenge: (value: string) => `${value}, changed`,
    };
    return { response: new HttpResponse(req, res, options, { ticker, keepAliveMs: KEEP_ALIVE_MS }), answer };
  };
  return { ticker, ask };
}

const message = (id: number) => new Rope().push(`{"jsonrpc":"2.0","id":${id},"result":{}}`);
const ids = (stream: RawStream) => stream.events.map(({ json }) => json.id);

/** Records every stream that begins. */
function recorderFor(ticker: Ticker): Recorder {
  const session = new SessionReplay(new ReplayBudget({ maxBytes: 1_000_000, ticker }));
  return { record: (owner) => session.begin(owner, { kind: 'request', primed: true }) };
}

describe('a response', () => {
  test('is JSON with its headers where nothing comes before the outcome', async () => {
    const { ask } = await start();
    const { response, answer } = await ask();
    response.end(401, message(1), { 'www-authenticate': 'Bearer' });
    const { status, headers, json } = await (await answer).done;
    expect([response.status, response.done, response.streaming]).toEqual([401, true, false]);
    expect(status).toBe(401);
    expect(json.id).toBe(1);
    expect(headers).toMatchObject({
      'content-type': 'application/json',
      'x-request-id': 'r1',
      'x-common': 'a',
      'www-authenticate': 'Bearer, changed',
    });
  });

  test('becomes a stream with the first event, and ends with the outcome', async () => {
    const { ask } = await start();
    const { response, answer } = await ask();
    expect(response.writeEvent(message(1))).toBe(true);
    expect(response.streaming).toBe(true);
    response.end(500, message(2));
    const stream = await answer;
    await stream.done;
    expect([stream.status, response.status, response.streaming]).toEqual([200, 200, false]);
    expect(stream.headers).toMatchObject({ 'x-request-id': 'r1', 'x-common': 'a' });
    expect(ids(stream)).toEqual([1, 2]);
  });

  test('is no stream for a client that accepts JSON alone', async () => {
    const { ask } = await start();
    const { response, answer } = await ask('application/json');
    response.writeEvent(message(1));
    response.endBatch([message(2), message(3)]);
    const { json, events } = await (await answer).done;
    expect(events).toEqual([]);
    expect(json.map(({ id }: { id: number }) => id)).toEqual([2, 3]);
  });

  test('becomes a stream when its outcome takes long, once it may', async () => {
    const { ask, ticker } = await start();
    const slow = await ask();
    slow.response.allowStream();
    slow.response.tick(performance.now() + KEEP_ALIVE_MS + 1);
    const stream = await slow.answer;
    slow.response.end(200, message(1));
    await stream.done;
    expect(stream.comments).toHaveLength(1);
    const held = await ask();
    expect(held.response.place).toBeLessThan(0);
    held.response.end(200, message(2));
    expect((await (await held.answer).done).events).toEqual([]);
    ticker.stop();
  });

  test('tells all that listen that it was aborted, but not those that stopped listening', async () => {
    const { ask } = await start();
    const { response, answer } = await ask();
    response.openStream();
    const told: string[] = [];
    const detached = (): void => void told.push('detached');
    response.onAbort(() => told.push('first'));
    response.onAbort(detached);
    response.onAbort(() => told.push('second'));
    response.offAbort(detached);
    const ended = new Promise<void>((resolve) => response.onEnd(resolve));
    (await answer).abort();
    await ended;
    expect(told).toEqual(['first', 'second']);
    expect([response.aborted, response.done, response.reachable]).toEqual([true, true, false]);
    response.onAbort(() => told.push('late'));
    expect(told.at(-1)).toBe('late');
    response.end(200, message(1));
  });
});

describe('a response that can be resumed', () => {
  test('continues on the connection of another, with what the client missed', async () => {
    const { ask, ticker } = await start();
    const { response, answer } = await ask();
    response.makeResumable(recorderFor(ticker));
    response.writeEvent(message(1));
    const first = await answer;
    await first.next();
    response.detach();
    await first.done;
    expect([response.detached, response.disconnected, response.reachable]).toEqual([true, false, true]);
    response.writeEvent(message(2));
    const later = await ask();
    expect(response.continueOn(later.response)).toBe(true);
    expect([later.response.done, response.detached]).toEqual([true, false]);
    response.end(200, message(3));
    const second = await later.answer;
    await second.done;
    expect([ids(first), ids(second)]).toEqual([[1], [2, 3]]);
  });

  test('is not aborted when its connection breaks, and wakes those that wait once it ends', async () => {
    const { ask, ticker } = await start();
    const { response, answer } = await ask();
    response.makeResumable(recorderFor(ticker));
    response.writeEvent(message(1));
    (await answer).abort();
    while (!response.detached) await new Promise((resolve) => setImmediate(resolve));
    expect([response.aborted, response.disconnected, response.reachable]).toEqual([false, true, false]);
    const large = new Rope().push(JSON.stringify('x'.repeat(100_000)));
    expect(response.writeEvent(large)).toBe(false);
    let drained = false;
    response.onDrain(() => {
      drained = true;
    });
    expect(drained).toBe(false);
    response.end(200, message(2));
    expect(drained).toBe(true);
  });
});

describe('a message of HTTP+SSE', () => {
  test('gets 202, and its response on the stream', async () => {
    const { ask } = await start();
    const session = await ask();
    session.response.openStream();
    const post = await ask();
    const response = new HttpSseResponse(post.response, session.response, { awaited: true });
    expect((await (await post.answer).done).status).toBe(202);
    response.end(200, message(1));
    const stream = await session.answer;
    await stream.next();
    expect([ids(stream), response.done, response.status, session.response.done]).toEqual([
      [1],
      true,
      200,
      false,
    ]);
    session.response.endEmpty(200);
  });

  test('gets no response once its client has cancelled it', async () => {
    const { ask } = await start();
    const session = await ask();
    session.response.openStream();
    const post = await ask();
    const response = new HttpSseResponse(post.response, session.response, { awaited: true });
    response.silence();
    response.end(200, message(1));
    session.response.endEmpty(200);
    const stream = await session.answer;
    await stream.done;
    expect(ids(stream)).toEqual([]);
  });

  test('that is a handshake has a challenge on its POST, and names the session otherwise', async () => {
    const { ask } = await start();
    const session = await ask();
    session.response.openStream();
    const tokens: string[] = [];
    const onSession = (token: string): void => void tokens.push(token);
    const refused = await ask();
    const traits = { awaited: true, onSession };
    new HttpSseResponse(refused.response, session.response, traits).end(401, message(1));
    expect((await (await refused.answer).done).status).toBe(401);
    const opened = await ask();
    const response = new HttpSseResponse(opened.response, session.response, traits);
    response.end(200, message(2), { 'mcp-session-id': 'token' });
    expect((await (await opened.answer).done).status).toBe(202);
    expect(tokens).toEqual(['token']);
    const stream = await session.answer;
    await stream.next();
    expect(ids(stream)).toEqual([2]);
    session.response.endEmpty(200);
  });
});
