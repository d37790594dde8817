const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 30_000;

/**
 * How soon a server is started again that ends, or says nothing, before it has answered anything: with growing pauses,
 * in which everybody is told at once why.
 */
export class Restarts {
  #failures = 0;
  #reason = '';
  #until = 0;

  /** A process ended without ever having answered. */
  failed(reason: string): void {
    const pause = Math.min(FIRST_PAUSE_MS * 2 ** this.#failures, LONGEST_PAUSE_MS);
    this.#failures = Math.min(this.#failures + 1, 16);
    this.#reason = reason;
    this.#until = performance.now() + pause;
  }

  worked(): void {
    this.#failures = 0;
    this.#until = 0;
  }

  /** Why it is not to be started now; undefined where it may be. */
  get refusal(): string | undefined {
    const left = this.#until - performance.now();
    if (left <= 0) return undefined;
    const times = this.#failures === 1 ? '' : ` (${this.#failures} times in a row)`;
    return `${this.#reason}${times}; it is not started again for ${(left / 1000).toFixed(1)} s`;
  }
}
