import type { ServerResponse } from 'node:http';
import type { Rope } from '../jsonrpc/index.js';
import { closeUnread } from './unread-timeout.js';

export type Headers = Readonly<Record<string, string>>;

/** No headers beside those of the response itself. */
export const NO_HEADERS: Headers = {};

/** The text of an event. A small one is a string with one character per byte: a buffer would keep its whole pool alive. */
export type EventText = string | Rope;

/** A client with more unread bytes than this counts as slow. */
const SLOW_ABOVE_BYTES = 256 * 1024;
/** The pieces of a message up to this size are joined and written at once. */
const SINGLE_WRITE_UP_TO_BYTES = 16 * 1024;
/** A client may leave this much unread for as long as its connection lasts. */
export const SMALL_UP_TO_BYTES = 64 * 1024;

const STREAM_HEADERS: Headers = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-cache, no-store, no-transform',
  'x-accel-buffering': 'no',
};

export interface WriterOptions {
  /** Of the HTTP request; the client gets it as `X-Request-Id`. */
  readonly requestId: string;
  /** Headers of every response to the request, such as those of CORS. */
  readonly headers: Headers;
  /** Called with the body of a response with a status from 400. */
  readonly onRefused?: ((error: Rope) => void) | undefined;
  /** Changes the value of `WWW-Authenticate` for the client. */
  readonly rewriteChallenge?: ((value: string) => string) | undefined;
}

/** Writes one HTTP response to its connection. */
export class ResponseWriter {
  readonly #res: ServerResponse;
  readonly #options: WriterOptions;

  constructor(res: ServerResponse, options: WriterOptions) {
    this.#res = res;
    this.#options = options;
  }

  /** Bytes that the client has not read yet. */
  get unreadBytes(): number {
    return this.#res.writableLength;
  }

  /** Whether the client has to read before more should be written. */
  get paused(): boolean {
    return needsDrain(this.#res);
  }

  /** Calls `listener` when the response is over: it was sent whole, or its connection closed. */
  onClose(listener: () => void): void {
    this.#res.on('close', listener);
  }

  /** Writes a whole response with a JSON body. */
  json(status: number, message: Rope, headers?: Headers): void {
    if (status >= 400) this.#options.onRefused?.(message);
    const length = String(message.byteLength);
    const own = ['content-type', 'application/json', 'content-length', length, 'cache-control', 'no-store'];
    this.#res.writeHead(status, this.#withCommon(own, headers));
    // A string is sent in one write with the headers; latin1 keeps every byte as it is.
    if (message.byteLength <= SINGLE_WRITE_UP_TO_BYTES) this.#res.end(message.toLatin1(), 'latin1');
    else this.end(message);
  }

  /** Writes a whole response without a body. */
  empty(status: number, headers?: Headers): void {
    this.#res.writeHead(status, this.#withCommon(['content-length', '0'], headers));
    this.#res.end();
  }

  /** Sends the headers of an event stream, so that the client knows at once that its request was taken. */
  openEvents(headers?: Headers): void {
    const { requestId, headers: common } = this.#options;
    this.#res.writeHead(200, { ...STREAM_HEADERS, 'x-request-id': requestId, ...common, ...headers });
    this.#res.flushHeaders();
  }

  /** @returns false when the client reads slowly */
  write(text: EventText): boolean {
    const res = this.#res;
    if (typeof text === 'string') res.write(text, 'latin1');
    else if (text.byteLength <= SINGLE_WRITE_UP_TO_BYTES) res.write(text.toBuffer());
    else {
      // Large pieces are written as they are: joining them would hold them twice.
      res.cork();
      for (const chunk of text.chunks) res.write(chunk);
      res.uncork();
    }
    return res.writableLength < SLOW_ABOVE_BYTES;
  }

  /** Ends the response, after a last piece if there is one. */
  end(last?: EventText): void {
    if (last !== undefined) this.write(last);
    this.#res.end();
    if (last !== undefined && sizeOf(last) > SMALL_UP_TO_BYTES) this.limitUnread();
  }

  /** Closes the connection without waiting for the client to read what was written. */
  destroy(): void {
    this.#res.destroy();
  }

  /** Calls `resume` once the client has read what was written, or its connection is closed. */
  onDrain(resume: () => void): void {
    const res = this.#res;
    if (!needsDrain(res)) {
      resume();
      return;
    }
    const { socket } = res;
    const wake = (): void => {
      socket?.off('drain', wake);
      res.off('drain', wake).off('close', wake);
      resume();
    };
    socket?.on('drain', wake);
    res.on('drain', wake).on('close', wake);
    this.limitUnread();
  }

  /** Closes the connection if the client reads nothing of what is unread now for a long time. */
  limitUnread(): void {
    closeUnread(this.#res);
  }

  /** Headers as a list, which node writes fastest; a later header replaces an earlier one of the same name. */
  #withCommon(own: string[], headers: Headers | undefined): string[] {
    const { requestId, headers: common } = this.#options;
    own.push('x-request-id', requestId);
    if (common === NO_HEADERS && headers === undefined) return own;
    const all: Record<string, string> = {};
    for (let i = 0; i < own.length; i += 2) all[own[i] as string] = own[i + 1] as string;
    return Object.entries(Object.assign(all, common, this.#forClient(headers))).flat();
  }

  #forClient(headers: Headers | undefined): Headers | undefined {
    const challenge = headers?.['www-authenticate'];
    const { rewriteChallenge } = this.#options;
    if (challenge === undefined || rewriteChallenge === undefined) return headers;
    return { ...headers, 'www-authenticate': rewriteChallenge(challenge) };
  }
}

/** Bytes of an event. */
export function sizeOf(text: EventText): number {
  return typeof text === 'string' ? text.length : text.byteLength;
}

/**
 * Whether what was written waits for the client. Of pieces that are written corked the response keeps no account, so that its
 * connection is asked too: since Node 22 a message of 20 KB does not fill the buffer of the response.
 */
function needsDrain(res: ServerResponse): boolean {
  return res.writableNeedDrain || res.socket?.writableNeedDrain === true;
}
