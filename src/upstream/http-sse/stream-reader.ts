import type { Frame } from '../../jsonrpc/index.js';
import type { Backpressure } from '../backpressure.js';
import type { ResponseSink, UpstreamRequest } from '../transport.js';
import type { StreamConsumer } from './stream-consumer.js';

export interface StreamReaderOwner {
  onReaderAborted(reader: StreamReader): void;
  waitFor(consumer: StreamConsumer, backpressure: Backpressure): void;
}

/** Reads server messages not tied to a request, as the standalone GET stream of a session. */
export class StreamReader implements UpstreamRequest, StreamConsumer {
  dropsNotifications = false;
  readonly #owner: StreamReaderOwner;
  readonly #sink: ResponseSink;
  #closed = false;

  constructor(owner: StreamReaderOwner, sink: ResponseSink) {
    this.#owner = owner;
    this.#sink = sink;
  }

  take(frame: Frame): void {
    if (this.#closed || (this.dropsNotifications && frame.type === 'notification')) return;
    const { bytes, root } = frame;
    this.#sink.onMessage(bytes.subarray(root.start, root.end), undefined);
  }

  end(): void {
    if (!this.#closed) this.#sink.onEnd('');
    this.#closed = true;
  }

  abort(): void {
    this.#closed = true;
    this.#owner.onReaderAborted(this);
  }

  waitFor(backpressure: Backpressure | undefined): void {
    if (backpressure !== undefined && !this.#closed) this.#owner.waitFor(this, backpressure);
  }
}
