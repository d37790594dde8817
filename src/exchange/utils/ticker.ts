import { UnorderedSet, type UnorderedSetItem } from './unordered-set.js';

/** Something that wants to be looked at now and then: a deadline, a quiet stream. */
export interface Ticking extends UnorderedSetItem {
  /** @param now milliseconds of the monotonic clock (`performance.now()`) */
  tick(now: number): void;
}

/**
 * One timer for everything that waits. A timer for each request costs more than the request's own bookkeeping; what
 * waits here is looked at every {@link Ticker.everyMs}, so nothing is late by more than that.
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
