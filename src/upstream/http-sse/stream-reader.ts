import type { Frame } from '../../jsonrpc/index.js';
import type { CatchUp } from '../backpressure.js';
import type { AnswerSink, Transmission } from '../transport.js';
import type { Receiver } from './posted-request.js';

/** The session whose stream is listened to. */
export interface Heard {
  unlisten(ears: StreamEars): void;
  waitFor(receiver: Receiver, catchUp: CatchUp): void;
}

/** Whoever hears what belongs to no request. */
export class StreamEars implements Transmission, Receiver {
  lossy = false;
  readonly #session: Heard;
  readonly #sink: AnswerSink;
  #closed = false;

  constructor(session: Heard, sink: AnswerSink) {
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

  waitFor(catchUp: CatchUp | undefined): void {
    if (catchUp !== undefined && !this.#closed) this.#session.waitFor(this, catchUp);
  }
}
