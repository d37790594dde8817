import type { Rope } from '../jsonrpc/index.js';
import type { EventStream, MessageStream } from './event-stream.js';
import type { ReplayStream } from './replay-stream.js';

export interface ResumableStreamOptions {
  /** Longest time that one connection is held, in milliseconds; the client resumes on another one. */
  readonly holdMs: number;
  /** When the connection began to be held, on the monotonic clock. */
  readonly heldSince: number;
  /** Called when the connection broke and the stream cannot be resumed. */
  readonly onLost: () => void;
}

/**
 * An event stream that outlives its connection: while it has none it is detached and its events are only recorded,
 * until the client resumes it on another connection.
 */
export class ResumableStream implements MessageStream {
  readonly record: ReplayStream;
  readonly #options: ResumableStreamOptions;
  #connection: EventStream | undefined;
  #ended = false;
  #detachAt: number;
  /** Resume callbacks of those that wait for the client to reconnect. */
  #waiting: (() => void)[] = [];

  /** Writes the priming event of the record. */
  constructor(connection: EventStream, record: ReplayStream, options: ResumableStreamOptions) {
    this.#connection = connection;
    this.record = record;
    this.#options = options;
    this.#detachAt = options.heldSince + options.holdMs;
    this.#watch(connection);
    const priming = record.priming();
    if (priming !== undefined) connection.write(priming);
  }

  /** The stream has no connection, and the client may resume it. */
  get detached(): boolean {
    return this.#connection === undefined && !this.#ended;
  }

  /** Detached because the connection broke: the client may not know how to resume. */
  get disconnected(): boolean {
    return this.detached && !this.record.detached;
  }

  send(message: Rope): boolean {
    const text = this.record.event(message);
    return this.#connection === undefined ? !this.record.crowded : this.#connection.write(text);
  }

  comment(): void {
    this.#connection?.comment();
  }

  onDrain(resume: () => void): void {
    if (this.#connection !== undefined) this.#connection.onDrain(resume);
    else if (!this.#ended && this.record.crowded) this.#waiting.push(resume);
    else resume();
  }

  tick(now: number, quietMs: number): void {
    const connection = this.#connection;
    // A slow client reads first what was written before.
    if (now >= this.#detachAt && connection?.paused === false) this.detach();
    this.#connection?.tick(now, quietMs);
  }

  /** Closes the connection, if the client knows how to resume. */
  detach(): void {
    const connection = this.#connection;
    if (connection === undefined || !this.record.detachable) return;
    this.#connection = undefined;
    this.record.detach();
    connection.end();
  }

  /** Continues on another connection; an older one, most likely broken without notice, is ended. */
  attach(connection: EventStream): void {
    this.#connection?.abandon();
    this.#connection = connection;
    this.#watch(connection);
    this.#detachAt = performance.now() + this.#options.holdMs;
    this.record.attached();
    this.#release();
  }

  end(last?: Rope): void {
    const connection = this.#connection;
    const text = last === undefined ? undefined : this.record.event(last);
    this.finish();
    connection?.endWith(text);
  }

  /** Nothing more will be written; what was recorded can still be fetched. */
  finish(): void {
    this.#ended = true;
    this.#connection = undefined;
    this.record.finish();
    this.#release();
  }

  #watch(connection: EventStream): void {
    connection.onClose(() => {
      if (connection !== this.#connection) return;
      if (this.record.disconnect()) this.#connection = undefined;
      else this.#options.onLost();
    });
  }

  #release(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resume of waiting) resume();
  }
}
