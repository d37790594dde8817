import { LRUCache } from 'lru-cache';
import { ExchangeError } from '../errors.js';

/** Slow failures in a row that open the circuit. */
const MAX_FAILURES = 3;
/** How long it stays open before one attempt is let through. */
const OPEN_MS = 5_000;

/**
 * Fails fast while a backend lets its callers wait for nothing. After a few slow failures in a row the others get the
 * last error at once. From time to time one attempt is let through; anything but another slow failure closes the circuit.
 */
export class CircuitBreaker {
  readonly #slowMs: number;
  readonly #openMs: number;
  #failures = 0;
  #lastError: ExchangeError | undefined;
  #openUntil = 0;

  /** @param limitMs time limit of an attempt, in milliseconds */
  constructor(limitMs: number, openMs = OPEN_MS) {
    this.#slowMs = limitMs / 2;
    this.#openMs = openMs;
  }

  /** @throws ExchangeError at once while the circuit is open; otherwise what `work` throws */
  async wait<T>(work: () => Promise<T>): Promise<T> {
    const begunAt = performance.now();
    if (this.#lastError !== undefined && this.#failures >= MAX_FAILURES) {
      if (begunAt < this.#openUntil) throw this.#lastError;
      this.#openUntil = begunAt + this.#openMs;
    }
    try {
      const done = await work();
      this.#failures = 0;
      return done;
    } catch (error) {
      const slow = performance.now() - begunAt >= this.#slowMs;
      if (slow && error instanceof ExchangeError) {
        this.#failures++;
        this.#lastError = error;
        this.#openUntil = performance.now() + this.#openMs;
      } else this.#failures = 0;
      throw error;
    }
  }
}

/** Kinds of callers that have a breaker of their own at a time. */
const REMEMBERED = 1_000;

/** A circuit breaker for each kind of caller: a backend that is slow for one may serve the others. */
export class CircuitBreakers {
  readonly #limitMs: number;
  readonly #breakers = new LRUCache<string, CircuitBreaker>({ max: REMEMBERED });

  /** @param limitMs as for {@link CircuitBreaker} */
  constructor(limitMs: number) {
    this.#limitMs = limitMs;
  }

  /** @param key equal for callers to whom the backend behaves alike */
  wait<T>(key: string, work: () => Promise<T>): Promise<T> {
    let breaker = this.#breakers.get(key);
    if (breaker === undefined) {
      breaker = new CircuitBreaker(this.#limitMs);
      this.#breakers.set(key, breaker);
    }
    return breaker.wait(work);
  }
}
