/** A call that times out was sent a little after its time began. */
const ALMOST = 0.9;

export interface LivenessOptions {
  /** Longest time of a call in milliseconds. */
  readonly totalMs: number;
  /** Longest wait for the answer to a ping, in milliseconds; less where calls have less. */
  readonly pingMs: number;
  /** Sends a ping to the process. */
  readonly ping: () => void;
  readonly onDead: (reason: string) => void;
}

/**
 * Detects a process that runs but hangs. Silence alone is no sign: it may be computing. One that has written nothing
 * for the longest time of a call is sent a ping, and is dead if it does not answer.
 */
export class Liveness {
  readonly #options: LivenessOptions;
  #lastOutputAt = performance.now();
  #timer: NodeJS.Timeout | undefined;

  constructor(options: LivenessOptions) {
    this.#options = options;
  }

  /** The process wrote something. */
  noteOutput(): void {
    this.#lastOutputAt = performance.now();
    this.stop();
  }

  /** Checks the process after a request was aborted; `sentAt` is on the monotonic clock. */
  check(sentAt: number): void {
    const { totalMs, pingMs, ping, onDead } = this.#options;
    if (this.#timer !== undefined || this.#lastOutputAt > sentAt) return;
    if (performance.now() - sentAt < totalMs * ALMOST) return;
    ping();
    const seconds = Math.round(totalMs / 100) / 10;
    const dead = (): void => onDead(`it has written nothing for ${seconds} s and does not answer a ping`);
    this.#timer = setTimeout(dead, Math.min(totalMs, pingMs)).unref();
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}
