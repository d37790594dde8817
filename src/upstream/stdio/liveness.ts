/** Time for the answer to a ping; less where calls have less. */
const ANSWER_MS = 5_000;
/** A call that ran out of time was written a little after its time began. */
const ALMOST = 0.9;

export interface LivenessOptions {
  /** How long a call may take in all, in milliseconds. */
  readonly totalMs: number;
  /** Asks the process for any answer. */
  readonly ping: () => void;
  readonly onDead: (reason: string) => void;
}

/**
 * Finds a process that runs and does not do anything any more. One that is silent for long may compute; one that has said
 * nothing for as long as a call may take, and does not answer a ping then, will not answer what comes next either.
 */
export class Liveness {
  readonly #options: LivenessOptions;
  #heardAt = performance.now();
  #timer: NodeJS.Timeout | undefined;

  constructor(options: LivenessOptions) {
    this.#options = options;
  }

  /** The process said something. */
  heard(): void {
    this.#heardAt = performance.now();
    this.stop();
  }

  /** A request was given up that was made at `since`, on the monotonic clock. */
  doubt(since: number): void {
    const { totalMs, ping, onDead } = this.#options;
    if (this.#timer !== undefined || this.#heardAt > since) return;
    if (performance.now() - since < totalMs * ALMOST) return;
    ping();
    const seconds = Math.round(totalMs / 100) / 10;
    const dead = (): void => onDead(`it has said nothing for ${seconds} s, nor answers a ping`);
    this.#timer = setTimeout(dead, Math.min(totalMs, ANSWER_MS)).unref();
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}
