import { Backoff, RECONNECT } from '../../exchange/backoff.js';

/**
 * How soon a server is started again that ends, or says nothing, before it has been of any use: at once after the first
 * time, which may be an accident, then with growing pauses, in which everybody is told at once why.
 */
export class Restarts {
  readonly #backoff = new Backoff(RECONNECT);
  #failures = 0;
  #failedAt = Number.NEGATIVE_INFINITY;
  #reason = '';
  #until = 0;

  /**
   * A process was of no use.
   * @param startedAt of those that were started before the last failure, the first one has told all that they can tell
   */
  failed(reason: string, startedAt: number): void {
    if (startedAt < this.#failedAt) return;
    const now = performance.now();
    this.#failedAt = now;
    this.#failures++;
    this.#reason = reason;
    if (this.#failures === 1) return;
    this.#until = now + this.#backoff.next();
  }

  worked(): void {
    this.#failures = 0;
    this.#backoff.reset();
    this.#until = 0;
  }

  /** Why it is not to be started now; undefined where it may be. */
  get refusal(): string | undefined {
    const left = this.#until - performance.now();
    if (left <= 0) return undefined;
    const pause = `it is not started again for ${(left / 1000).toFixed(1)} s`;
    return `${this.#reason} (${this.#failures} times in a row); ${pause}`;
  }
}
