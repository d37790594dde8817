import { createServer, type Socket } from 'node:net';
import type { Loose } from './net.js';

/** A request that reached a {@link startWireBackend}. */
export interface WireRequest {
  /** The body parsed. */
  readonly json: Loose;
  /** The connection; a closed one ends the exchange, an open one takes the next request. */
  readonly socket: Socket;
  /** How many requests the connection has carried, this one among them. */
  readonly count: number;
}

/**
 * A backend of bytes: reads requests, and leaves every byte of the answers to `respond`, so that they may be anything
 * but HTTP.
 */
export async function startWireBackend(respond: (request: WireRequest) => void | Promise<void>) {
  const sockets = new Set<Socket>();
  // Small pieces are sent at once, not held back until those before them are acknowledged.
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket)).on('error', () => {});
    let pending = Buffer.alloc(0);
    let count = 0;
    socket.on('data', (chunk) => {
      pending = Buffer.concat([pending, chunk]);
      for (;;) {
        const end = pending.indexOf('\r\n\r\n');
        if (end === -1) return;
        const length = Number(/content-length: (\d+)/i.exec(pending.toString('latin1', 0, end))?.[1] ?? 0);
        if (pending.length < end + 4 + length) return;
        const body = pending.toString('utf8', end + 4, end + 4 + length);
        pending = pending.subarray(end + 4 + length);
        count += 1;
        void respond({ json: body === '' ? undefined : JSON.parse(body), socket, count });
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}
