import type { Frame } from '../../jsonrpc/index.js';
import type { Backpressure } from '../backpressure.js';
import type { ResponseSink, UpstreamRequest } from '../transport.js';
import type { Receiver } from './posted-request.js';

/** The session whose stream is listened to. */
export interface ReadableSession {
  unlisten(reader: StreamReader): void;
  waitFor(receiver: Receiver, backpressure: Backpressure): void;
}

/** Whoever hears what belongs to no request. */
export class StreamReader implements UpstreamRequest, Receiver {
  lossy = false;
  readonly #session: ReadableSession;
  readonly #sink: ResponseSink;
  #closed = false;

  constructor(session: ReadableSession, sink: ResponseSink) {
    this.#session = session;
    this.#sink = sink;
  }

  take(frame: Frame): void {
    if (this.#closed || (this.lossy && frame.type === 'notification')) return;
    const { bytes, root } = frame;
    this.#sink.onMessage(bytes.subarray(root.start, root.end), undefined);
  }

  end(): void {
    if (!this.#closed) this.#sink.onEnd('');
    this.#closed = true;
  }

  abort(): void {
    this.#closed = true;
    this.#session.unlisten(this);
  }

  waitFor(backpressure: Backpressure | undefined): void {
    if (backpressure !== undefined && !this.#closed) this.#session.waitFor(this, backpressure);
  }
}
