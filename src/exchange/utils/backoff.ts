export interface BackoffOptions {
  /** The first pause, in milliseconds; each further one is twice as long. */
  readonly firstMs: number;
  readonly longestMs: number;
  /** A connection that was up for longer begins again with the first pause. Default: infinite. */
  readonly steadyMs?: number;
  /** Milliseconds of a monotonic clock. */
  readonly now?: () => number;
}

/** For what is kept open to a backend: streams, sessions, processes. */
export const RECONNECT: BackoffOptions = { firstMs: 500, longestMs: 30_000, steadyMs: 10_000 };

/** Growing pauses between attempts at the same thing. The caller does the waiting. */
export class Backoff {
  readonly #firstMs: number;
  readonly #longestMs: number;
  readonly #steadyMs: number;
  readonly #now: () => number;
  #nextMs: number;
  #upSince: number | undefined;

  constructor({ firstMs, longestMs, steadyMs, now }: BackoffOptions) {
    this.#firstMs = firstMs;
    this.#longestMs = longestMs;
    this.#steadyMs = steadyMs ?? Number.POSITIVE_INFINITY;
    this.#now = now ?? (() => performance.now());
    this.#nextMs = firstMs;
  }

  /** The pause before the next attempt, in milliseconds; doubles the one after it. */
  next(): number {
    const pauseMs = this.#nextMs;
    this.#nextMs = Math.min(pauseMs * 2, this.#longestMs);
    return pauseMs;
  }

  /** Begins again with the first pause. */
  reset(): void {
    this.#nextMs = this.#firstMs;
  }

  /** An attempt succeeded. The pauses go on growing unless it lasts. */
  noteUp(): void {
    this.#upSince = this.#now();
  }

  /** It is down again. Resets the pauses if it was up for longer than `steadyMs`. */
  noteDown(): void {
    if (this.#upSince !== undefined && this.#now() - this.#upSince > this.#steadyMs) this.reset();
    this.#upSince = undefined;
  }
}
