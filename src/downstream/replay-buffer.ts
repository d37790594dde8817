import { randomBytes } from 'node:crypto';
import type { Ticker, Ticking } from '../exchange/ticker.js';
import { NOWHERE } from '../exchange/unordered-set.js';
import type { ReplayStream } from './replay-stream.js';

/** How long what a client may have missed is kept for it, and a stream that nobody reads waits for its reader. */
const KEEP_MS = 60_000;
/** Of the whole that one session may take up. */
const SESSION_SHARE = 1 / 8;

export interface ReplayOptions {
  /** For all that is kept, of all clients. */
  readonly maxBytes: number;
  readonly ticker: Ticker;
  readonly keepMs?: number | undefined;
}

/** The room that all sessions share for what their clients may have missed. */
export class ReplayRoom implements Ticking {
  place = NOWHERE;
  /** Of one session. */
  readonly sessionBytes: number;
  readonly sessionEvents = 10_000;
  readonly #maxBytes: number;
  readonly #ticker: Ticker;
  readonly #keepMs: number;
  /** Tells ids of this process from those that another one gave. */
  readonly #prefix = randomBytes(4).toString('hex');
  /** Streams without a reader, and finished ones; the first to be forgotten first. */
  readonly #leaving = new Set<ReplayStream>();
  #bytes = 0;
  #streams = 0;
  #closing = false;
  #onBack: (() => void) | undefined;

  constructor({ maxBytes, ticker, keepMs = KEEP_MS }: ReplayOptions) {
    this.#maxBytes = maxBytes;
    this.sessionBytes = maxBytes * SESSION_SHARE;
    this.#ticker = ticker;
    this.#keepMs = keepMs;
  }

  /** Whether nobody is to be let go any more. */
  get closing(): boolean {
    return this.#closing;
  }

  /** Bytes that are taken up. */
  get bytes(): number {
    return this.#bytes;
  }

  newKey(): string {
    return `${this.#prefix}${(this.#streams++).toString(36)}`;
  }

  /** Takes room; who left longest ago makes way. False where all of it is in use. */
  take(bytes: number): boolean {
    while (this.#bytes + bytes > this.#maxBytes) {
      const [oldest] = this.#leaving;
      if (oldest === undefined) return false;
      oldest.forget();
    }
    this.#bytes += bytes;
    return true;
  }

  give(bytes: number): void {
    this.#bytes -= bytes;
  }

  /** From now on the stream waits to be taken up. */
  leave(stream: ReplayStream): void {
    stream.forgetAt = performance.now() + this.#keepMs;
    this.#leaving.delete(stream);
    this.#leaving.add(stream);
    this.#ticker.add(this);
  }

  stay(stream: ReplayStream): void {
    stream.forgetAt = Number.POSITIVE_INFINITY;
    this.#leaving.delete(stream);
  }

  /**
   * From now on nobody is let go.
   * @returns when all who were let go have come back for their answers, or after `limitMs`
   */
  async close(limitMs: number): Promise<void> {
    this.#closing = true;
    if (!this.#awaits) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, limitMs);
      this.#onBack = () => {
        if (this.#awaits) return;
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** Somebody came back, or is not expected any longer. */
  back(): void {
    this.#onBack?.();
  }

  get #awaits(): boolean {
    for (const { awaited } of this.#leaving) if (awaited) return true;
    return false;
  }

  tick(now: number): void {
    for (const stream of this.#leaving) {
      if (stream.forgetAt > now) return;
      stream.forget();
    }
    this.#ticker.remove(this);
  }
}
