import type { Backpressure } from '../backpressure.js';
import type { Child } from './child.js';
import type { Consumer } from './consumer.js';

/** Pauses reading the output of a process for one backlogged consumer at a time. */
export class OutputPause {
  readonly #child: Child;
  #pausedFor: Consumer | undefined;

  constructor(child: Child) {
    this.#child = child;
  }

  /**
   * Marks a consumer as backlogged until it has drained.
   * @param isAlone whether the output has no other consumer, so that reading may pause
   */
  apply(consumer: Consumer, backpressure: Backpressure, isAlone: () => boolean): void {
    if (consumer.backlogged) return;
    consumer.backlogged = true;
    if (isAlone()) {
      this.#pausedFor = consumer;
      this.#child.pause();
    }
    backpressure(() => {
      consumer.backlogged = false;
      if (this.#pausedFor === consumer) this.end();
    });
  }

  /** Whether reading is paused for this consumer. */
  isFor(consumer: Consumer): boolean {
    return this.#pausedFor === consumer;
  }

  /** Resumes reading. */
  end(): void {
    if (this.#pausedFor === undefined) return;
    this.#pausedFor = undefined;
    this.#child.resume();
  }
}
