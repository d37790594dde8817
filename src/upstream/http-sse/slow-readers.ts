import type { Backpressure } from '../backpressure.js';
import type { Receiver } from './posted-request.js';

/** How long all of a session wait for one slow reader. */
const PATIENCE_MS = 1_000;

/**
 * The readers of one stream that lag behind. The stream is held up for them, so that nobody misses anything; but when
 * others wait for what comes behind, it goes on, and a laggard misses what is only told until it has caught up.
 */
export class SlowReaders {
  readonly #hold: (backpressure: Backpressure) => void;
  readonly #othersWait: (slowReaders: ReadonlySet<Receiver>) => boolean;
  readonly #lagging = new Set<Receiver>();
  #release: (() => void) | undefined;
  #timer: NodeJS.Timeout | undefined;

  /**
   * @param hold stops reading the stream until it is told to go on
   * @param othersWait whether anybody else waits for something on the stream
   */
  constructor(
    hold: (backpressure: Backpressure) => void,
    othersWait: (slowReaders: ReadonlySet<Receiver>) => boolean,
  ) {
    this.#hold = hold;
    this.#othersWait = othersWait;
  }

  waitFor(receiver: Receiver, backpressure: Backpressure): void {
    if (this.#lagging.has(receiver)) return;
    this.#lagging.add(receiver);
    if (this.#release === undefined) {
      this.#hold((release) => {
        this.#release = release;
      });
      this.#timer = setInterval(() => this.#lookRound(), PATIENCE_MS).unref();
    }
    backpressure(() => this.#caughtUp(receiver));
  }

  /** The stream is over. */
  clear(): void {
    clearInterval(this.#timer);
    this.#lagging.clear();
  }

  #caughtUp(receiver: Receiver): void {
    receiver.lossy = false;
    this.#lagging.delete(receiver);
    if ([...this.#lagging].every(({ lossy }) => lossy)) this.#goOn();
  }

  #lookRound(): void {
    if (!this.#othersWait(this.#lagging)) return;
    for (const receiver of this.#lagging) receiver.lossy = true;
    this.#goOn();
  }

  #goOn(): void {
    clearInterval(this.#timer);
    const release = this.#release;
    this.#release = undefined;
    release?.();
  }
}
