import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { CODE } from '../exchange/errors.js';
import { errorRope } from '../jsonrpc/index.js';

/** HTTP statuses for what node's parser refuses; anything else is a 400. */
const STATUS: Readonly<Record<string, number>> = {
  ERR_HTTP_REQUEST_TIMEOUT: 408,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 413,
  HPE_HEADER_OVERFLOW: 431,
};

/** Answers what is not HTTP, or came too slowly, in the words of JSON-RPC, and ends the connection. */
export function refuseBrokenRequest(error: Error & { code?: string }, socket: Socket): void {
  if (socket.destroyed) return;
  const status = STATUS[error.code ?? ''] ?? 400;
  const reason = STATUS_CODES[status] as string;
  const body = errorRope(undefined, CODE.server, `${reason}: ${error.message}`).toBuffer();
  const head = [
    `HTTP/1.1 ${status} ${reason}`,
    'Connection: close',
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
  ];
  if (error.code !== 'ECONNRESET' && socket.writable) {
    socket.write(Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), body]));
  }
  socket.destroy();
}
