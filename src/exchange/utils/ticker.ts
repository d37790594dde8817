import { UnorderedSet, type UnorderedSetItem } from './unordered-set.js';

/** Checks a time limit regularly. */
export interface Ticking extends UnorderedSetItem {
  /** @param now milliseconds of the monotonic clock (`performance.now()`) */
  tick(now: number): void;
}

/**
 * One timer for many time limits, each of which is checked every {@link Ticker.everyMs} and is late by no more than that.
 * A timer for each request costs more than the rest of its bookkeeping.
 */
export class Ticker {
  readonly everyMs: number;
  readonly #waiting = new UnorderedSet<Ticking>();
  #timer: NodeJS.Timeout | undefined;

  constructor(everyMs = 250) {
    this.everyMs = everyMs;
  }

  add(item: Ticking): void {
    this.#waiting.add(item);
    this.#timer ??= setInterval(this.#run, this.everyMs).unref();
  }

  remove(item: Ticking): void {
    this.#waiting.remove(item);
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#waiting.clear();
  }

  readonly #run = (): void => {
    if (this.#waiting.size === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
      return;
    }
    const now = performance.now();
    this.#waiting.each((item) => item.tick(now));
  };
}
