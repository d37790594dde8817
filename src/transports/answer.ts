import type { IncomingMessage, ServerResponse } from 'node:http';
import { NOWHERE } from '../exchange/bag.js';
import type { Ticker, Ticking } from '../exchange/ticker.js';
import { Rope, sseComment, sseEvent } from '../jsonrpc/index.js';
import { readAccept } from './accept.js';
import { cutOffUnread } from './unread.js';

export interface AnswerOptions {
  readonly ticker: Ticker;
  /** Between comments on a quiet stream, and before a slow answer becomes one, in milliseconds. */
  readonly keepAliveMs: number;
}

type Headers = Readonly<Record<string, string>>;

/** No headers beside the answer's own. */
export const NO_HEADERS: Headers = {};

/** Above this, a reader counts as slow and the writer is asked to wait. */
const SLOW_ABOVE_BYTES = 256 * 1024;
/** Pieces of one message up to this size go out in one write. */
const SINGLE_WRITE_UP_TO = 16 * 1024;
/** A client that does not read an answer larger than this is cut off in the end. */
const SMALL_UP_TO = 64 * 1024;

const STREAM_HEADERS: Headers = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-cache, no-store, no-transform',
  'x-accel-buffering': 'no',
};

/**
 * The HTTP answer to one client request: a JSON body, or an event stream once there is something to say before the
 * outcome, or once the outcome takes long. Of the two it is one that the client named in `Accept`; a client that
 * takes JSON alone gets the outcome alone.
 */
export class Answer implements Ticking {
  place = NOWHERE;
  readonly #res: ServerResponse;
  readonly #options: AnswerOptions;
  readonly #extra: Headers;
  readonly #json: boolean;
  readonly #events: boolean;
  #state: 'waiting' | 'stream' | 'done' = 'waiting';
  #lastWriteAt = performance.now();
  #status = 0;
  #gone = false;
  #onGone: (() => void) | undefined;

  /** @param extra headers of every answer, such as those of CORS or of the session */
  constructor(req: IncomingMessage, res: ServerResponse, extra: Headers, options: AnswerOptions) {
    this.#res = res;
    this.#options = options;
    this.#extra = extra;
    const { json, events } = readAccept(req.headers.accept);
    this.#json = json;
    this.#events = events;
    res.on('close', this.#closed);
    if (events) options.ticker.add(this);
  }

  /** The HTTP status that went out; 0 before. */
  get status(): number {
    return this.#status;
  }

  get done(): boolean {
    return this.#state === 'done';
  }

  /** The client went away before the answer was complete. */
  get gone(): boolean {
    return this.#gone;
  }

  /** Whether the client takes an event stream. */
  get takesEvents(): boolean {
    return this.#events;
  }

  get streaming(): boolean {
    return this.#state === 'stream';
  }

  /** Keeps a slow answer from becoming a stream: its headers are known together with its outcome. */
  holdHeaders(): void {
    this.#options.ticker.remove(this);
  }

  /** Calls `listener` when the client goes away before the answer is complete: at once, when it has gone already. */
  onGone(listener: () => void): void {
    if (this.#gone) listener();
    else this.#onGone = listener;
  }

  tick(now: number): void {
    if (now - this.#lastWriteAt < this.#options.keepAliveMs) return;
    this.#open();
    this.#lastWriteAt = now;
    // Who does not read what is there needs no sign of life on top of it.
    if (this.#res.writableNeedDrain) return;
    this.#res.write(sseComment());
  }

  /**
   * Writes an event before the outcome, if the client takes any.
   * @returns false when the client reads slowly
   */
  event(message: Rope, id?: string): boolean {
    if (this.#state === 'done' || !this.#events) return true;
    this.#open();
    this.#lastWriteAt = performance.now();
    writeRope(this.#res, sseEvent(message, id === undefined ? undefined : { id }));
    return this.#res.writableLength < SLOW_ABOVE_BYTES;
  }

  /** Runs `resume` once the client has read what was written, or has gone and will read nothing more. */
  onDrain(resume: () => void): void {
    if (!this.#res.writableNeedDrain || this.#state === 'done') {
      resume();
      return;
    }
    const wake = (): void => {
      this.#res.off('drain', wake).off('close', wake);
      resume();
    };
    this.#res.on('drain', wake).on('close', wake);
    cutOffUnread(this.#res);
  }

  /** Opens the event stream at once, also to a client that did not name the type: the answer can be nothing else. */
  openStream(): void {
    if (this.#state === 'done') return;
    this.#open();
    this.#options.ticker.add(this);
    this.#res.write(sseComment());
  }

  /** Writes the outcome and ends the answer. */
  end(status: number, message: Rope, headers?: Headers): void {
    if (this.#state === 'done') return;
    const streaming = this.#state === 'stream' || (!this.#json && status === 200);
    if (streaming) {
      this.#open(headers);
      this.#finish();
      writeRope(this.#res, sseEvent(message));
      this.#res.end();
      if (message.byteLength > SMALL_UP_TO) cutOffUnread(this.#res);
      return;
    }
    this.#status = status;
    this.#finish();
    const length = String(message.byteLength);
    const own = ['content-type', 'application/json', 'content-length', length, 'cache-control', 'no-store'];
    this.#res.writeHead(status, this.#withExtra(own, headers));
    // A string goes out in one write with the headers; latin1 keeps every byte as it is.
    if (message.byteLength <= SINGLE_WRITE_UP_TO) this.#res.end(message.toLatin1(), 'latin1');
    else {
      writeRope(this.#res, message);
      this.#res.end();
      if (message.byteLength > SMALL_UP_TO) cutOffUnread(this.#res);
    }
  }

  /** Writes the outcomes of a batch and ends the answer: events on an open stream, else an array. */
  endAll(messages: readonly Rope[]): void {
    if (this.#state === 'stream') {
      for (const message of messages) this.event(message);
      this.endEmpty(200);
      return;
    }
    const array = new Rope().push('[');
    for (const [index, message] of messages.entries()) array.push(index === 0 ? '' : ',').push(message);
    this.end(200, array.push(']'));
  }

  /** Ends an answer that has no message. */
  endEmpty(status: number, headers?: Headers): void {
    if (this.#state === 'done') return;
    this.#status ||= status;
    const streaming = this.#state === 'stream';
    this.#finish();
    if (!streaming) this.#res.writeHead(status, { 'content-length': '0', ...this.#extra, ...headers });
    this.#res.end();
  }

  /** Headers as a list, which is what node writes fastest; a name that comes again replaces what it was before. */
  #withExtra(own: string[], headers: Headers | undefined): string[] {
    if (this.#extra === NO_HEADERS && headers === undefined) return own;
    const all: Record<string, string> = {};
    for (let i = 0; i < own.length; i += 2) all[own[i] as string] = own[i + 1] as string;
    return Object.entries(Object.assign(all, this.#extra, headers)).flat();
  }

  #open(headers?: Headers): void {
    if (this.#state !== 'waiting') return;
    this.#state = 'stream';
    this.#status = 200;
    this.#res.writeHead(200, { ...STREAM_HEADERS, ...this.#extra, ...headers });
    this.#res.flushHeaders();
  }

  #finish(): void {
    this.#state = 'done';
    this.#options.ticker.remove(this);
    this.#onGone = undefined;
  }

  readonly #closed = (): void => {
    if (this.#state === 'done') return;
    const listener = this.#onGone;
    this.#gone = true;
    this.#finish();
    listener?.();
  };
}

/** Large pieces are written as they are: joining them would hold them twice. */
function writeRope(res: ServerResponse, rope: Rope): void {
  if (rope.byteLength <= SINGLE_WRITE_UP_TO) {
    res.write(rope.toBuffer());
    return;
  }
  res.cork();
  for (const piece of rope.pieces) res.write(piece);
  res.uncork();
}
