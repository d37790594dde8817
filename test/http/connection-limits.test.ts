import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { pino } from 'pino';
import { afterEach, expect, test } from 'vitest';
import { connectionLimits, limitConnections } from '../../src/http/connection-limits.js';
import { type Loose, until } from '../support/net.js';

const sockets: Socket[] = [];
let server: Server;
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await new Promise((resolve) => server.close(resolve));
});

async function start(limits: { idleAbove: number; max: number }): Promise<Loose[]> {
  const logs: Loose[] = [];
  server = createServer((req, res) => {
    if (req.url === '/slow') return;
    res.end();
  });
  server.keepAliveTimeout = 3_600_000;
  limitConnections(server, limits, pino({}, { write: (line: string) => void logs.push(JSON.parse(line)) }));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return logs;
}

async function open(path?: string): Promise<Socket> {
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => {});
  sockets.push(socket);
  await once(socket, 'connect');
  if (path === undefined) return socket;
  socket.write(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`);
  if (path !== '/slow') await once(socket, 'data');
  return socket;
}

test('idle connections are closed where many are open, and none that is in use', async () => {
  await start({ idleAbove: 4, max: 100 });
  const slow = await open('/slow');
  const idle = [await open('/'), await open('/'), await open('/')];
  expect(idle.map(({ destroyed }) => destroyed)).toEqual([false, false, false]);
  const closed = Promise.all(idle.map((socket) => once(socket.resume(), 'close')));
  const late = await open('/');
  await closed;
  expect([slow.destroyed, late.destroyed]).toEqual([false, false]);
});

test('connections beyond the limit are refused with one warning, and idle ones make room', async () => {
  const logs = await start({ idleAbove: 100, max: 2 });
  await open('/slow');
  const idle = await open('/');
  const made = once(idle.resume(), 'close');
  const refused = await open();
  if (!refused.destroyed) await once(refused.resume(), 'close');
  await made;
  await until(() => logs.length > 0, 'the warning');
  expect(logs).toEqual([expect.objectContaining({ level: 40, refused: 1, limit: 2 })]);
  await open('/');
});

test('limits leave files for backends, and hold where the system tells none', () => {
  expect(connectionLimits(1_024)).toEqual({ idleAbove: 512, max: 864 });
  expect(connectionLimits(1_048_576)).toEqual({ idleAbove: 10_000, max: 917_472 });
  expect(connectionLimits(20).max).toBe(1);
  expect(connectionLimits(Number.POSITIVE_INFINITY).idleAbove).toBe(10_000);
});
