import { type IncomingMessage, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { CODE } from '../exchange/errors.js';
import { errorRope, nameMap } from '../jsonrpc/index.js';
import type { HttpRequest, RequestPipeline } from './pipeline.js';
import type { RequestIds } from './request-id.js';

/** Statuses for what node's parser rejects; 400 for anything else. */
const STATUS: ReadonlyMap<string, number> = nameMap({
  ERR_HTTP_REQUEST_TIMEOUT: 408,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 413,
  HPE_HEADER_OVERFLOW: 431,
});

/**
 * Refuses what node's server passes on as a socket, without a response object: bytes that cannot be parsed or come too
 * slowly, and CONNECT. The response is a JSON-RPC error, and the connection closes.
 */
export class RawRefusals {
  readonly #pipeline: RequestPipeline;
  readonly #ids: RequestIds;

  constructor(pipeline: RequestPipeline, ids: RequestIds) {
    this.#pipeline = pipeline;
    this.#ids = ids;
  }

  /** A connection failed before a request was read, or in the middle of one. */
  onClientError(error: Error & { code?: string }, socket: Socket): void {
    if (socket.destroyed) return;
    const unfinished = this.#pipeline.unfinished(socket);
    if (error.code === 'ECONNRESET' || !socket.writable || unfinished?.res.headersSent === true) {
      socket.destroy();
      return;
    }
    const status = STATUS.get(error.code ?? '') ?? 400;
    const message = `${STATUS_CODES[status]}: ${error.message}`;
    if (unfinished === undefined) this.#refuse(socket, { status, message });
    else {
      // Observers read the status here, though the response is written to the socket.
      unfinished.res.statusCode = status;
      write(socket, unfinished.request, { status, message });
    }
  }

  onConnect(req: IncomingMessage, socket: Socket): void {
    const allow = 'GET, POST, DELETE, OPTIONS';
    this.#refuse(socket, { status: 405, message: 'Method Not Allowed: CONNECT', allow }, req);
  }

  #refuse(socket: Socket, response: RawResponse, req?: IncomingMessage): void {
    const id = req === undefined ? this.#ids.create() : this.#ids.of(req);
    const request = this.#pipeline.beginRaw(id, socket, req);
    write(socket, request, response);
    this.#pipeline.end(request, { status: response.status, complete: true });
  }
}

interface RawResponse {
  readonly status: number;
  readonly message: string;
  readonly allow?: string;
}

function write(socket: Socket, request: HttpRequest, { status, message, allow }: RawResponse): void {
  const error = errorRope(undefined, CODE.server, message);
  request.onRefused(error);
  const body = error.toBuffer();
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'Connection: close',
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
    `X-Request-Id: ${request.id}`,
    ...(allow === undefined ? [] : [`Allow: ${allow}`]),
  ];
  socket.write(Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), body]));
  socket.destroy();
}
