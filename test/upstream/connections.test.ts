import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { type Connection, Connections } from '../../src/upstream/connections.js';

let server: Server;
let sockets: Set<Socket>;
let connections: Connections;

beforeEach(async () => {
  server = createServer((_req, res) => res.end('ok'));
  sockets = new Set();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  connections = new Connections(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, 1_000);
});

afterEach(async () => {
  vi.useRealTimers();
  await connections.destroy();
  server.close();
});

async function ask({ client }: Connection): Promise<void> {
  const { body } = await client.request({ method: 'GET', path: '/' });
  await body.dump();
}

async function askOnce(): Promise<Connection> {
  const connection = connections.acquire();
  await ask(connection);
  connections.release(connection);
  return connection;
}

test('sequential requests share one connection, whatever else is in use', async () => {
  const inUse = Array.from({ length: 50 }, () => connections.acquire());
  const first = await askOnce();
  expect(inUse).not.toContain(first);
  expect(await askOnce()).toBe(first);
  expect(sockets.size).toBe(1);
});

test('the connection that was used last is the next to be used', async () => {
  const [older, newer] = [connections.acquire(), connections.acquire()];
  await Promise.all([ask(older), ask(newer)]);
  connections.release(older);
  connections.release(newer);
  expect(connections.acquire()).toBe(newer);
  expect(connections.acquire()).toBe(older);
});

test('once a connection is found dead, idle ones and those released later are not used again', async () => {
  const [waiting, busy, dead] = [connections.acquire(), connections.acquire(), connections.acquire()];
  await Promise.all([ask(waiting), ask(busy)]);
  connections.release(waiting);
  connections.discard(dead);
  connections.discardIdle(dead);
  connections.release(busy);
  const next = connections.acquire();
  expect([waiting, busy, dead]).not.toContain(next);
  connections.release(next);
  // The same discovery by another connection of that generation changes nothing.
  connections.discardIdle(dead);
  expect(connections.acquire()).toBe(next);
  await vi.waitFor(() => expect(sockets.size).toBe(0));
});

test('connections that a burst has opened are closed afterwards', () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  const many = Array.from({ length: 100 }, () => connections.acquire());
  for (const connection of many) connections.release(connection);
  vi.advanceTimersByTime(60_000);
  for (let i = 0; i < 100; i++) connections.release(connections.acquire());
  const left = new Set(Array.from({ length: 100 }, () => connections.acquire()));
  expect(many.filter((connection) => left.has(connection))).toHaveLength(1);
});
