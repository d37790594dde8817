// Connections that are slow, broken, or many.

import { CALL, check, each, openSession, send, socket } from '../wire.mjs';

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const head = (path, length) =>
  `POST ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: ${length}\r\n`;

const GARBAGE = [
  'GET / HTTP/9.9\r\n\r\n',
  '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
  `POST /modern HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /x HTTP/1.1\r\n\r\n`,
  `POST /modern HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!`,
  `GET /modern HTTP/1.1\r\nHost: a\r\nX: ${'h'.repeat(200_000)}\r\n\r\n`,
  `POST /modern HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFF\r\n`,
  'GET http:/// HTTP/1.1\r\nHost: a\r\n\r\n',
  '\r\n'.repeat(10_000),
];

export const connections = [
  {
    name: 'bytes that are no HTTP',
    async run({ origin }) {
      await each(400, 50, async (i) => {
        const { socket: opened } = socket(origin);
        opened.write(GARBAGE[i % GARBAGE.length], 'latin1');
        await pause(20);
        opened.destroy();
      });
    },
  },
  {
    name: 'requests that are written a byte at a time',
    async run({ origin, quick }) {
      const slow = Array.from({ length: 300 }, () => socket(origin));
      const { body } = CALL();
      for (const { socket: opened } of slow) opened.write(`${head('/modern', body.length)}\r\n`);
      for (let i = 0; i < (quick ? 10 : 50); i++) {
        for (const { socket: opened } of slow) opened.write(body[i]);
        await pause(100);
      }
      for (const { received } of slow)
        check(received === '', `answered before it was read: ${received.slice(0, 60)}`);
      for (const { socket: opened } of slow) opened.destroy();
    },
  },
  {
    name: 'large results that nobody reads',
    async run({ origin }) {
      const { headers, body } = CALL();
      const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
      const unread = Array.from({ length: 12 }, () => socket(origin));
      for (const { socket: opened } of unread) {
        opened.pause();
        opened.write(`${head('/modern/hostile/large', body.length)}${lines.join('')}\r\n${body}`);
      }
      await pause(2_000);
      for (const { socket: opened } of unread) opened.destroy();
    },
  },
  {
    name: 'a thousand requests in one write',
    async run({ origin }) {
      const { socket: opened } = socket(origin);
      opened.write('GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n'.repeat(1_000));
      await pause(500);
      opened.destroy();
    },
  },
  {
    name: 'notifications that the server does not accept',
    async run({ route, backend }) {
      const session = await openSession(route('legacy/silent'));
      const list = '{"jsonrpc":"2.0","id":2,"method":"tools/list"}';
      await send(route('legacy/silent'), { headers: session, body: list });
      const before = (await backend()).sockets;
      const body = '{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}';
      await each(3_000, 64, () => send(route('legacy/silent'), { headers: session, body }));
      const opened = (await backend()).sockets - before;
      check(opened <= 16, `${opened} sockets were opened at the server`);
      await send(route('legacy/silent'), { method: 'DELETE', headers: session });
    },
  },
];
