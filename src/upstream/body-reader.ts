import type { TransportError } from './errors.js';

/** Receives the messages of a response body as they arrive. */
export interface MessageSink {
  /** A whole JSON body, or one event of a stream; `eventId` is the event's own id. */
  onMessage(bytes: Buffer, eventId: string | undefined): void;
  /** An event without data that only sets the id to resume from. */
  onPriming?(eventId: string): void;
  /** The pause before reconnecting that the server asks for, in milliseconds. */
  onRetry?(ms: number): void;
  /**
   * An event of another name than `message`.
   * @throws TransportError to end the response
   */
  onNamedEvent?(name: string, data: Buffer): void;
}

/** Whether a body arrived, or can be used, as a whole. */
export type BodyExtent = 'whole' | 'truncated';

/** Called when a body has been read to its end; `text` is the beginning of one that is neither JSON nor an event stream. */
export type BodyEnd = (usable: BodyExtent, text: string) => void;

/** Reads the body of one response. */
export interface BodyReader {
  readonly kind: 'json' | 'events' | 'text';
  /**
   * @returns false when its buffer is full; {@link BodyOwner.onDrain} follows
   * @throws TransportError, SseOverflowError
   */
  push(chunk: Buffer): boolean;
  /**
   * No more bytes come. What arrived of a truncated body is used as far as it is whole: servers announce wrong lengths
   * and end streams without the last blank line.
   * @param received `truncated` when the connection broke or stalled before the announced end
   * @throws TransportError, SseOverflowError
   */
  end(received: BodyExtent, done: BodyEnd): void;
  /** Discards the rest of the body. */
  discard(): void;
  /** Holds back messages that are buffered in the reader. */
  pause(): void;
  resume(): void;
}

/** The request whose response body is read. */
export interface BodyOwner {
  /** Greatest length in bytes of a JSON body and of one event. */
  readonly limit: number;
  readonly sink: MessageSink;
  /** The body cannot be read any further. */
  fail(error: TransportError): void;
  /** The reader whose buffer was full takes bytes again. */
  onDrain(): void;
}
