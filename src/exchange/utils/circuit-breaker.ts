import { ExchangeError } from '../errors.js';

/** So many callers in a row wait in vain before the others are spared the wait. */
const TRIES = 3;
/** How long they are, until one of them tries again. */
const PAUSE_MS = 5_000;

/**
 * Spares callers the wait for a backend that lets everybody wait in vain. After a few of them the others are told at
 * once what those were told in the end; now and then one tries again, and whatever comes quickly ends it.
 */
export class CircuitBreaker {
  readonly #slowMs: number;
  readonly #pauseMs: number;
  #inVain = 0;
  #last: ExchangeError | undefined;
  #until = 0;

  /** @param limitMs after how long whoever waits gives up */
  constructor(limitMs: number, pauseMs = PAUSE_MS) {
    this.#slowMs = limitMs / 2;
    this.#pauseMs = pauseMs;
  }

  /** @throws ExchangeError at once while nothing can be expected; whatever `work` throws */
  async wait<T>(work: () => Promise<T>): Promise<T> {
    const begunAt = performance.now();
    if (this.#last !== undefined && this.#inVain >= TRIES) {
      if (begunAt < this.#until) throw this.#last;
      this.#until = begunAt + this.#pauseMs;
    }
    try {
      const done = await work();
      this.#inVain = 0;
      return done;
    } catch (error) {
      const slow = performance.now() - begunAt >= this.#slowMs;
      if (slow && error instanceof ExchangeError) {
        this.#inVain++;
        this.#last = error;
        this.#until = performance.now() + this.#pauseMs;
      } else this.#inVain = 0;
      throw error;
    }
  }
}
