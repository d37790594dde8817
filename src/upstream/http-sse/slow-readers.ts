import type { Backpressure } from '../backpressure.js';
import type { StreamConsumer } from './stream-consumer.js';

interface SlowReaderOptions {
  /** See {@link HttpSseTimings.slowReaderMs}. */
  readonly slowReaderMs: number;
  /** Pauses the stream until the function that the backpressure gets is called. */
  readonly pause: (backpressure: Backpressure) => void;
  /** Whether any consumer that is not slow waits for messages on the stream. */
  readonly othersWait: (slow: ReadonlySet<StreamConsumer>) => boolean;
}

/**
 * The slow consumers of one stream. The stream pauses for them, so that they miss nothing. If others wait for it, it
 * resumes after a while, and the slow ones miss notifications until they have drained.
 */
export class SlowReaders {
  readonly #options: SlowReaderOptions;
  readonly #slow = new Set<StreamConsumer>();
  #resumeStream: (() => void) | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: SlowReaderOptions) {
    this.#options = options;
  }

  waitFor(consumer: StreamConsumer, backpressure: Backpressure): void {
    if (this.#slow.has(consumer)) return;
    this.#slow.add(consumer);
    if (this.#resumeStream === undefined) {
      this.#options.pause((resume) => {
        this.#resumeStream = resume;
      });
      this.#timer = setInterval(() => this.#check(), this.#options.slowReaderMs).unref();
    }
    backpressure(() => this.#onDrained(consumer));
  }

  /** The stream is over. */
  clear(): void {
    clearInterval(this.#timer);
    this.#slow.clear();
  }

  #onDrained(consumer: StreamConsumer): void {
    consumer.dropsNotifications = false;
    this.#slow.delete(consumer);
    if ([...this.#slow].every(({ dropsNotifications }) => dropsNotifications)) this.#resume();
  }

  #check(): void {
    if (!this.#options.othersWait(this.#slow)) return;
    for (const consumer of this.#slow) consumer.dropsNotifications = true;
    this.#resume();
  }

  #resume(): void {
    clearInterval(this.#timer);
    const resume = this.#resumeStream;
    this.#resumeStream = undefined;
    resume?.();
  }
}
