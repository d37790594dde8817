import { Backoff, type BackoffOptions } from '../../exchange/utils/backoff.js';

/**
 * Delays starting a command whose processes end, or hang, before they have answered a request. The first failure may be an accident
 * and causes no pause; each further one causes a longer pause, in which requests fail at once with the reason.
 */
export class RestartBackoff {
  readonly #backoff: Backoff;
  #failures = 0;
  #failedAt = Number.NEGATIVE_INFINITY;
  #reason = '';
  #until = 0;

  constructor(options: BackoffOptions) {
    this.#backoff = new Backoff(options);
  }

  /**
   * A process ended before it had answered a request.
   * @param startedAt on the monotonic clock; processes started together count as one failure
   */
  recordFailure(reason: string, startedAt: number): void {
    if (startedAt < this.#failedAt) return;
    const now = performance.now();
    this.#failedAt = now;
    this.#failures++;
    this.#reason = reason;
    if (this.#failures === 1) return;
    this.#until = now + this.#backoff.next();
  }

  recordSuccess(): void {
    this.#failures = 0;
    this.#backoff.reset();
    this.#until = 0;
  }

  /** Why the command must not be started now; undefined where it may be. */
  get refusal(): string | undefined {
    const left = this.#until - performance.now();
    if (left <= 0) return undefined;
    const pause = `it is not started again for ${(left / 1000).toFixed(1)} s`;
    return `${this.#reason} (${this.#failures} times in a row); ${pause}`;
  }
}
