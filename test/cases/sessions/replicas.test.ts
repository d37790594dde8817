import { createHmac } from 'node:crypto';
import type { Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import { connect } from '../../support/clients.js';
import { startGateway } from '../../support/gateway.js';
import { keeper } from '../../support/keeper.js';
import {
  type ScriptedBackend,
  startBackend,
  startLegacyBackend,
  startModernBackend,
} from '../../support/misbehave.js';
import { type Loose, sleep, until } from '../../support/net.js';
import { startV1, startV2 } from '../../support/peers/index.js';
import { type LegacySession, legacy, modern, open as openStream, send } from '../../support/raw.js';
import { startTurntable } from '../../support/turntable.js';
import { useVirtualTime } from '../../support/virtual-time.js';

useVirtualTime();

const keep = keeper();

const KEY = ['one', 'two', 'three'].map((name) => createHmac('sha256', name).digest('base64'));
const echo = { name: 'echo', arguments: { a: 1 } };

/** A request on a session, to any of the replicas. */
const at = (
  url: string,
  session: LegacySession,
  method = 'tools/call',
  params: Loose = echo,
  id: Loose = 'r',
) => send(url, { headers: session.headers, body: { jsonrpc: '2.0', id, method, params } });
const ok = { result: { structuredContent: { a: 1 } } };

describe('two gateways with one key', () => {
  test('serve the sessions of each other, on the one session of the backend', async () => {
    const backend = await keep(startLegacyBackend());
    const a = await keep(startGateway({ '/mcp': backend.url }, { sealKeys: [KEY[0]] }));
    const b = await keep(startGateway({ '/mcp': backend.url }, { sealKeys: [KEY[0]] }));
    const session = await legacy(a.url(), { version: '2025-06-18' });
    for (let i = 0; i < 6; i++) {
      const { status, headers, json } = await at(i % 2 === 0 ? b.url() : a.url(), session);
      expect(status).toBe(200);
      expect(json).toMatchObject(ok);
      expect(headers['mcp-session-id'] ?? session.id).toBe(session.id);
    }
    expect(backend.received('initialize')).toHaveLength(1);
    for (const { headers } of backend.received('tools/call')) {
      expect(headers).toMatchObject({
        'mcp-session-id': [...backend.sessions][0],
        'mcp-protocol-version': '2025-06-18',
      });
    }
    // Requests of both may be in flight at once: no id may be used twice.
    const ids = backend.requests
      .map(({ json }) => json)
      .filter((json) => json?.method === 'tools/call')
      .map(({ id }) => id);
    expect(new Set(ids).size).toBe(6);
  });

  test('end a session at either, with the session of the backend', async () => {
    const backend = await keep(startLegacyBackend());
    const a = await keep(startGateway({ '/mcp': backend.url }, { sealKeys: [KEY[0]] }));
    const b = await keep(startGateway({ '/mcp': backend.url }, { sealKeys: [KEY[0]] }));
    const session = await legacy(a.url());
    expect((await send(b.url(), { method: 'DELETE', headers: session.headers })).status).toBe(200);
    await until(() => backend.sessions.size === 0, 'the DELETE to the backend');
    expect(backend.requests.filter(({ method }) => method === 'DELETE')).toHaveLength(1);
    expect((await at(b.url(), session)).status).toBe(404);
  });

  test('carry the stream, notifications and answers of a session at either', async () => {
    const backend = await keep(startLegacyBackend());
    const a = await keep(startGateway({ '/mcp': backend.url }, { sealKeys: [KEY[0]] }));
    const b = await keep(startGateway({ '/mcp': backend.url }, { sealKeys: [KEY[0]] }));
    const session = await legacy(a.url(), { capabilities: { roots: { listChanged: true } } });
    const notify = { jsonrpc: '2.0', method: 'notifications/roots/list_changed' };
    expect((await send(b.url(), { headers: session.headers, body: notify })).status).toBe(202);
    await until(() => backend.received('notifications/roots/list_changed').length === 1, 'the notification');

    const headers = { ...session.headers, accept: 'text/event-stream' };
    const stream = await openStream(b.url(), { headers });
    const opened = await until(() => backend.streams[0], 'the stream to the backend');
    expect(opened.session).toBe([...backend.sessions][0]);
    opened.stream.event({ jsonrpc: '2.0', id: 5, method: 'roots/list' });
    expect((await stream.next()).json).toMatchObject({ id: 5, method: 'roots/list' });
    const answer = { jsonrpc: '2.0', id: 5, result: { roots: [{ uri: 'file:///a' }] } };
    expect((await send(b.url(), { headers: session.headers, body: answer })).status).toBe(202);
    const arrived = await until(() => backend.requests.find(({ json }) => json?.result?.roots), 'the answer');
    expect(arrived.json).toEqual(answer);
    stream.abort();
  });

  test('heal a session that the backend lost, each for itself', async () => {
    const backend = await keep(startLegacyBackend());
    const a = await keep(startGateway({ '/mcp': backend.url }, { sealKeys: [KEY[0]] }));
    const b = await keep(startGateway({ '/mcp': backend.url }, { sealKeys: [KEY[0]] }));
    const session = await legacy(a.url(), { capabilities: { roots: {} } });
    await at(b.url(), session);
    backend.forget();
    for (let i = 0; i < 4; i++)
      expect((await at(i % 2 === 0 ? a.url() : b.url(), session)).json).toMatchObject(ok);
    const declared = backend.received('initialize').map(({ json }) => json.params);
    expect(declared).toHaveLength(3);
    expect(declared[1]).toEqual(declared[0]);
    expect(declared[2]).toEqual(declared[0]);
  });

  test('serve sessions with a modern backend alike', async () => {
    const backend = await keep(startModernBackend());
    const a = await keep(startGateway({ '/mcp': backend.url }, { sealKeys: [KEY[0]] }));
    const b = await keep(startGateway({ '/mcp': backend.url }, { sealKeys: [KEY[0]] }));
    const session = await legacy(a.url());
    for (let i = 0; i < 4; i++)
      expect((await at(i % 2 === 0 ? b.url() : a.url(), session)).json).toMatchObject(ok);
    expect((await send(b.url(), { method: 'DELETE', headers: session.headers })).status).toBe(200);
  });

  test.each(['v1', 'v2 legacy', 'v2 auto', 'v2 pin'] as const)(
    'serve a real client (%s) between them',
    async (kind) => {
      for (const start of [() => startV1(), () => startV2()]) {
        const peer = await keep(start());
        const a = await keep(startGateway({ '/mcp': peer.url }, { sealKeys: [KEY[0]] }));
        const b = await keep(startGateway({ '/mcp': peer.url }, { sealKeys: [KEY[0]] }));
        const balancer = await keep(startTurntable(a.url()));
        const client = await keep(connect(kind, balancer.url));
        for (let i = 0; i < 4; i++) {
          balancer.turn(i % 2 === 0 ? b.url() : a.url());
          expect((await client.callTool('add', { a: 3, b: 4 })).content[0].text).toMatch(/is 7/);
        }
      }
    },
  );
});

describe('gateways with other keys', () => {
  test('know nothing of the session: 404 under the id of the request', async () => {
    const backend = await keep(startLegacyBackend());
    const a = await keep(startGateway({ '/mcp': backend.url }, { sealKeys: [KEY[0]] }));
    const b = await keep(startGateway({ '/mcp': backend.url }, { sealKeys: [KEY[1]] }));
    const none = await keep(startGateway({ '/mcp': backend.url }));
    const session = await legacy(a.url());
    for (const url of [b.url(), none.url()]) {
      const { status, json } = await at(url, session, 'tools/call', echo, 'id-9');
      expect(status).toBe(404);
      expect(json).toMatchObject({ id: 'id-9', error: { code: -32001 } });
    }
    expect((await at(a.url(), session)).status).toBe(200);
  });

  test('can be rotated: the new key first, the old one kept, and then left out', async () => {
    const backend = await keep(startLegacyBackend());
    const start = (sealKeys: Loose[]) => keep(startGateway({ '/mcp': backend.url }, { sealKeys }));
    const [before, during, other, after] = [
      await start([KEY[0]]),
      await start([KEY[1], KEY[0]]),
      await start([KEY[2], KEY[0], KEY[1]]),
      await start([KEY[1]]),
    ];
    const old = await legacy(before?.url() as string);
    const fresh = await legacy(during?.url() as string);
    for (const gateway of [before, during, other])
      expect((await at(gateway?.url() as string, old)).json).toMatchObject(ok);
    for (const gateway of [during, other, after])
      expect((await at(gateway?.url() as string, fresh)).json).toMatchObject(ok);
    expect((await at(after?.url() as string, old)).status).toBe(404);
    expect((await at(before?.url() as string, fresh)).status).toBe(404);
  });

  test('take nothing that was tampered with', async () => {
    const backend = await keep(startLegacyBackend());
    const gateway = await keep(startGateway({ '/mcp': backend.url }, { sealKeys: [KEY[0]] }));
    const session = await legacy(gateway.url());
    const id = session.id as string;
    const flipped = (at: number) => `${id.slice(0, at)}${id[at] === 'A' ? 'B' : 'A'}${id.slice(at + 1)}`;
    const middle = Math.floor(id.length / 2);
    const forged = [
      flipped(0),
      flipped(5),
      flipped(middle),
      flipped(id.length - 1),
      id.slice(1),
      `${id}A`,
      `${id}=`,
    ];
    forged.push(id.toUpperCase(), ` ${id} x`, 'x', 'null', '0', 'a'.repeat(9_000));
    const before = backend.requests.length;
    for (const other of forged) {
      const { status, json } = await send(gateway.url(), {
        headers: { 'mcp-session-id': other },
        body: { jsonrpc: '2.0', id: 1, method: 'tools/list' },
      });
      expect(status, other.slice(0, 40)).toBe(404);
      expect(json.error.message).toBe('Session not found');
    }
    expect(backend.requests).toHaveLength(before);
    expect((await at(gateway.url(), session)).status).toBe(200);
  });
});

/** A pair of servers with sessions of their own behind a balancer that goes by its cookie, else by turns. */
async function stickyPair(cookie = (name: string) => `lb=${name}; Path=/; HttpOnly`) {
  const pair: Record<string, ScriptedBackend> = {
    a: await keep(startLegacyBackend()),
    b: await keep(startLegacyBackend()),
  };
  let turn = 0;
  const cookies: (string | undefined)[] = [];
  const balancer = await keep(
    startBackend(async ({ method, headers, body, json, sendText }) => {
      cookies.push(headers.cookie);
      const named = /\blb=(\w+)/.exec(headers.cookie ?? '')?.[1];
      const name = named ?? (turn++ % 2 === 0 ? 'a' : 'b');
      const target = pair[name] as ScriptedBackend;
      const passed = Object.fromEntries(
        Object.entries(headers).filter(([key]) => /^(content-type|accept|mcp-.*|authorization)$/.test(key)),
      ) as Record<string, string>;
      if (method === 'GET') return sendText('', 405);
      const answer = await fetch(target.url, {
        method,
        headers: passed,
        ...(body.length > 0 ? { body: new Uint8Array(body) } : {}),
      });
      const back: Record<string, string> = {
        'content-type': answer.headers.get('content-type') ?? 'text/plain',
      };
      const id = answer.headers.get('mcp-session-id');
      if (id !== null) back['mcp-session-id'] = id;
      if (json?.method === 'initialize') back['set-cookie'] = cookie(name);
      sendText(await answer.text(), answer.status, back);
    }),
  );
  return { pair, url: balancer.url, cookies };
}

describe('a backend of several servers behind a balancer with a cookie', () => {
  test('gets the cookie of each session back, and never that of another', async () => {
    const { pair, url, cookies } = await stickyPair();
    const gateway = await keep(startGateway({ '/mcp': url }));
    const sessions = [await legacy(gateway.url()), await legacy(gateway.url())];
    const users = ['Bearer u1', 'Bearer u2', 'Bearer u3'];
    for (let round = 0; round < 3; round++) {
      for (const session of sessions) {
        expect(
          (await session.request('tools/call', echo, { headers: { cookie: 'lb=b; mine=1' } })).json,
        ).toMatchObject(ok);
      }
      for (const authorization of users) {
        const { json } = await modern(gateway.url(), 'tools/call', echo, {
          headers: { authorization, cookie: 'lb=x' },
        });
        expect(json).toMatchObject(ok);
      }
    }
    const handshakes = [pair['a'], pair['b']].map((server) => server?.received('initialize').length);
    expect(handshakes.reduce((sum: number, n) => sum + (n ?? 0), 0)).toBe(sessions.length + users.length);
    expect(new Set(cookies)).toEqual(new Set([undefined, 'lb=a', 'lb=b']));
  });

  test('is found again by another replica of the gateway', async () => {
    const { pair, url } = await stickyPair();
    const a = await keep(startGateway({ '/mcp': url }, { sealKeys: [KEY[0]] }));
    const b = await keep(startGateway({ '/mcp': url }, { sealKeys: [KEY[0]] }));
    const sessions = [await legacy(a.url()), await legacy(a.url()), await legacy(a.url())];
    const initialized = () =>
      (pair['a'] as ScriptedBackend).received('initialize').length +
      (pair['b'] as ScriptedBackend).received('initialize').length;
    const before = initialized();
    for (const session of sessions) expect((await at(b.url(), session)).json).toMatchObject(ok);
    expect(initialized()).toBe(before);
  });

  test.each([
    ['Max-Age=0', 'lb=a; Max-Age=0'],
    ['an Expires in the past', 'lb=a; Expires=Thu, 01 Jan 1970 00:00:00 GMT'],
  ])('is sent no cookie that it took back with %s', async (_how, line) => {
    const backend = await keep(startLegacyBackend());
    const gateway = await keep(startGateway({ '/mcp': backend.url }));
    const lines = ['lb=a; Path=/', 'kept=1; Max-Age=60; Expires=Thu, 01 Jan 1970 00:00:00 GMT'];
    backend.on('initialize', ({ id, session, params, res }) => {
      const head = {
        'content-type': 'application/json',
        'mcp-session-id': session ?? '',
        'set-cookie': lines,
      };
      res.writeHead(200, head);
      const serverInfo = { name: 's', version: '1' };
      const result = { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo };
      res.end(JSON.stringify({ jsonrpc: '2.0', id, result }));
      return undefined;
    });
    const session = await legacy(gateway.url());
    await session.request('tools/call', echo);
    backend.on('tools/call', ({ id, res }) => {
      res.writeHead(200, { 'content-type': 'application/json', 'set-cookie': line });
      res.end(JSON.stringify({ jsonrpc: '2.0', id, result: { content: [] } }));
      return undefined;
    });
    await session.request('tools/call', echo);
    backend.on('tools/call', undefined);
    await session.request('tools/call', echo);
    expect(backend.received('tools/call').map(({ headers }) => headers.cookie)).toEqual([
      'lb=a; kept=1',
      'lb=a; kept=1',
      'kept=1',
    ]);
    expect(backend.received('notifications/initialized')[0]?.headers.cookie).toBe('lb=a; kept=1');
    expect(backend.received('initialize')[0]?.headers).not.toHaveProperty('cookie');
  });
});

test.each(['initialize', 'notifications/initialized', 'tools/call'])(
  'a cookie that cannot be kept, in the answer to %s, keeps nobody from being served',
  async (method) => {
    const backend = await keep(
      startLegacyBackend({
        intercept: ({ json, res }) => {
          if (json?.method === method) res.setHeader('set-cookie', [`state=${'x'.repeat(5_000)}`, 'lb=a']);
          return false;
        },
      }),
    );
    const gateway = await keep(startGateway({ '/mcp': backend.url }));
    const session = await legacy(gateway.url());
    for (let n = 0; n < 2; n++) {
      expect((await session.request('tools/call', echo)).json).toMatchObject(ok);
      expect((await modern(gateway.url(), 'tools/call', echo)).json).toMatchObject(ok);
    }
    expect(backend.received('tools/call').at(-1)?.headers.cookie).toBe('lb=a');
  },
);

test('a balancer that closes quiet connections between the calls is not noticed', async () => {
  const quiet = new WeakMap<Socket, NodeJS.Timeout>();
  const backend = await keep(
    startLegacyBackend({
      intercept: ({ res }) => {
        const socket = res.socket as Socket;
        clearTimeout(quiet.get(socket));
        res.on('finish', () =>
          quiet.set(
            socket,
            setTimeout(() => socket.destroy(), 20),
          ),
        );
        return false;
      },
    }),
  );
  const gateway = await keep(startGateway({ '/mcp': backend.url }));
  const session = await legacy(gateway.url());
  for (let i = 0; i < 5; i++) {
    await sleep(60);
    expect((await session.request('tools/call', echo)).json).toMatchObject(ok);
    expect((await modern(gateway.url(), 'tools/call', echo)).json).toMatchObject(ok);
  }
  expect(backend.received('initialize')).toHaveLength(2);
});
