import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Cell, type Rig, raw, startCell } from '../../support/cells.js';
import { until } from '../../support/net.js';
import { legacy, modernRequest, open, send } from '../../support/raw.js';
import { useVirtualTime } from '../../support/virtual-time.js';

useVirtualTime();

const BATCHES = { version: '2025-03-26' };
const call = (id: unknown, text: string) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name: 'echo', arguments: { text } },
});
const NOTE = { jsonrpc: '2.0', method: 'notifications/roots/list_changed' };
const byId = (answers: { id: unknown }[]) =>
  [...answers].sort((a, b) => JSON.stringify(a.id).localeCompare(JSON.stringify(b.id)));

describe.each(['LL', 'LM'] as const)('%s: a batch on a session of 2025-03-26', (cell: Cell) => {
  let rig: Rig;
  beforeAll(async () => {
    rig = await startCell(cell, { handshake: BATCHES });
    await rig.session();
  });
  afterAll(() => rig.close());
  const post = async (body: unknown, headers?: Record<string, string>) =>
    (await rig.session()).post(body, headers);

  test('has each member answered, in one array', async () => {
    const { status, json } = await post([call(1, 'a'), call('1', 'b'), NOTE, call(0, 'c')]);
    expect(status).toBe(200);
    const texts = byId(json).map(
      ({ id, result }: { id: unknown; result?: { structuredContent: unknown } }) => [
        id,
        result?.structuredContent,
      ],
    );
    expect(texts).toEqual([
      ['1', { text: 'b' }],
      [0, { text: 'c' }],
      [1, { text: 'a' }],
    ]);
    // Each member is a message of its own to the backend.
    for (const { json: sent } of rig.backend.requests) expect(Array.isArray(sent)).toBe(false);
  });

  test('has its members carried out at the same time', async () => {
    const gates: (() => void)[] = [];
    rig.on('tools/call', async () => {
      await new Promise<void>((open) => gates.push(open));
      return rig.result('{"content":[]}');
    });
    const answer = post([call(1, ''), call(2, ''), call(3, '')]);
    await until(() => gates.length === 3, 'all members to be on their way');
    for (const open of gates) open();
    expect((await answer).json).toHaveLength(3);
    rig.on('tools/call', undefined);
  });

  test('has faults of single members answered beside the others', async () => {
    const { status, json } = await post([
      call(1, 'a'),
      7,
      { jsonrpc: '2.0', id: 2 },
      { jsonrpc: '1.0', id: 3, method: 'ping' },
      { jsonrpc: '2.0', id: null, method: 'ping' },
      { jsonrpc: '2.0', id: 5, method: 'initialize', params: {} },
      { jsonrpc: '2.0', id: 6, method: 'ping' },
      call(1, 'again'),
    ]);
    expect(status).toBe(200);
    const codes = json.map(({ id, error }: { id: unknown; error?: { code: number } }) => [id, error?.code]);
    expect(codes).toHaveLength(8);
    expect(codes).toEqual(
      expect.arrayContaining([
        [1, undefined],
        [null, -32600],
        [2, -32600],
        [3, -32600],
        [5, -32600],
        [6, undefined],
        [1, -32600],
      ]),
    );
  });

  test('of notifications and answers alone is taken without an answer', async () => {
    const { status, text } = await post([NOTE, { jsonrpc: '2.0', id: 'gw:1', result: {} }]);
    expect([status, text]).toEqual([202, '']);
  });

  test('keeps its numbers and ids as they are written', async () => {
    const { text } = await post(
      '[{"jsonrpc":"2.0","id":9007199254740993,"method":"tools/call","params":{"name":"echo","arguments":{"d":1.0}}}]',
    );
    expect(text).toContain('"id":9007199254740993');
    expect(rig.sent('tools/call')).toContain('"arguments":{"d":1.0}');
  });

  test('is answered as an event stream where something is to be said before the answers', async () => {
    rig.on('tools/call', ({ id, params, frame, stream }) => {
      const events = stream();
      const { progressToken } = params._meta;
      events.event({
        jsonrpc: '2.0',
        method: 'notifications/progress',
        params: { progressToken, progress: 1 },
      });
      events.event({ ...frame(rig.result('{"content":[]}')), id });
      return void events.end() as undefined;
    });
    const withToken = (id: number) => {
      const { params, ...rest } = call(id, '');
      return { ...rest, params: { ...params, _meta: { progressToken: id } } };
    };
    const { events, messages } = await post([withToken(1), withToken(2)]);
    expect(messages.map(({ params }) => params.progressToken).sort()).toEqual([1, 2]);
    const answers = events.flatMap(({ json }) => (json.result ? [json.id] : []));
    expect(answers.sort()).toEqual([1, 2]);
    rig.on('tools/call', undefined);
  });

  test('has each answer as soon as it is there, once it is a stream', async () => {
    const gates: (() => void)[] = [];
    rig.on('tools/call', async ({ params, frame, stream, session: own }) => {
      const events = stream({ 'mcp-session-id': own ?? '' });
      events.event({
        jsonrpc: '2.0',
        method: 'notifications/progress',
        params: { progressToken: params._meta.progressToken, progress: 1 },
      });
      await new Promise<void>((go) => gates.push(go));
      events.event(frame(rig.result('{"content":[]}')));
      events.end();
      return undefined;
    });
    const session = await rig.session();
    const withToken = (id: number) => {
      const { params, ...rest } = call(id, '');
      return { ...rest, params: { ...params, _meta: { progressToken: id } } };
    };
    const stream = await open(rig.gateway.url(), {
      headers: session.headers,
      body: [withToken(1), withToken(2)],
    });
    await until(() => gates.length === 2 && stream.events.length === 2, 'the progress of both');
    gates[0]?.();
    await until(() => stream.events.length === 3, 'the first answer');
    expect(stream.events[2]?.json.result).toBeDefined();
    expect(stream.ended).toBe(false);
    gates[1]?.();
    await stream.done;
    expect(stream.events.flatMap(({ json }) => (json.result ? [json.id] : [])).sort()).toEqual([1, 2]);
    rig.on('tools/call', undefined);
  });

  test('may be read as a stream by a client that takes nothing else', async () => {
    const { events, headers } = await post([call(1, 'a'), call(2, 'b')], { accept: 'text/event-stream' });
    expect(headers['content-type']).toMatch(/^text\/event-stream/);
    const answers = events.flatMap(({ json }) => json);
    expect(byId(answers).map(({ id }) => id)).toEqual([1, 2]);
  });

  test('has the answers that there are, when the backend fails on one', async () => {
    rig.on('tools/call', ({ params, destroy }) => {
      if (params.arguments.text === 'bad') return void destroy() as undefined;
      return rig.result('{"content":[]}');
    });
    const { status, json } = await post([call(1, 'good'), call(2, 'bad')]);
    expect(status).toBe(200);
    expect(byId(json)).toMatchObject([
      { id: 1, result: {} },
      { id: 2, error: { code: -32603 } },
    ]);
    rig.on('tools/call', undefined);
  });

  test.each([
    ['is empty', '[]'],
    ['has more than a hundred members', JSON.stringify(Array.from({ length: 101 }, (_, n) => call(n, '')))],
  ])('is refused whole when it %s', async (_what, body) => {
    const before = rig.backend.requests.length;
    const { status, json } = await post(body);
    expect(status).toBe(400);
    expect(json).toMatchObject({ id: null, error: { code: -32600 } });
    expect(rig.backend.requests.length).toBe(before);
  });

  test('has a call in it cancelled like any other', async () => {
    rig.on('tools/call', () => undefined);
    const answer = post([call(71, ''), { jsonrpc: '2.0', id: 72, method: 'ping' }]);
    await until(
      () => rig.backend.received('tools/call').at(-1)?.json.params.arguments.text === '',
      'the call',
    );
    await (await rig.session()).notify('notifications/cancelled', { requestId: 71 });
    const { json } = await answer;
    expect(json).toEqual(expect.arrayContaining([expect.objectContaining({ id: 72, result: {} })]));
    rig.on('tools/call', undefined);
  });
});

describe('a batch in any other place', () => {
  test.each(['2024-11-05', '2025-06-18', '2025-11-25'])(
    'is refused on a session of %s, and nothing reaches the backend',
    async (version) => {
      const rig = await startCell('LL');
      try {
        const session = await legacy(rig.gateway.url(), { version });
        const before = rig.backend.requests.length;
        for (const body of [[call(1, 'a'), call(2, 'b')], [NOTE], [1], []]) {
          const { status, json } = await session.post(body);
          expect(status).toBe(400);
          expect(json).toMatchObject({ id: null, error: { code: -32600 } });
        }
        expect(rig.backend.requests.length).toBe(before);
      } finally {
        await rig.close();
      }
    },
  );

  test.each(['ML', 'MM'] as const)('%s: is refused from a modern client', async (cell) => {
    const rig = await startCell(cell);
    try {
      await rig.call('tools/list');
      const before = rig.backend.requests.length;
      const { body, headers } = modernRequest('tools/list');
      const message = raw(String(body));
      for (const batch of [`[${message.text}]`, `[${message.text},${message.text}]`, '[]', '[1]']) {
        for (const given of [headers, {}]) {
          const { status, json } = await send(rig.gateway.url(), { headers: given ?? {}, body: batch });
          expect(status).toBe(400);
          expect(json).toMatchObject({ id: null, error: { code: -32600 } });
        }
      }
      expect(rig.backend.requests.length).toBe(before);
    } finally {
      await rig.close();
    }
  });

  test('is refused before there is a session, also with initialize in it', async () => {
    const rig = await startCell('LL');
    try {
      const initialize = {
        jsonrpc: '2.0',
        id: 1,
        method: 'initialize',
        params: { protocolVersion: '2025-03-26', capabilities: {}, clientInfo: { name: 'a', version: '1' } },
      };
      for (const body of [[initialize], [initialize, call(2, '')], [call(2, '')]]) {
        const { status, json } = await send(rig.gateway.url(), { body });
        expect(status).toBe(400);
        expect(json).toMatchObject({ id: null, error: { code: -32600 } });
      }
      expect(rig.backend.received('initialize')).toEqual([]);
    } finally {
      await rig.close();
    }
  });
});
