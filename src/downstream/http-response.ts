import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Ticker, Ticking } from '../exchange/utils/ticker.js';
import { NOWHERE } from '../exchange/utils/unordered-set.js';
import { Rope } from '../jsonrpc/index.js';
import { type Accepted, readAccept } from './accept.js';
import { EventStream, type MessageStream } from './event-stream.js';
import type { Recorder, ReplayStream, StreamOwner } from './replay-stream.js';
import type { ClientResponse } from './response.js';
import { type EventText, type Headers, ResponseWriter, type WriterOptions } from './response-writer.js';
import { ResumableStream } from './resumable-stream.js';

export interface ResponseTimes {
  readonly ticker: Ticker;
  /** After this many milliseconds a slow response becomes a stream, and a quiet stream gets a comment. */
  readonly keepAliveMs: number;
}

/**
 * The response to an HTTP request. It becomes an event stream when something is written before the outcome, or when the
 * outcome takes long; else it is a JSON body. Only media types that the client accepts are used: a client that accepts
 * JSON alone gets the outcome alone.
 */
export class HttpResponse implements ClientResponse, StreamOwner, Ticking {
  place = NOWHERE;
  readonly #writer: ResponseWriter;
  readonly #times: ResponseTimes;
  readonly #accepted: Accepted;
  /** When it was decided that the response may be a stream, or became one. */
  #since = performance.now();
  #status = 0;
  #done = false;
  #aborted = false;
  #stream: MessageStream | undefined;
  /** The stream, where it is one that can be resumed. */
  #resumable: ResumableStream | undefined;
  #recorder: Recorder | undefined;
  #holdMs = Number.POSITIVE_INFINITY;
  #abortListeners: (() => void)[] | undefined;
  #endListeners: (() => void)[] | undefined;

  constructor(req: IncomingMessage, res: ServerResponse, options: WriterOptions, times: ResponseTimes) {
    this.#writer = new ResponseWriter(res, options);
    this.#times = times;
    this.#accepted = readAccept(req.headers.accept);
    this.#writer.onClose(() => {
      if (this.#resumable === undefined) this.#abort();
    });
  }

  get status(): number {
    return this.#status;
  }

  get done(): boolean {
    return this.#done;
  }

  get aborted(): boolean {
    return this.#aborted;
  }

  get reachable(): boolean {
    return !this.#aborted && !this.disconnected;
  }

  get acceptsEvents(): boolean {
    return this.#accepted.events;
  }

  get streaming(): boolean {
    return this.#stream !== undefined && !this.#done;
  }

  /** The stream has lost its connection, or was detached from it, and can be resumed. */
  get detached(): boolean {
    return this.#resumable?.detached === true;
  }

  /** The stream has lost its connection, and the client may or may not resume it. */
  get disconnected(): boolean {
    return this.#resumable?.disconnected === true;
  }

  /** Bytes that the client has not read yet. */
  get unreadBytes(): number {
    return this.#writer.unreadBytes;
  }

  onAbort(listener: () => void): void {
    if (this.#aborted) listener();
    else if (this.#abortListeners === undefined) this.#abortListeners = [listener];
    else this.#abortListeners.push(listener);
  }

  offAbort(listener: () => void): void {
    this.#abortListeners = this.#abortListeners?.filter((other) => other !== listener);
  }

  /** Calls `listener` when the response has ended or was aborted. */
  onEnd(listener: () => void): void {
    this.#endListeners ??= [];
    this.#endListeners.push(listener);
  }

  makeResumable(recorder: Recorder, holdMs = Number.POSITIVE_INFINITY): void {
    if (this.#stream !== undefined) return;
    this.#recorder = recorder;
    this.#holdMs = holdMs;
  }

  allowStream(): void {
    if (this.#done || this.#stream !== undefined || !this.#accepted.events) return;
    this.#since = performance.now();
    this.#times.ticker.add(this);
  }

  tick(now: number): void {
    const { keepAliveMs } = this.#times;
    if (this.#stream === undefined && now - this.#since < Math.min(keepAliveMs, this.#holdMs)) return;
    this.#open().tick(now, keepAliveMs);
  }

  writeEvent(message: Rope): boolean {
    if (this.#done || !this.#accepted.events) return true;
    return this.#open().send(message);
  }

  onDrain(resume: () => void): void {
    if (this.#stream === undefined || this.#done) resume();
    else this.#stream.onDrain(resume);
  }

  /**
   * Opens the event stream at once.
   * @param first events to begin with, which are not recorded
   */
  openStream(first?: EventText): void {
    if (this.#done || this.#stream !== undefined) return;
    this.#open().comment();
    if (first !== undefined) this.#writer.write(first);
  }

  end(status: number, message: Rope, headers?: Headers): void {
    if (this.#done) return;
    if (this.#stream === undefined && !(status === 200 && this.#prefersEvents)) {
      this.#status = status;
      this.#finish();
      this.#writer.json(status, message, headers);
      return;
    }
    const stream = this.#open(headers);
    this.#finish();
    stream.end(message);
  }

  endBatch(messages: readonly Rope[]): void {
    if (this.#stream !== undefined) {
      for (const message of messages) this.writeEvent(message);
      this.endEmpty(200);
      return;
    }
    const array = new Rope().push('[');
    for (const [index, message] of messages.entries()) array.push(index === 0 ? '' : ',').push(message);
    this.end(200, array.push(']'));
  }

  endEmpty(status: number, headers?: Headers): void {
    if (this.#done) return;
    this.#status ||= status;
    this.#finish();
    if (this.#stream === undefined) this.#writer.empty(status, headers);
    else this.#stream.end();
  }

  /** Closes the connection of a client that has much to read and reads nothing of it for long. */
  limitUnread(): void {
    if (this.#writer.paused) this.#writer.limitUnread();
  }

  detach(): void {
    if (this.#recorder === undefined || !this.#accepted.events || this.#done) return;
    this.#open();
    this.#resumable?.detach();
  }

  /**
   * Resumes a recorded stream on the connection of this response: first the events that the client missed, then those
   * still to come.
   * @param seq number of the last event that the client has
   */
  resume(record: ReplayStream, seq: number): void {
    if (this.#done || this.#stream !== undefined) return;
    this.#status = 200;
    this.#finish();
    record.resume(new EventStream(this.#writer), seq);
  }

  /**
   * Continues a detached stream on the connection of another response of the same client.
   * @returns false where events that the client missed are no longer kept
   */
  continueOn(later: HttpResponse): boolean {
    const resumable = this.#resumable;
    if (resumable?.detached !== true) return false;
    const { record } = resumable;
    if (!record.has(record.lastRead)) return false;
    later.resume(record, record.lastRead);
    return true;
  }

  attach(connection: EventStream): void {
    this.#resumable?.attach(connection);
  }

  expire(): void {
    if (this.detached) this.#abort();
  }

  /** Whether an outcome that could be JSON is written as an event: the client accepts no JSON, or names streams first. */
  get #prefersEvents(): boolean {
    const { json, eventsFirst } = this.#accepted;
    return !json || (eventsFirst && this.#recorder !== undefined);
  }

  #open(headers?: Headers): MessageStream {
    if (this.#stream !== undefined) return this.#stream;
    this.#status = 200;
    this.#times.ticker.add(this);
    const connection = new EventStream(this.#writer, headers);
    const record = this.#recorder?.record(this);
    if (record !== undefined) {
      this.#resumable = new ResumableStream(connection, record, {
        holdMs: this.#holdMs,
        heldSince: this.#since,
        onLost: () => this.#abort(),
      });
    }
    this.#stream = this.#resumable ?? connection;
    return this.#stream;
  }

  #abort(): void {
    if (this.#done) return;
    this.#aborted = true;
    const listeners = this.#abortListeners ?? [];
    this.#done = true;
    this.#times.ticker.remove(this);
    this.#resumable?.finish();
    for (const listener of listeners) listener();
    this.#notifyEnd();
  }

  #finish(): void {
    this.#done = true;
    this.#times.ticker.remove(this);
    this.#abortListeners = undefined;
    this.#notifyEnd();
  }

  #notifyEnd(): void {
    const listeners = this.#endListeners;
    this.#endListeners = undefined;
    for (const listener of listeners ?? []) listener();
  }
}
