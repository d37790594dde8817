import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { CELLS, type Cell, type Rig, raw, startCell } from '../../support/cells.js';
import type { ReceivedRequest } from '../../support/net.js';
import { sleep, until } from '../../support/net.js';
import { legacy, modernRequest, send } from '../../support/raw.js';
import { useVirtualTime } from '../../support/virtual-time.js';

useVirtualTime();

const METHODS = [
  ['tools/call', { name: 'slow', arguments: {} }],
  ['prompts/get', { name: 'p' }],
  ['resources/read', { uri: 'file:///a' }],
  ['completion/complete', {}],
] as const;

/** Waits for the request with this method that is the next one to arrive. */
const nextRequest = async (rig: Rig, method: string, act: () => unknown): Promise<ReceivedRequest> => {
  const before = rig.backend.received(method).length;
  act();
  return until(() => rig.backend.received(method)[before], `${method} at the backend`);
};

/** How a client of either era says that it does not want the answer any more. */
async function cancel(rig: Rig, id: string, stop: () => void): Promise<void> {
  if (rig.modernClient) stop();
  else {
    const session = await rig.session();
    const body = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":${id},"reason":"enough"}}`;
    expect((await session.post(body)).status).toBe(202);
  }
}

/** The backend's side of a cancellation: a message on the session, or the end of the connection. */
async function sawCancel(rig: Rig, request: ReceivedRequest): Promise<void> {
  if (rig.modernBackend) {
    await until(() => request.disconnected, 'the end of the connection', 1_000);
    return;
  }
  const note = await until(
    () =>
      rig.backend
        .received('notifications/cancelled')
        .find(({ json }) => json.params.requestId === request.json.id),
    'the cancellation',
    1_000,
  );
  expect(note.headers['mcp-session-id']).toBe(request.headers['mcp-session-id']);
}

describe.each(CELLS)('%s', (cell: Cell) => {
  let rig: Rig;
  beforeAll(async () => {
    rig = await startCell(cell);
    await rig.call('tools/list');
    for (const [method] of METHODS) rig.on(method, () => undefined);
  });
  afterAll(() => rig.close());

  describe.each(METHODS)('%s %j', (method, params) => {
    test.each(['101', '"101"', '0', '""', '9007199254740993'])(
      'with the id %s is cancelled at the backend, under the id that the backend knows',
      async (id) => {
        const controller = new AbortController();
        let answer: Promise<unknown> | undefined;
        const request = await nextRequest(rig, method, () => {
          answer = rig
            .call(method, params, { id: raw(id), signal: controller.signal })
            .catch((error: Error) => error);
        });
        const startedAt = Date.now();
        await cancel(rig, id, () => controller.abort());
        await sawCancel(rig, request);
        expect(Date.now() - startedAt).toBeLessThan(500);
        await answer;
      },
    );
  });

  test('a cancellation concerns its own call, and no other in flight', async () => {
    const controllers = [new AbortController(), new AbortController()];
    const calls: Promise<unknown>[] = [];
    const requests: ReceivedRequest[] = [];
    for (const [index, { signal }] of controllers.entries()) {
      const request = nextRequest(rig, 'tools/call', () => {
        calls.push(rig.call('tools/call', { name: 'slow' }, { id: 200 + index, signal }).catch(() => 'gone'));
      });
      requests.push(await request);
    }
    await cancel(rig, '200', () => controllers[0]?.abort());
    await sawCancel(rig, requests[0] as ReceivedRequest);
    await sleep(50);
    expect(requests[1]?.disconnected).toBe(false);
    await cancel(rig, '201', () => controllers[1]?.abort());
    await sawCancel(rig, requests[1] as ReceivedRequest);
    await Promise.all(calls);
  });

  test('an answer that comes too late goes to nobody, and the next call works', async () => {
    rig.on('tools/call', async ({ params }) => {
      if (params.name === 'late') await sleep(150);
      return rig.result(`{"content":[],"structuredContent":{"name":"${params.name}"}}`);
    });
    const controller = new AbortController();
    const late = rig
      .call('tools/call', { name: 'late' }, { id: 300, signal: controller.signal })
      .catch(() => undefined);
    await until(() => rig.sent('tools/call').includes('"late"'), 'the call');
    await cancel(rig, '300', () => controller.abort());
    const next = await rig.call('tools/call', { name: 'next' }, { id: 301 });
    expect(next.json).toMatchObject({ id: 301, result: { structuredContent: { name: 'next' } } });
    const answer = await late;
    if (answer !== undefined) expect(answer.json?.result).toBeUndefined();
    await sleep(150);
    rig.on('tools/call', () => undefined);
  });
});

describe.each(['LL', 'LM'] as const)('%s', (cell) => {
  test('a cancellation of what is not in flight is taken, and goes nowhere', async () => {
    const rig = await startCell(cell);
    try {
      const session = await rig.session();
      await session.request('tools/call', { name: 'echo' }, { id: 5 });
      const before = rig.backend.requests.length;
      for (const params of [
        '{"requestId":5}',
        '{"requestId":"5"}',
        '{"requestId":999}',
        '{"requestId":null}',
        '{}',
      ]) {
        const body = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":${params}}`;
        expect((await session.post(body)).status).toBe(202);
      }
      expect((await session.post('{"jsonrpc":"2.0","method":"notifications/cancelled"}')).status).toBe(202);
      expect(rig.backend.requests.length).toBe(before);
    } finally {
      await rig.close();
    }
  });

  test('the type of the id counts, and so does the session', async () => {
    const rig = await startCell(cell);
    try {
      rig.on('tools/call', () => undefined);
      const session = await rig.session();
      let call: Promise<unknown> | undefined;
      const request = await nextRequest(rig, 'tools/call', () => {
        call = session.request('tools/call', { name: 'slow' }, { id: 7 }).catch(() => undefined);
      });
      await session.notify('notifications/cancelled', { requestId: '7' });
      const stranger = await legacy(rig.gateway.url());
      await stranger.notify('notifications/cancelled', { requestId: 7 });
      await sleep(60);
      expect(rig.backend.received('notifications/cancelled')).toEqual([]);
      expect(request.disconnected).toBe(false);
      await session.notify('notifications/cancelled', { requestId: 7 });
      await call;
    } finally {
      await rig.close();
    }
  });

  // A legacy client that loses its connection has cancelled nothing (basic/transports).
  test('a client that goes away has not cancelled', async () => {
    const rig = await startCell(cell);
    try {
      let finished = false;
      rig.on('tools/call', async () => {
        await sleep(200);
        finished = true;
        return rig.result('{"content":[]}');
      });
      const session = await rig.session();
      const controller = new AbortController();
      const request = await nextRequest(rig, 'tools/call', () => {
        session
          .request('tools/call', { name: 'slow' }, { id: 8, signal: controller.signal })
          .catch(() => undefined);
      });
      controller.abort();
      await until(() => finished, 'the tool to finish');
      expect(request.disconnected).toBe(false);
      expect(rig.backend.received('notifications/cancelled')).toEqual([]);
      rig.on('tools/call', undefined);
      expect((await session.request('tools/call', { name: 'echo' }, { id: 8 })).json.result).toBeDefined();
    } finally {
      await rig.close();
    }
  });

  test('the stream of a cancelled call ends, and holds no result', async () => {
    const rig = await startCell(cell);
    try {
      rig.on('tools/call', () => undefined);
      const session = await rig.session();
      const answer = session.request('tools/call', { name: 'slow' }, { id: 9 });
      await until(() => rig.backend.received('tools/call').length === 1, 'the call');
      await session.notify('notifications/cancelled', { requestId: 9 });
      expect((await answer).json?.result).toBeUndefined();
    } finally {
      await rig.close();
    }
  });
});

describe.each(['ML', 'MM'] as const)('%s', (cell) => {
  test('a POSTed cancellation is taken and dropped: this era has none over HTTP', async () => {
    const rig = await startCell(cell);
    try {
      rig.on('tools/call', () => undefined);
      const controller = new AbortController();
      const call = rig
        .call('tools/call', { name: 'slow' }, { id: 7, signal: controller.signal })
        .catch(() => 'gone');
      await until(() => rig.backend.received('tools/call').length === 1, 'the call');
      const request = modernRequest('notifications/cancelled', { requestId: 7 });
      const { id: _id, ...message } = JSON.parse(String(request.body));
      expect((await send(rig.gateway.url(), { ...request, body: message })).status).toBe(202);
      await sleep(50);
      expect(rig.backend.received('notifications/cancelled')).toEqual([]);
      controller.abort();
      expect(await call).toBe('gone');
    } finally {
      await rig.close();
    }
  });

  test('a client that leaves in the middle of the stream has cancelled', async () => {
    const rig = await startCell(cell);
    try {
      rig.on('tools/call', ({ params, stream }) => {
        const { progressToken } = params._meta;
        stream().event({
          jsonrpc: '2.0',
          method: 'notifications/progress',
          params: { progressToken, progress: 1 },
        });
        return undefined;
      });
      const stream = await rig.open('tools/call', { name: 'slow', _meta: { progressToken: 1 } });
      await stream.next();
      stream.abort();
      const request = await until(() => rig.backend.received('tools/call')[0], 'the call');
      await sawCancel(rig, request);
      // The backend's own connection is given back, too: servers do not end the stream of a cancelled call.
      await until(() => request.disconnected, 'the end of the connection');
    } finally {
      await rig.close();
    }
  });
});

test('ML: a client that leaves before there is a session has its call begun by nobody', async () => {
  const rig = await startCell('ML', { route: { backend: { era: 'legacy' } } });
  try {
    let shake: () => void = () => {};
    rig.on('initialize', async ({ params }) => {
      await new Promise<void>((resolve) => {
        shake = resolve;
      });
      return {
        result: {
          protocolVersion: params.protocolVersion,
          capabilities: { tools: {} },
          serverInfo: { name: 's', version: '1' },
        },
      };
    });
    const controller = new AbortController();
    const call = rig.call('tools/call', { name: 'echo' }, { signal: controller.signal }).catch(() => 'gone');
    await until(() => rig.backend.received('initialize').length === 1, 'the handshake');
    controller.abort();
    expect(await call).toBe('gone');
    shake();
    await until(() => rig.backend.received('notifications/initialized').length === 1, 'the session');
    await sleep(50);
    expect(rig.backend.received('tools/call')).toEqual([]);
    // The handshake itself is never cancelled.
    expect(rig.backend.received('notifications/cancelled')).toEqual([]);
    // It serves the next call.
    expect((await rig.call('tools/call', { name: 'echo', arguments: {} })).json.result).toBeDefined();
    expect(rig.backend.received('initialize')).toHaveLength(1);
  } finally {
    await rig.close();
  }
});
