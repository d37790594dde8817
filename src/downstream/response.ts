import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Ticker, Ticking } from '../exchange/ticker.js';
import { NOWHERE } from '../exchange/unordered-set.js';
import { Rope, sseComment, sseEvent } from '../jsonrpc/index.js';
import { readAccept } from './accept.js';
import type { EventText, ReplayStream } from './replay-stream.js';
import { cutOffUnread } from './unread-timeout.js';

export interface ResponseOptions {
  readonly ticker: Ticker;
  /** Between comments on a quiet stream, and before a slow answer becomes one, in milliseconds. */
  readonly keepAliveMs: number;
}

export type Headers = Readonly<Record<string, string>>;

/** No headers beside the answer's own. */
export const NO_HEADERS: Headers = {};

/** Above this, a reader counts as slow and the writer is asked to wait. */
const SLOW_ABOVE_BYTES = 256 * 1024;
/** Pieces of one message up to this size go out in one write. */
const SINGLE_WRITE_UP_TO = 16 * 1024;
/** A client that does not read an answer larger than this is cut off in the end. */
const SMALL_UP_TO = 64 * 1024;

/** Begins to keep the events of an answer, which has just become a stream; undefined where they are not kept. */
export interface Recorder {
  record(response: ClientResponse): ReplayStream | undefined;
}

const STREAM_HEADERS: Headers = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-cache, no-store, no-transform',
  'x-accel-buffering': 'no',
};

/**
 * The HTTP answer to one client request: a JSON body, or an event stream once there is something to say before the
 * outcome, or once the outcome takes long. Of the two it is one that the client named in `Accept`; a client that
 * takes JSON alone gets the outcome alone. Where the stream is recorded, it outlives the connection: while the client
 * is away its events are kept, until a later request of the client brings another connection.
 */
export class ClientResponse implements Ticking {
  place = NOWHERE;
  #res: ServerResponse;
  readonly #options: ResponseOptions;
  readonly #extra: Headers;
  readonly #json: boolean;
  readonly #events: boolean;
  readonly #eventsFirst: boolean;
  #state: 'waiting' | 'stream' | 'detached' | 'done' = 'waiting';
  #lastWriteAt = performance.now();
  #status = 0;
  #aborted = false;
  #onAbort: (() => void) | undefined;
  #recorder: Recorder | undefined;
  /** How long one connection is held, in milliseconds, and until when. */
  #holdMs = Number.POSITIVE_INFINITY;
  #detachAt = Number.POSITIVE_INFINITY;
  #challengeOf: ((header: string) => string) | undefined;
  #record: ReplayStream | undefined;
  /** Writers that wait for the client to come back. */
  #held: (() => void)[] | undefined;

  /** @param extra headers of every answer, such as those of CORS or of the session */
  constructor(req: IncomingMessage, res: ServerResponse, extra: Headers, options: ResponseOptions) {
    this.#res = res;
    this.#options = options;
    this.#extra = extra;
    const { json, events, eventsFirst } = readAccept(req.headers.accept);
    this.#json = json;
    this.#events = events;
    this.#eventsFirst = eventsFirst;
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

  /** The client went away before the answer was complete, and is not expected back. */
  get aborted(): boolean {
    return this.#aborted;
  }

  /** Whether the client takes an event stream. */
  get acceptsEvents(): boolean {
    return this.#events;
  }

  get streaming(): boolean {
    return this.#state === 'stream';
  }

  /** The client's connection broke; it may come back for the rest of the stream. */
  get detached(): boolean {
    return this.#state === 'detached';
  }

  /** Whether it is {@link ClientResponse.detached} without having been sent away, so that nobody knows whether it will come back. */
  get disconnected(): boolean {
    return this.detached && this.#record?.detach !== true;
  }

  /**
   * Has the answer recorded if it becomes a stream. A client that names streams first then gets one in any case.
   * @param holdMs how long one connection is held open for it, where the client knows how to come back
   */
  makeResumable(recorder: Recorder, holdMs = Number.POSITIVE_INFINITY): void {
    this.#recorder = recorder;
    this.#holdMs = holdMs;
    this.#hold();
  }

  /** Has `WWW-Authenticate` changed on its way to the client. */
  changeChallenges(change: (header: string) => string): void {
    this.#challengeOf = change;
  }

  /** Keeps a slow answer from becoming a stream: its headers are known together with its outcome. */
  holdHeaders(): void {
    this.#options.ticker.remove(this);
  }

  /** Calls `listener` when the client goes away before the answer is complete: at once, when it has gone already. */
  onAbort(listener: () => void): void {
    if (this.#aborted) {
      listener();
      return;
    }
    const others = this.#onAbort;
    this.#onAbort =
      others === undefined
        ? listener
        : () => {
            others();
            listener();
          };
  }

  tick(now: number): void {
    // What a slow reader has not got yet goes first.
    if (now >= this.#detachAt && !this.#res.writableNeedDrain) this.detach();
    if (this.detached || now - this.#lastWriteAt < this.#options.keepAliveMs) return;
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
  writeEvent(message: Rope): boolean {
    if (this.#state === 'done' || !this.#events) return true;
    this.#open();
    const text = this.#record?.event(message) ?? sseEvent(message);
    if (this.detached) return this.#record?.crowded !== true;
    this.#lastWriteAt = performance.now();
    writeText(this.#res, text);
    return this.#res.writableLength < SLOW_ABOVE_BYTES;
  }

  /** Runs `resume` once the client has read what was written, or has gone and will read nothing more. */
  onDrain(resume: () => void): void {
    if (this.detached && this.#record?.crowded === true) {
      this.#held ??= [];
      this.#held.push(resume);
      return;
    }
    const res = this.#res;
    if (!res.writableNeedDrain || this.#state !== 'stream') {
      resume();
      return;
    }
    const wake = (): void => {
      res.off('drain', wake).off('close', wake);
      resume();
    };
    res.on('drain', wake).on('close', wake);
    cutOffUnread(res);
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
    const begun = this.#state !== 'waiting';
    if (begun || (status === 200 && (!this.#json || (this.#eventsFirst && this.#recorder !== undefined)))) {
      this.#open(headers);
      const text = this.#record?.event(message) ?? sseEvent(message);
      const { detached } = this;
      this.#finish();
      if (detached) return;
      writeText(this.#res, text);
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
      writeText(this.#res, message);
      this.#res.end();
      if (message.byteLength > SMALL_UP_TO) cutOffUnread(this.#res);
    }
  }

  /** Writes the outcomes of a batch and ends the answer: events on an open stream, else an array. */
  endBatch(messages: readonly Rope[]): void {
    if (this.#state === 'stream' || this.detached) {
      for (const message of messages) this.writeEvent(message);
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
    const { detached, streaming } = this;
    this.#finish();
    if (detached) return;
    if (!streaming)
      this.#res.writeHead(status, { 'content-length': '0', ...this.#extra, ...this.#forClient(headers) });
    this.#res.end();
  }

  /**
   * Goes on with a stream whose reader lost it: what it missed, then what is still to come. An older connection, most
   * likely one that broke unseen, is ended.
   * @param seq the last event that the reader has
   */
  resume(record: ReplayStream, seq: number): void {
    if (this.#state !== 'waiting') return;
    this.#open();
    const priming = record.priming(seq);
    this.#res.write(priming ?? sseComment());
    let bytes = 0;
    for (const text of record.after(seq)) {
      bytes += typeof text === 'string' ? text.length : text.byteLength;
      writeText(this.#res, text);
    }
    const { response } = record;
    if (response === undefined) {
      record.fetched();
      this.endEmpty(200);
    } else response.#takeOver(this);
    if (bytes > SMALL_UP_TO) cutOffUnread(this.#res);
  }

  /**
   * Goes on with the stream of a client that is away on another connection of its, whose own answer begins with that.
   * @returns false where the client has missed more than is kept
   */
  continueOn(later: ClientResponse): boolean {
    const record = this.#record;
    if (!this.detached || record === undefined || !record.has(record.lastRead)) return false;
    later.resume(record, record.lastRead);
    return true;
  }

  /**
   * Ends the connection in the middle of a stream that the client was told how to take up: its server did so with its own,
   * or it has been held long enough (basic/transports, "Sending Messages to the Server").
   */
  detach(): void {
    if (this.#recorder === undefined || !this.#events || this.#state === 'done' || this.detached) return;
    this.#open();
    if (this.#record?.mayBeLeft !== true) return;
    const res = this.#res;
    res.off('close', this.#closed);
    this.#break(true);
    res.end();
  }

  /** The client is not expected back. */
  giveUp(): void {
    if (this.#state === 'detached') this.#leave();
  }

  #takeOver(later: ClientResponse): void {
    const old = this.#res;
    old.off('close', this.#closed);
    if (this.#state === 'stream') {
      // Nobody will read what waits there, and whoever wrote it waits as well.
      if (old.writableNeedDrain) old.destroy();
      else old.end();
    }
    const res = later.#res;
    res.off('close', later.#closed);
    later.#finish();
    this.#res = res;
    this.#state = 'stream';
    this.#lastWriteAt = performance.now();
    this.#record?.return();
    this.#hold();
    this.#options.ticker.add(this);
    res.on('close', this.#closed);
    this.#release();
  }

  #release(): void {
    const held = this.#held;
    this.#held = undefined;
    for (const resume of held ?? []) resume();
  }

  /** Headers as a list, which is what node writes fastest; a name that comes again replaces what it was before. */
  #withExtra(own: string[], headers: Headers | undefined): string[] {
    if (this.#extra === NO_HEADERS && headers === undefined) return own;
    const all: Record<string, string> = {};
    for (let i = 0; i < own.length; i += 2) all[own[i] as string] = own[i + 1] as string;
    return Object.entries(Object.assign(all, this.#extra, this.#forClient(headers))).flat();
  }

  #forClient(headers: Headers | undefined): Headers | undefined {
    const challenge = headers?.['www-authenticate'];
    if (challenge === undefined || this.#challengeOf === undefined) return headers;
    return { ...headers, 'www-authenticate': this.#challengeOf(challenge) };
  }

  #open(headers?: Headers): void {
    if (this.#state !== 'waiting') return;
    this.#state = 'stream';
    this.#status = 200;
    this.#res.writeHead(200, { ...STREAM_HEADERS, ...this.#extra, ...headers });
    this.#res.flushHeaders();
    this.#record = this.#recorder?.record(this);
    const priming = this.#record?.priming();
    if (priming !== undefined) this.#res.write(priming);
  }

  #finish(): void {
    this.#state = 'done';
    this.#options.ticker.remove(this);
    this.#onAbort = undefined;
    this.#record?.finish();
    this.#release();
  }

  #hold(): void {
    if (this.#holdMs < Number.POSITIVE_INFINITY) this.#detachAt = performance.now() + this.#holdMs;
  }

  readonly #closed = (): void => this.#break(false);

  /** @param detach whether it is the gateway that ends the connection */
  #break(detach: boolean): void {
    if (this.#state === 'done') return;
    if (this.#state === 'stream' && this.#record?.leave(detach)) {
      this.#state = 'detached';
      this.#options.ticker.remove(this);
    } else this.#leave();
  }

  #leave(): void {
    const listener = this.#onAbort;
    this.#aborted = true;
    this.#finish();
    listener?.();
  }
}

/** Large pieces are written as they are: joining them would hold them twice. */
function writeText(res: ServerResponse, text: EventText): void {
  if (typeof text === 'string') res.write(text, 'latin1');
  else if (text.byteLength <= SINGLE_WRITE_UP_TO) res.write(text.toBuffer());
  else {
    res.cork();
    for (const chunk of text.chunks) res.write(chunk);
    res.uncork();
  }
}
