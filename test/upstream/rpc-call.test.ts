import { afterEach, describe, expect, test } from 'vitest';
import { Ticker } from '../../src/exchange/utils/ticker.js';
import { Rope } from '../../src/jsonrpc/index.js';
import { TransportError } from '../../src/upstream/errors.js';
import { NO_ID, RpcCall, type RpcListener } from '../../src/upstream/rpc-call.js';
import type { ResponseSink, Transport } from '../../src/upstream/transport.js';

const ticker = new Ticker();
afterEach(() => ticker.stop());

/** A transport that sends nothing, and keeps the sinks of its requests. */
function quietTransport() {
  const sinks: ResponseSink[] = [];
  const deviations: string[] = [];
  const aborted: number[] = [];
  const transport: Transport = {
    reportDeviation: (what) => deviations.push(what),
    close: async () => {},
    send(_method, _headers, _body, sink) {
      const index = sinks.push(sink) - 1;
      return { abort: () => aborted.push(index), waitFor() {} };
    },
  };
  return { transport, sinks, deviations, aborted };
}

function call(id: string, options: { safe?: boolean; listener?: Partial<RpcListener> } = {}) {
  const heard: string[] = [];
  const listener: RpcListener = {
    onNotification: ({ method }) => void heard.push(method) as undefined,
    onRequest: ({ method }) => heard.push(`${method}?`),
    onStray: ({ id: stray }) => heard.push(`stray ${stray}`),
    ...options.listener,
  };
  const quiet = quietTransport();
  const rpc = new RpcCall(id, ticker, listener);
  rpc.post({
    transport: quiet.transport,
    headers: [],
    body: new Rope().push('{}'),
    repeatable: options.safe ?? false,
  });
  return { rpc, heard, sink: quiet.sinks[0] as ResponseSink, ...quiet };
}

const result = (id: string | undefined, value = '{}') =>
  Buffer.from(`{"jsonrpc":"2.0",${id === undefined ? '' : `"id":${id},`}"result":${value}}`);
const error = (id: string | undefined) =>
  Buffer.from(`{"jsonrpc":"2.0",${id === undefined ? '' : `"id":${id},`}"error":{"code":1,"message":"m"}}`);

describe('a response', () => {
  test.each([
    ['7', '7', true],
    ['7', '"7"', true],
    ['7', '7.0', true],
    ['7', '70e-1', true],
    ['"7"', '7', true],
    ['"\\u0041"', '"A"', true],
    ['9007199254740993', '9007199254740992', true],
    ['7', 'null', true],
    ['7', undefined, true],
    ['7', '8', false],
    ['7', '"x"', false],
    ['7', '"server-error"', false],
    [NO_ID, '7', false],
  ])('to the request %s with the id %s is its own: %s', async (sent, id, own) => {
    const { rpc, sink, heard } = call(sent);
    sink.onHead(200, {});
    sink.onMessage(result(id), undefined);
    sink.onEnd('');
    expect((await rpc.reply).kind).toBe(own ? 'response' : 'no-response');
    expect(heard).toEqual(own ? [] : [`stray ${id}`]);
  });

  test.each([
    [200, '8', false],
    [200, '"server-error"', true],
    [200, 'null', true],
    [400, '8', true],
    [500, '"whatever"', true],
  ])('that is an error of HTTP %i with the id %s is its own: %s', async (status, id, own) => {
    const { rpc, sink } = call('7');
    sink.onHead(status, {});
    sink.onMessage(error(id), undefined);
    sink.onEnd('');
    expect((await rpc.reply).kind).toBe(own ? 'response' : 'no-response');
  });

  test('is found in a batch, among messages of other kinds', async () => {
    const { rpc, sink, heard } = call('7');
    sink.onHead(200, {});
    const others = '{"jsonrpc":"2.0","method":"n"},{"jsonrpc":"2.0","id":1,"method":"q"},null';
    sink.onMessage(Buffer.from(`[${others},${result('7', '{"a":1.0}')}]`), undefined);
    const reply = await rpc.reply;
    expect(heard).toEqual(['n', 'q?']);
    if (reply.kind !== 'response' || reply.frame.type !== 'result') throw new Error(reply.kind);
    expect(reply.frame.bytes.toString('utf8', reply.frame.result.start, reply.frame.result.end)).toBe(
      '{"a":1.0}',
    );
  });

  test.each(['[]', '"x"', '7', 'true'])('whose result is %s is an error', async (value) => {
    const { rpc, sink } = call('7');
    sink.onMessage(result('7', value), undefined);
    expect(await rpc.reply).toMatchObject({ kind: 'response', frame: { type: 'error', code: -32603 } });
  });

  test('whose result is null has an empty result', async () => {
    const { rpc, sink } = call('7');
    sink.onMessage(result('7', 'null'), undefined);
    expect(await rpc.reply).toMatchObject({
      kind: 'response',
      frame: { type: 'result', result: { kind: 'object' } },
    });
  });

  test('counts once', async () => {
    const { rpc, sink, heard } = call('7');
    sink.onMessage(result('7', '{"n":1}'), undefined);
    sink.onMessage(result('7', '{"n":2}'), undefined);
    sink.onError(new TransportError('broken', 'late'));
    expect(await rpc.reply).toMatchObject({ kind: 'response' });
    expect(heard).toEqual(['stray 7']);
  });

  test('is followed by the end of the stream after some time, if the server does not end it', async () => {
    const { rpc, sink, aborted } = call('7');
    sink.onMessage(result('7'), undefined);
    await rpc.reply;
    rpc.tick(performance.now());
    expect(aborted).toEqual([]);
    rpc.tick(performance.now() + 10_000);
    expect(aborted).toEqual([0]);
  });
});

describe('without a response', () => {
  test.each(['', '{', '[', '[{]', '{}', 'null', '"x"', '[1,2]', '{"jsonrpc":"1.0","id":7,"result":{}}'])(
    'the message %j is skipped and reported',
    async (text) => {
      const { rpc, sink, deviations } = call('7');
      sink.onHead(200, {});
      sink.onMessage(Buffer.from(text), undefined);
      sink.onEnd('');
      expect(await rpc.reply).toMatchObject({ kind: 'no-response', status: 200 });
      expect(deviations).toHaveLength(1);
    },
  );

  test('the text of a refusal is kept, also of JSON that is not a message', async () => {
    const plain = call('7');
    plain.sink.onHead(404, {});
    plain.sink.onEnd('Not Found');
    expect(await plain.rpc.reply).toMatchObject({ kind: 'no-response', status: 404, text: 'Not Found' });
    const json = call('7');
    json.sink.onHead(404, {});
    json.sink.onMessage(Buffer.from('{"detail":"Not Found"}'), undefined);
    json.sink.onEnd('');
    expect(await json.rpc.reply).toMatchObject({ kind: 'no-response', text: '{"detail":"Not Found"}' });
  });

  test('the reply has the event id to resume from, and the pause before it', async () => {
    const { rpc, sink } = call('7');
    sink.onHead(200, {});
    sink.onPriming?.('a');
    sink.onRetry?.(50);
    sink.onMessage(Buffer.from('{"jsonrpc":"2.0","method":"n"}'), 'b');
    sink.onError(new TransportError('broken', 'gone'));
    expect(await rpc.reply).toMatchObject({ kind: 'no-response', lastEventId: 'b', retryMs: 50 });
  });

  test('a broken stream without an event id is a failure', async () => {
    const { rpc, sink } = call('7');
    sink.onHead(200, {});
    sink.onError(new TransportError('broken', 'gone'));
    expect(await rpc.reply).toMatchObject({ kind: 'failed', error: { failure: 'broken' } });
  });
});

describe('a request that meets a dead connection', () => {
  test.each([
    ['unreachable', false, 2],
    ['unreachable', true, 2],
    ['unanswered', true, 2],
    ['unanswered', false, 1],
    ['broken', true, 1],
    ['stalled', true, 1],
    ['too-large', true, 1],
  ] as const)('(%s, safe to repeat: %s) is sent %i times', async (failure, safe, times) => {
    const { rpc, sinks } = call('7', { safe });
    const fail = () => sinks.at(-1)?.onError(new TransportError(failure, 'x'));
    fail();
    fail();
    expect(sinks).toHaveLength(times);
    expect(await rpc.reply).toMatchObject({ kind: 'failed', error: { failure } });
  });

  test('is not repeated after it was aborted', async () => {
    const { rpc, sinks, aborted } = call('7', { safe: true });
    rpc.abort('the client left');
    sinks[0]?.onError(new TransportError('unreachable', 'x'));
    expect(sinks).toHaveLength(1);
    expect(aborted).toEqual([0]);
    expect(await rpc.reply).toMatchObject({
      kind: 'failed',
      error: { failure: 'aborted', message: 'the client left' },
    });
  });
});

test('bytes that are not valid UTF-8 are replaced and reported', async () => {
  const { rpc, sink, deviations } = call('7');
  const [before, after] = ['{"jsonrpc":"2.0","id":7,"result":{"a":"', '"}}'];
  sink.onMessage(Buffer.concat([Buffer.from(before), Buffer.from([0xff]), Buffer.from(after)]), undefined);
  const reply = await rpc.reply;
  if (reply.kind !== 'response') throw new Error(reply.kind);
  expect(reply.frame.bytes.toString()).toBe(`${before}\ufffd${after}`);
  expect(deviations).toEqual([expect.stringContaining('UTF-8')]);
});
