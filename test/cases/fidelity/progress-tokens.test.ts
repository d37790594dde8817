import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CELLS, type Rig, raw, startCell } from '../../support/cells.js';
import { until } from '../../support/net.js';

const TOKENS = ['0', '1', '-5', '9007199254740993', '""', '"tok"', '"1"', '"\\u0041 é"'];
const tokenIn = (text: string) => /"progressToken":\s*("(?:[^"\\]|\\.)*"|[^,}]*)/.exec(text)?.[1];

describe.each(CELLS)('%s', (cell) => {
  let rig: Rig;
  beforeAll(async () => {
    rig = await startCell(cell, { script: { capabilities: { tools: {}, logging: {} } } });
  });
  afterAll(() => rig.close());

  /** Lets the backend report progress under the token that it was given, then answer. */
  function report(more = '') {
    rig.on('tools/call', ({ id, params, frame, stream }) => {
      const events = stream();
      const token = JSON.stringify(params?._meta?.progressToken);
      for (const progress of ['1', '2.0']) {
        events.event(
          `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":${progress},"progressToken":${token},"message":"\\u0041"${more}}}`,
        );
      }
      events.event({ ...frame(rig.result('{"content":[]}')), id });
      return void events.end() as undefined;
    });
  }
  const call = (token: string) =>
    rig.call('tools/call', { name: 'slow', arguments: {}, _meta: { progressToken: raw(token) } });

  test.each(TOKENS)('reports progress under the token %s as the client wrote it', async (token) => {
    report();
    const { events } = await call(token);
    expect(events.map(({ data }) => tokenIn(data))).toEqual([token, token, undefined]);
  });

  test('leaves the rest of a progress notification as it is', async () => {
    report(',"total":3.0,"_meta":{"com.example/x":1.0}');
    const { events } = await call('"t"');
    expect(events[1]?.data).toContain('"progress":2.0,');
    expect(events[1]?.data).toContain(',"message":"\\u0041","total":3.0,"_meta":{"com.example/x":1.0}');
  });

  test('keeps the tokens of calls apart that use the same one at once', async () => {
    const gates: (() => void)[] = [];
    rig.on('tools/call', async ({ id, params, frame, stream }) => {
      const events = stream();
      const { progressToken } = params._meta;
      await new Promise<void>((resolve) => gates.push(resolve));
      events.event({
        jsonrpc: '2.0',
        method: 'notifications/progress',
        params: { progressToken, progress: params.arguments.n },
      });
      events.event({ ...frame(rig.result('{"content":[]}')), id });
      return void events.end() as undefined;
    });
    const calls = [1, 2].map((n) =>
      rig.call('tools/call', { name: 'slow', arguments: { n }, _meta: { progressToken: 7 } }),
    );
    await until(() => gates.length === 2, 'both calls');
    for (const open of gates.reverse()) open();
    const answers = await Promise.all(calls);
    expect(answers.map(({ messages }) => messages.map(({ params }) => params))).toEqual([
      [{ progressToken: 7, progress: 1 }],
      [{ progressToken: 7, progress: 2 }],
    ]);
    const sent = rig.backend.received('tools/call').slice(-2);
    const tokens = new Set(sent.map(({ json }) => json.params._meta.progressToken));
    // On a legacy session they must differ; of a modern backend each request is a world of its own.
    expect(tokens.size).toBe(rig.modernBackend ? 1 : 2);
  });

  test('passes progress under the token of this call alone', async () => {
    rig.on('tools/call', ({ id, params, frame, stream }) => {
      const events = stream();
      const { progressToken } = params._meta;
      for (const [index, token] of [progressToken, 424242, 'another', null, progressToken].entries()) {
        events.event({
          jsonrpc: '2.0',
          method: 'notifications/progress',
          params: { progressToken: token, progress: index },
        });
      }
      events.event({ ...frame(rig.result('{"content":[]}')), id });
      return void events.end() as undefined;
    });
    const { messages } = await call('"t"');
    expect(messages.map(({ params }) => params)).toEqual([
      { progressToken: 't', progress: 0 },
      { progressToken: 't', progress: 4 },
    ]);
  });

  test('passes no progress to a client that asked for none', async () => {
    rig.on('tools/call', ({ id, frame, stream }) => {
      const events = stream();
      for (const progressToken of [id, 0, 'x'])
        events.event({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken } });
      events.event({ jsonrpc: '2.0', method: 'notifications/progress' });
      events.event({ ...frame(rig.result('{"content":[]}')), id });
      return void events.end() as undefined;
    });
    const { messages, json } = await rig.call('tools/call', { name: 'slow' });
    expect(json.result).toBeDefined();
    expect(messages).toEqual([]);
  });
});

test.each(['LL', 'ML'] as const)(
  '%s: a token is known again when the backend spells it otherwise',
  async (cell) => {
    const rig = await startCell(cell);
    try {
      rig.on('tools/call', async ({ id, params, frame, stream, session }) => {
        const events = stream();
        const { progressToken } = params._meta;
        const note = (token: unknown, progress: number) => ({
          jsonrpc: '2.0',
          method: 'notifications/progress',
          params: { progressToken: token, progress },
        });
        events.event(note(String(progressToken), 1));
        events.event(note(raw(`${progressToken}.0`), 2));
        // Some servers send it on the session's own stream.
        if (cell === 'ML') {
          const getStream = await until(
            () => rig.backend.streams.find((one) => one.session === session),
            'the feed',
          );
          getStream.stream.event(note(String(progressToken), 3));
          getStream.stream.event(note('999', 4));
          await new Promise((resolve) => setTimeout(resolve, 50));
        }
        events.event({ ...frame(rig.result('{"content":[]}')), id });
        return void events.end() as undefined;
      });
      const { messages } = await rig.call('tools/call', { name: 'slow', _meta: { progressToken: 't' } });
      // Two streams keep no order between them.
      const seen = messages.map(({ params }) => params).sort((a, b) => a.progress - b.progress);
      expect(seen).toEqual(
        [1, 2, 3].slice(0, cell === 'ML' ? 3 : 2).map((progress) => ({ progressToken: 't', progress })),
      );
    } finally {
      await rig.close();
    }
  },
);
