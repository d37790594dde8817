import type { TransportFailure } from '../errors.js';

/** What a process has answered so far, and what that says about its end. */
export class TrackRecord {
  readonly #steadyMs: number;
  #firstAnswerAt: number | undefined;
  #useful = false;

  /** @param steadyMs see {@link StdioTimings.steadyMs} */
  constructor(steadyMs: number) {
    this.#steadyMs = steadyMs;
  }

  /** Whether it has answered anything, the handshake included. */
  get hasAnswered(): boolean {
    return this.#firstAnswerAt !== undefined;
  }

  /** Whether it has answered anything but the handshake. */
  get isUseful(): boolean {
    return this.#useful;
  }

  noteAnswer(now: number): void {
    this.#firstAnswerAt ??= now;
  }

  noteUseful(): void {
    this.#useful = true;
  }

  /**
   * What its unexpected end means for the requests in flight. They may be repeated after the end of a steady process
   * alone: any other may have ended because of them, and would do so again.
   */
  failureOf(now: number, { started }: { started: boolean }): TransportFailure {
    const steady = this.#firstAnswerAt !== undefined && now - this.#firstAnswerAt > this.#steadyMs;
    if (steady) return 'unanswered';
    return started ? 'broken' : 'unreachable';
  }

  /** Whether its end counts as a failed start. After the handshake, the first request may be what ended it. */
  isFailedStart({ inFlight }: { inFlight: number }): boolean {
    return !this.#useful && (this.#firstAnswerAt === undefined || inFlight === 0);
  }
}
