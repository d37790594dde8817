import { describe, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../../support/gateway.js';
import { keeper } from '../../support/keeper.js';
import { type ScriptedBackend, startLegacyBackend, startModernBackend } from '../../support/misbehave.js';
import { sleep, until } from '../../support/net.js';
import { legacy, modern, send } from '../../support/raw.js';
import { useVirtualTime } from '../../support/virtual-time.js';

useVirtualTime();

const keep = keeper();

const SEAL_KEY = Buffer.alloc(32, 7).toString('base64');
const echo = { name: 'echo', arguments: { a: 1 } };
const ends = (backend: ScriptedBackend) => backend.requests.filter(({ method }) => method === 'DELETE');
const gatewayTo = (backend: ScriptedBackend, sessions = {}, more = {}): Promise<TestGateway> =>
  keep(startGateway({ '/mcp': { backend: { url: backend.url }, sessions } }, more));

/** Answers of servers to DELETE; none of them matters. */
const ANSWERS: Record<string, number | 'broken' | 'silent'> = {
  '200': 200,
  '202': 202,
  '204': 204,
  '400': 400,
  '404': 404,
  '405': 405,
  '500': 500,
  'a broken connection': 'broken',
};

function answerDelete(backend: ScriptedBackend, answer: number | 'broken' | 'silent'): void {
  backend.on('DELETE', ({ res, session, destroy }) => {
    backend.sessions.delete(session ?? '');
    if (answer === 'broken') destroy();
    else if (answer !== 'silent') res.writeHead(answer).end();
    return undefined;
  });
}

describe('DELETE of a client', () => {
  test.each(Object.entries(ANSWERS))(
    'ends its session, whatever the backend says (%s)',
    async (_name, answer) => {
      const backend = await keep(startLegacyBackend());
      answerDelete(backend, answer);
      const gateway = await gatewayTo(backend);
      const session = await legacy(gateway.url());
      const id = [...backend.sessions][0];
      expect((await session.delete()).status).toBe(200);
      await until(() => ends(backend).length > 0, 'the DELETE to the backend');
      expect(ends(backend)[0]?.headers['mcp-session-id']).toBe(id);
      const again = await session.delete();
      expect(again.status).toBe(404);
      expect((await session.request('tools/call', echo, { id: 'x' })).json).toMatchObject({
        id: 'x',
        error: { code: -32001 },
      });
      expect((await session.listen()).status).toBe(404);
      await sleep(50);
      expect(ends(backend)).toHaveLength(1);
    },
  );

  test('does not wait for a backend that is silent, or away', async () => {
    const backend = await keep(startLegacyBackend());
    const gateway = await gatewayTo(backend);
    const first = await legacy(gateway.url());
    const second = await legacy(gateway.url());
    answerDelete(backend, 'silent');
    const before = Date.now();
    expect((await first.delete()).status).toBe(200);
    await backend.stop();
    expect((await second.delete()).status).toBe(200);
    expect(Date.now() - before).toBeLessThan(1_000);
    expect((await second.delete()).status).toBe(404);
  });

  test('ends the calls in flight with an error under their ids, and the stream', async () => {
    const backend = await keep(startLegacyBackend({ on: { 'tools/call': () => new Promise(() => {}) } }));
    const gateway = await gatewayTo(backend);
    const session = await legacy(gateway.url());
    const stream = await session.listen();
    const calls = ['a', 'b'].map((id) => session.request('tools/call', echo, { id }));
    await until(() => backend.received('tools/call').length === 2, 'the calls');
    expect((await session.delete()).status).toBe(200);
    for (const [i, call] of calls.entries()) {
      const { json } = await call;
      expect(json).toMatchObject({
        id: ['a', 'b'][i],
        error: { message: expect.stringContaining('session was ended') },
      });
    }
    await stream.done;
    await until(() => backend.received('notifications/cancelled').length === 2, 'the cancellations');
    await until(() => ends(backend).length > 0, 'the DELETE');
    await sleep(50);
    expect(ends(backend)).toHaveLength(1);
  });

  test('may come twice at once, and ends the session of the backend once', async () => {
    const backend = await keep(startLegacyBackend());
    const gateway = await gatewayTo(backend);
    const session = await legacy(gateway.url());
    const statuses = (await Promise.all([session.delete(), session.delete(), session.delete()])).map(
      (r) => r.status,
    );
    expect(statuses.sort()).toEqual([200, 404, 404]);
    await until(() => ends(backend).length > 0, 'the DELETE');
    await sleep(50);
    expect(ends(backend)).toHaveLength(1);
  });

  test('of a session that never had one at the backend is as good', async () => {
    for (const backend of [
      await keep(startLegacyBackend({ sessions: false })),
      await keep(startModernBackend()),
    ]) {
      const gateway = await gatewayTo(backend);
      const session = await legacy(gateway.url());
      expect((await session.request('tools/call', echo)).json.result.structuredContent).toEqual({ a: 1 });
      expect((await session.delete()).status).toBe(200);
      expect((await session.delete()).status).toBe(404);
      await sleep(30);
      expect(ends(backend)).toEqual([]);
    }
  });

  test('is answered with 405 to modern clients, also to one that shows the id of a session', async () => {
    const backend = await keep(startLegacyBackend());
    const gateway = await gatewayTo(backend);
    const session = await legacy(gateway.url());
    for (const headers of [{}, session.headers]) {
      const sent = { ...headers, 'mcp-protocol-version': '2026-07-28' };
      const refused = await send(gateway.url(), { method: 'DELETE', headers: sent });
      expect(refused.status).toBe(405);
      expect(refused.headers.allow).toBe('POST');
    }
    expect((await session.request('tools/call', echo)).status).toBe(200);
  });

  test('many times leaves no session behind', async () => {
    const backend = await keep(startLegacyBackend());
    const gateway = await gatewayTo(backend);
    for (let round = 0; round < 4; round++) {
      await Promise.all(
        Array.from({ length: 50 }, async () => {
          const session = await legacy(gateway.url(), { initialized: false });
          expect((await session.delete()).status).toBe(200);
        }),
      );
      backend.requests.length = 0;
    }
    await until(() => backend.sessions.size === 0, 'the end of all sessions');
  });
});

describe('a session on which nothing happens', () => {
  test('is ended at the backend, whatever that says', async () => {
    const backends = await Promise.all(Object.keys(ANSWERS).map(() => keep(startLegacyBackend())));
    const routes = backends.map(({ url }, i) => ({
      path: `/${i}`,
      backend: { url },
      sessions: { idle: '300ms' },
    }));
    const gateway = await keep(startGateway(routes));
    await Promise.all(
      Object.entries(ANSWERS).map(async ([name, answer], i) => {
        const backend = backends[i] as ScriptedBackend;
        answerDelete(backend, answer);
        await legacy(gateway.url(`/${i}`));
        await modern(gateway.url(`/${i}`), 'tools/call', echo);
        await until(() => ends(backend).length === 2, `both ends (${name})`);
        expect(new Set(ends(backend).map(({ headers }) => headers['mcp-session-id'])).size, name).toBe(2);
        await sleep(400);
        expect(ends(backend), name).toHaveLength(2);
      }),
    );
  });

  test('is there again for its client when it comes back', async () => {
    const backend = await keep(startLegacyBackend());
    const gateway = await gatewayTo(backend, { idle: '100ms' });
    const session = await legacy(gateway.url());
    const call = () => modern(gateway.url(), 'tools/call', echo);
    await call();
    for (let i = 0; i < 2; i++) {
      await until(() => backend.sessions.size === 0, 'the end of both');
      expect((await session.request('tools/call', echo)).json.result.structuredContent).toEqual({ a: 1 });
      expect((await call()).json.result.structuredContent).toEqual({ a: 1 });
    }
  });

  test('is not one that holds a stream, or has a call in flight', async () => {
    let finish = () => {};
    const backend = await keep(
      startLegacyBackend({
        on: {
          'tools/call': () =>
            new Promise((resolve) => {
              finish = () => resolve({ result: { content: [] } });
            }),
        },
      }),
    );
    const gateway = await gatewayTo(backend, { idle: '100ms' });
    const streaming = await legacy(gateway.url());
    const stream = await streaming.listen();
    const calling = await legacy(gateway.url());
    const call = calling.request('tools/call', echo);
    await sleep(500);
    expect(stream.ended).toBe(false);
    expect(ends(backend)).toEqual([]);
    finish();
    expect((await call).json.result).toEqual({ content: [] });
    stream.abort();
    await until(() => ends(backend).length === 2, 'the ends');
  });
});

describe('the end of the gateway', () => {
  test('ends its sessions at the backend, and those of clients go on after the restart', async () => {
    const backend = await keep(startLegacyBackend());
    const gateway = await gatewayTo(backend, {}, { sealKeys: [SEAL_KEY] });
    const session = await legacy(gateway.url());
    const stream = await session.listen();
    await modern(gateway.url(), 'tools/call', echo);
    expect(backend.sessions.size).toBe(2);
    await gateway.stop();
    expect(backend.sessions.size).toBe(0);
    expect(ends(backend)).toHaveLength(2);
    await until(() => stream.ended, 'the end of the stream');
    await gateway.start();
    expect((await session.request('tools/call', echo)).json.result.structuredContent).toEqual({ a: 1 });
  });

  test('does not wait long for a backend that is silent about it', async () => {
    const backend = await keep(startLegacyBackend());
    answerDelete(backend, 'silent');
    const gateway = await gatewayTo(backend);
    await legacy(gateway.url());
    const before = Date.now();
    await gateway.stop();
    expect(Date.now() - before).toBeLessThan(5_000);
  });
});
