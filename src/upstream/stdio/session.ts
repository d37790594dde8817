import type { Backpressure } from '../backpressure.js';
import type { ResponseSink, UpstreamRequest } from '../transport.js';
import type { Recipient } from './in-flight-request.js';

/** Messages that are kept until somebody listens: servers ask for roots as soon as they are let. */
const MAX_KEPT = 100;
const MAX_KEPT_BYTES = 4 * 1024 * 1024;

/** A session that a process was given, and the way of what comes outside any request on it. */
export class StdioSession implements Recipient {
  lags = false;
  readonly id: string;
  #stream: ResponseSink | undefined;
  #kept: Buffer[] = [];
  #keptBytes = 0;
  #listened = false;
  readonly #onLag: (session: StdioSession, backpressure: Backpressure) => void;

  constructor(id: string, onLag: (session: StdioSession, backpressure: Backpressure) => void) {
    this.id = id;
    this.#onLag = onLag;
  }

  /** Whether somebody takes what comes outside any request. */
  get heard(): boolean {
    return this.#stream !== undefined;
  }

  /** Opens the stream; an older one makes way. */
  listen(sink: ResponseSink): UpstreamRequest {
    const older = this.#stream;
    this.#stream = sink;
    this.#listened = true;
    queueMicrotask(() => {
      older?.onEnd('');
      if (this.#stream !== sink) return;
      sink.onHead(200, { 'content-type': 'text/event-stream' });
      const kept = this.#kept;
      this.#kept = [];
      this.#keptBytes = 0;
      for (const message of kept) this.tell(message, true);
    });
    return {
      abort: () => {
        if (this.#stream === sink) this.#stream = undefined;
      },
      waitFor: (backpressure) => {
        if (backpressure !== undefined && this.#stream === sink) this.#onLag(this, backpressure);
      },
    };
  }

  /**
   * Hands over a message outside any request. Where nobody listens it is kept if it must be answered, or if nobody has
   * had the time to listen yet.
   * @returns whether it is handed over, kept, or of the kind that nobody needs
   */
  tell(message: Buffer, mustBeAnswered: boolean): boolean {
    if (this.#stream !== undefined) {
      this.#stream.onMessage(message, undefined);
      return true;
    }
    if (this.#listened && !mustBeAnswered) return true;
    if (this.#kept.length >= MAX_KEPT || this.#keptBytes + message.length > MAX_KEPT_BYTES) return false;
    this.#kept.push(message);
    this.#keptBytes += message.length;
    return true;
  }

  /** The process is gone, or has ended the session. */
  end(): void {
    const stream = this.#stream;
    this.#stream = undefined;
    stream?.onEnd('');
  }
}
