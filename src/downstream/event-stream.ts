import { type Rope, sseComment, sseEvent } from '../jsonrpc/index.js';
import {
  type EventText,
  type Headers,
  type ResponseWriter,
  SMALL_UP_TO_BYTES,
  sizeOf,
} from './response-writer.js';

/** A stream of messages to a client: over one connection, or over several in turn. */
export interface MessageStream {
  /** @returns false when the client reads slowly */
  send(message: Rope): boolean;
  /** Writes a comment, which clients ignore. */
  comment(): void;
  /** Calls `resume` once the client has read what was written, or can read nothing more. */
  onDrain(resume: () => void): void;
  /**
   * Writes a comment if the stream has been quiet for long, so that no proxy closes it.
   * @param now milliseconds of the monotonic clock
   */
  tick(now: number, quietMs: number): void;
  /** Ends the stream, after a last message if there is one. */
  end(last?: Rope): void;
}

/** An event stream on one connection. */
export class EventStream implements MessageStream {
  readonly #writer: ResponseWriter;
  #lastWriteAt = Number.NEGATIVE_INFINITY;

  /** Sends the headers of the stream. */
  constructor(writer: ResponseWriter, headers?: Headers) {
    this.#writer = writer;
    writer.openEvents(headers);
  }

  /** Whether the client has to read before more should be written. */
  get paused(): boolean {
    return this.#writer.paused;
  }

  onClose(listener: () => void): void {
    this.#writer.onClose(listener);
  }

  send(message: Rope): boolean {
    return this.write(sseEvent(message));
  }

  /**
   * Writes events as they are.
   * @returns false when the client reads slowly
   */
  write(text: EventText): boolean {
    this.#lastWriteAt = performance.now();
    return this.#writer.write(text);
  }

  /** Writes recorded events, of which there may be many. */
  writeAll(texts: readonly EventText[]): void {
    let bytes = 0;
    for (const text of texts) {
      bytes += sizeOf(text);
      this.write(text);
    }
    if (bytes > SMALL_UP_TO_BYTES) this.#writer.limitUnread();
  }

  comment(): void {
    this.write(sseComment());
  }

  onDrain(resume: () => void): void {
    this.#writer.onDrain(resume);
  }

  tick(now: number, quietMs: number): void {
    if (now - this.#lastWriteAt < quietMs) return;
    // A client with unread bytes on its connection needs no comment.
    if (this.paused) this.#lastWriteAt = now;
    else this.comment();
  }

  end(last?: Rope): void {
    this.endWith(last === undefined ? undefined : sseEvent(last));
  }

  /** Ends the stream, after events that are written as they are. */
  endWith(last?: EventText): void {
    this.#writer.end(last);
  }

  /** Ends a stream that another connection replaces: nobody reads what is still unread. */
  abandon(): void {
    if (this.paused) this.#writer.destroy();
    else this.#writer.end();
  }
}
