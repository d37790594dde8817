import type { Backpressure } from '../backpressure.js';
import type { ResponseSink, UpstreamRequest } from '../transport.js';
import type { Consumer } from './consumer.js';

/** Messages that are kept until the stream is opened: servers ask for roots right after the handshake. */
const MAX_KEPT = 100;
const MAX_KEPT_BYTES = 4 * 1024 * 1024;

/** A session on a process, with its standalone GET stream. */
export class StdioSession implements Consumer {
  backlogged = false;
  readonly id: string;
  #stream: ResponseSink | undefined;
  #kept: Buffer[] = [];
  #keptBytes = 0;
  #wasOpened = false;
  readonly #onBackpressure: (session: StdioSession, backpressure: Backpressure) => void;

  constructor(id: string, onBackpressure: (session: StdioSession, backpressure: Backpressure) => void) {
    this.id = id;
    this.#onBackpressure = onBackpressure;
  }

  /** Whether the stream is open. */
  get hasStream(): boolean {
    return this.#stream !== undefined;
  }

  /** Opens the stream, and ends an older one. */
  openStream(sink: ResponseSink): UpstreamRequest {
    const older = this.#stream;
    this.#stream = sink;
    this.#wasOpened = true;
    queueMicrotask(() => {
      older?.onEnd('');
      if (this.#stream !== sink) return;
      sink.onHead(200, { 'content-type': 'text/event-stream' });
      const kept = this.#kept;
      this.#kept = [];
      this.#keptBytes = 0;
      for (const message of kept) this.deliverRequest(message);
    });
    return {
      abort: () => {
        if (this.#stream === sink) this.#stream = undefined;
      },
      waitFor: (backpressure) => {
        if (backpressure !== undefined && this.#stream === sink) this.#onBackpressure(this, backpressure);
      },
    };
  }

  /**
   * Sends a server request on the stream, or keeps it until the stream is opened.
   * @returns false where there is no room to keep it
   */
  deliverRequest(message: Buffer): boolean {
    return this.#send(message) || this.#keep(message);
  }

  /** Sends a notification on the stream. Without a stream it is kept only if there has never been one. */
  deliverNotification(message: Buffer): void {
    if (!this.#send(message) && !this.#wasOpened) this.#keep(message);
  }

  /** The process is gone, or the session has ended. */
  end(): void {
    const stream = this.#stream;
    this.#stream = undefined;
    stream?.onEnd('');
  }

  #send(message: Buffer): boolean {
    const stream = this.#stream;
    stream?.onMessage(message, undefined);
    return stream !== undefined;
  }

  #keep(message: Buffer): boolean {
    if (this.#kept.length >= MAX_KEPT || this.#keptBytes + message.length > MAX_KEPT_BYTES) return false;
    this.#kept.push(message);
    this.#keptBytes += message.length;
    return true;
  }
}
