const WINDOW_MS = 10_000;

/** Allows `max` events of a kind in any window of ten seconds. */
export class LogRate {
  readonly #max: number;
  #count = 0;
  #windowStart = Number.NEGATIVE_INFINITY;

  constructor(max: number) {
    this.#max = max;
  }

  allows(): boolean {
    const now = performance.now();
    if (now - this.#windowStart > WINDOW_MS) {
      this.#windowStart = now;
      this.#count = 0;
    }
    return ++this.#count <= this.#max;
  }
}
