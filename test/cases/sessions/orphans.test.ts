import { Agent, createServer, request as httpRequest } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pino } from 'pino';
import { expect, test } from 'vitest';
import { parseConfig } from '../../../src/config/index.js';
import { createGateway } from '../../../src/gateway.js';
import { configText, startGateway } from '../../support/gateway.js';
import { keeper } from '../../support/keeper.js';
import { collectGarbage } from '../../support/memory.js';
import { startLegacyBackend } from '../../support/misbehave.js';
import { sleep, until } from '../../support/net.js';
import { legacy, open as openStream, send } from '../../support/raw.js';

const keep = keeper();

const SEAL_KEY = Buffer.alloc(32, 7).toString('base64');
const echo = { name: 'echo', arguments: { a: 1 } };

async function heapUsed(): Promise<number> {
  for (let i = 0; i < 3; i++) {
    collectGarbage();
    await sleep(20);
  }
  return process.memoryUsage().heapUsed;
}

/** A legacy server that remembers nothing of its requests but the sessions that are open. */
async function forgetfulBackend(deleteStatus: number) {
  const sessions = new Set<string>();
  let opened = 0;
  const server = createServer((request, response) => {
    const id = request.headers['mcp-session-id'];
    if (request.method !== 'POST') {
      if (request.method === 'DELETE') sessions.delete(String(id));
      response.writeHead(request.method === 'DELETE' ? deleteStatus : 405).end();
      request.resume();
      return;
    }
    let body = '';
    request.on('data', (chunk) => {
      body += chunk;
    });
    request.on('end', () => {
      const { id: requestId, method, params } = JSON.parse(body);
      if (requestId === undefined) {
        response.writeHead(202).end();
        return;
      }
      const headers: Record<string, string> = { 'content-type': 'application/json' };
      const serverInfo = { name: 'forgetful', version: '1' };
      let answer: object = { error: { code: -32601, message: 'Method not found' } };
      if (method === 'initialize') {
        const session = `s${opened++}`;
        sessions.add(session);
        headers['mcp-session-id'] = session;
        answer = {
          result: { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo },
        };
      } else if (method === 'tools/call') answer = { result: { content: [] } };
      response.writeHead(200, headers).end(JSON.stringify({ jsonrpc: '2.0', id: requestId, ...answer }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  await keep({
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
  return { url, sessions, opened: () => opened };
}

/** Many clients that handshake, call once and are never heard of again; over kept connections, to be quick. */
async function orphan(url: string, count: number): Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: 16 });
  const post = (message: object, session?: string): Promise<{ status: number; session: string }> =>
    new Promise((resolve, reject) => {
      const headers: Record<string, string> = {
        'content-type': 'application/json',
        accept: 'application/json',
      };
      if (session !== undefined) headers['mcp-session-id'] = session;
      const request = httpRequest(url, { method: 'POST', agent, headers }, (response) => {
        response.resume();
        response.on('end', () =>
          resolve({ status: response.statusCode ?? 0, session: String(response.headers['mcp-session-id']) }),
        );
      });
      request.on('error', reject);
      request.end(JSON.stringify({ jsonrpc: '2.0', ...message }));
    });
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'c', version: '1' } };
  let left = count;
  const worker = async () => {
    while (left-- > 0) {
      const { session } = await post({ id: 0, method: 'initialize', params });
      const called = await post({ id: 1, method: 'tools/call', params: echo }, session);
      if (called.status !== 200) throw new Error(`HTTP ${called.status}`);
    }
  };
  await Promise.all(Array.from({ length: 16 }, worker));
  agent.destroy();
}

test('thousands of clients that never said goodbye leave no session and no memory behind', async () => {
  const backend = await forgetfulBackend(405);
  const route = { backend: { url: backend.url, era: 'legacy' }, sessions: { idle: '1s' } };
  // Its log is no part of what is measured.
  const gateway = createGateway(parseConfig(configText({ '/mcp': route }), 'test.yaml', {}), {
    log: pino({ level: 'silent' }),
  });
  await keep(gateway);
  const url = `${await gateway.listen()}/mcp`;
  const quiet = () => until(() => backend.sessions.size === 0, 'the end of all sessions', 15_000);
  await orphan(url, 500);
  await quiet();
  const before = await heapUsed();
  await orphan(url, 2_000);
  await quiet();
  const grown = (await heapUsed()) - before;
  expect(backend.opened()).toBe(2_500);
  expect(grown).toBeLessThan(4 * 1024 * 1024);
}, 60_000);

const as = (user: string) => ({ headers: { authorization: `Bearer ${user}` } });
const LIMITS = { limits: { sessions: 10 }, sealKeys: [SEAL_KEY] };

test('a user who opens very many sessions loses its own oldest ones, and nobody else any', async () => {
  const backend = await keep(startLegacyBackend());
  const gateway = await keep(startGateway({ '/mcp': backend.url }, LIMITS));
  const others = await Promise.all(['anna', 'bert'].map((user) => legacy(gateway.url(), as(user))));
  const theirs = new Set(backend.sessions);
  const mine = [];
  for (let i = 0; i < 30; i++) mine.push(await legacy(gateway.url(), as('flood')));
  for (const session of mine) expect(session.initialize.status).toBe(200);
  await until(() => backend.sessions.size === 10, 'the ends of the sessions beyond the limit');
  for (const id of theirs) expect(backend.sessions).toContain(id);
  const ended = backend.requests.filter(({ method }) => method === 'DELETE');
  expect(new Set(ended.map(({ headers }) => headers.authorization))).toEqual(new Set(['Bearer flood']));

  // The sessions of the others go on as they are, and one that made way comes back when it is used.
  for (const session of others) expect((await session.request('tools/call', echo)).status).toBe(200);
  expect(backend.received('initialize')).toHaveLength(32);
  expect((await mine[0]?.request('tools/call', echo))?.json.result.structuredContent).toEqual({ a: 1 });

  // A newcomer gets a session, and the principal with most loses one.
  const carl = await legacy(gateway.url(), as('carl'));
  expect((await carl.request('tools/call', echo)).status).toBe(200);
  for (const id of theirs) expect(backend.sessions).toContain(id);
});

test('sessions in use do not make way for those of the same user; others find room all the same', async () => {
  const backend = await keep(startLegacyBackend());
  const gateway = await keep(startGateway({ '/mcp': backend.url }, LIMITS));
  const sessions = [];
  for (let i = 0; i < 10; i++) {
    const session = await legacy(gateway.url(), as('flood'));
    sessions.push({ session, stream: await session.listen() });
  }
  const refused = await legacy(gateway.url(), as('flood'));
  expect(refused.initialize.status).toBe(503);
  expect(refused.initialize.headers['retry-after']).toMatch(/^\d+$/);
  expect(refused.initialize.json).toMatchObject({
    id: 0,
    error: { message: expect.stringContaining('limit of 10') },
  });
  expect(refused.initialize.headers).not.toHaveProperty('mcp-session-id');
  for (const { stream } of sessions) expect(stream.ended).toBe(false);

  const anna = await legacy(gateway.url(), as('anna'));
  expect((await anna.request('tools/call', echo)).status).toBe(200);
  expect(sessions.filter(({ stream }) => stream.ended)).toHaveLength(1);
  expect(sessions[0]?.stream.ended).toBe(true);
  // The one that had to go cannot come back while all are in use, and is told so in the same way.
  const headers = { ...sessions[0]?.session.headers };
  const back = await send(gateway.url(), { headers, body: { jsonrpc: '2.0', id: 5, method: 'tools/list' } });
  expect(back.status).toBe(503);
  expect(back.json.id).toBe(5);
  expect(
    (await openStream(gateway.url(), { headers: { ...headers, accept: 'text/event-stream' } })).status,
  ).toBe(503);
  for (const { stream } of sessions) stream.abort();
  await sleep(50);
  expect(
    (await send(gateway.url(), { headers, body: { jsonrpc: '2.0', id: 6, method: 'tools/list' } })).status,
  ).toBe(200);
});
