import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { closeUnread } from '../../src/downstream/unread-timeout.js';
import { sleep, until } from '../support/net.js';

const LIMIT_MS = 300;
const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0)) close();
});

/** A response that is being written, and the connection of its client, which reads nothing yet. */
async function start(): Promise<{ res: ServerResponse; client: Socket }> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  const client = connect(port, '127.0.0.1');
  client.on('error', () => {});
  client.pause();
  client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  const [, res] = (await once(server, 'request')) as [unknown, ServerResponse];
  closers.push(() => {
    client.destroy();
    server.closeAllConnections();
    server.close();
  });
  return { res, client };
}

const LARGE = Buffer.alloc(32 * 1024 * 1024, 0x20);

test.each(['written', 'ended'])('a client that reads nothing of what is %s is cut off', async (how) => {
  const { res } = await start();
  if (how === 'ended') res.end(LARGE);
  else res.write(LARGE);
  closeUnread(res, LIMIT_MS);
  const begun = Date.now();
  await once(res, 'close');
  expect(Date.now() - begun).toBeGreaterThanOrEqual(LIMIT_MS - 50);
  expect(res.destroyed).toBe(true);
});

test('a client that reads slowly is left alone', async () => {
  const { res, client } = await start();
  res.end(LARGE);
  closeUnread(res, LIMIT_MS);
  let read = 0;
  client.on('data', (chunk) => {
    read += chunk.length;
  });
  for (let i = 0; i < 6; i++) {
    client.resume();
    await sleep(20);
    client.pause();
    await sleep(150);
  }
  expect(res.destroyed && read < LARGE.length).toBe(false);
  client.resume();
  await until(() => read >= LARGE.length, 'the rest of the answer');
});

test('a client that has read everything may be quiet for as long as it likes', async () => {
  const { res, client } = await start();
  res.write(LARGE);
  closeUnread(res, LIMIT_MS);
  client.resume();
  await once(res, 'drain');
  await sleep(LIMIT_MS * 2);
  expect(res.destroyed).toBe(false);
});

test('what has been read is not watched', async () => {
  const { res, client } = await start();
  client.resume();
  res.write('little');
  await sleep(50);
  closeUnread(res, LIMIT_MS);
  await sleep(LIMIT_MS * 2);
  expect(res.destroyed).toBe(false);
});
