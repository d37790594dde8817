import { randomBytes } from 'node:crypto';
import type { Principal } from '../exchange/credentials.js';
import { PrincipalCounts } from '../exchange/utils/share.js';
import type { Ticker, Ticking } from '../exchange/utils/ticker.js';
import { NOWHERE } from '../exchange/utils/unordered-set.js';

/** How long the events of a stream that has no reader are kept. */
const KEEP_MS = 60_000;
/** Largest part of the budget that one session may use. */
const SESSION_SHARE = 1 / 8;

export interface ReplayBudgetOptions {
  /** For the recorded events of all clients. */
  readonly maxBytes: number;
  readonly ticker: Ticker;
  readonly keepMs?: number | undefined;
}

/** A recorded stream that has no reader and is forgotten after a while. */
export interface Expiring {
  /** When it is forgotten, on the monotonic clock; infinite while it has a reader. */
  forgetAt: number;
  /** Whose stream it is. */
  readonly principal: Principal;
  /** The client knows to reconnect for the rest of a response. */
  readonly awaited: boolean;
  forget(): void;
}

/** Recorded events of one session. */
export interface RecordedEvents {
  readonly principal: Principal;
  /**
   * Drops the oldest events that a connected client has most likely read.
   * @param bytes to free, at least, if there are as many
   * @param before only those that were written before, on the monotonic clock
   * @returns false if there are none
   */
  dropRead(bytes: number, before: number): boolean;
}

/** An event that was written to a connection so long ago has been read. */
const READ_AFTER_MS = 10_000;
/** Freed at once, so that not every event of a full budget has to look for another one to drop. */
const FREED_BYTES = 64 * 1024;

/** The memory that all sessions share for events that their clients may have missed. */
export class ReplayBudget implements Ticking {
  place = NOWHERE;
  /** Limits of one session. */
  readonly sessionBytes: number;
  readonly sessionEvents = 10_000;
  readonly #maxBytes: number;
  readonly #ticker: Ticker;
  readonly #keepMs: number;
  /** Distinguishes stream keys of this process from those of others. */
  readonly #prefix = randomBytes(4).toString('hex');
  /** The one to be forgotten next comes first. */
  readonly #expiring = new Set<Expiring>();
  readonly #sessions = new Set<RecordedEvents>();
  readonly #byPrincipal = new PrincipalCounts();
  #bytes = 0;
  #streams = 0;
  #closing = false;
  #onSettled: (() => void) | undefined;

  constructor({ maxBytes, ticker, keepMs = KEEP_MS }: ReplayBudgetOptions) {
    this.#maxBytes = maxBytes;
    this.sessionBytes = maxBytes * SESSION_SHARE;
    this.#ticker = ticker;
    this.#keepMs = keepMs;
  }

  /** No stream is to be detached any more. */
  get closing(): boolean {
    return this.#closing;
  }

  /** Bytes in use. */
  get bytes(): number {
    return this.#bytes;
  }

  newKey(): string {
    return `${this.#prefix}${(this.#streams++).toString(36)}`;
  }

  join(session: RecordedEvents): void {
    this.#sessions.add(session);
  }

  leave(session: RecordedEvents): void {
    this.#sessions.delete(session);
  }

  /**
   * Reserves bytes. At the limit, the principal that uses most gives way: first events that were read long ago, then the
   * streams that have been without a reader for longest, then what was read just now, to others than itself.
   * @returns false if that is not enough
   */
  reserve(bytes: number, principal: Principal): boolean {
    while (this.#bytes + bytes > this.#maxBytes) {
      const heaviest = this.#byPrincipal.most;
      const long = performance.now() - READ_AFTER_MS;
      const isHeaviest = (owner: Principal): boolean => owner === heaviest;
      const made =
        this.#dropRead(bytes, isHeaviest, long) ||
        this.#dropRead(bytes, () => true, long) ||
        this.#forget(isHeaviest) ||
        (heaviest !== principal &&
          (this.#dropRead(bytes, isHeaviest, Number.POSITIVE_INFINITY) || this.#forget(() => true)));
      if (!made) return false;
    }
    this.#bytes += bytes;
    this.#byPrincipal.add(principal, bytes);
    return true;
  }

  release(bytes: number, principal: Principal): void {
    this.#bytes -= bytes;
    this.#byPrincipal.add(principal, -bytes);
  }

  #dropRead(bytes: number, fits: (owner: Principal) => boolean, before: number): boolean {
    for (const session of this.#sessions)
      if (fits(session.principal) && session.dropRead(Math.max(bytes, FREED_BYTES), before)) return true;
    return false;
  }

  #forget(fits: (owner: Principal) => boolean): boolean {
    for (const stream of this.#expiring) {
      if (!fits(stream.principal)) continue;
      stream.forget();
      return true;
    }
    return false;
  }

  /** The stream has no reader from now on. */
  startExpiry(stream: Expiring): void {
    stream.forgetAt = performance.now() + this.#keepMs;
    this.#expiring.delete(stream);
    this.#expiring.add(stream);
    this.#ticker.add(this);
  }

  stopExpiry(stream: Expiring): void {
    stream.forgetAt = Number.POSITIVE_INFINITY;
    this.#expiring.delete(stream);
  }

  /**
   * Lets no further stream be detached.
   * @returns when every detached client has reconnected for its response, or after `limitMs`
   */
  async close(limitMs: number): Promise<void> {
    this.#closing = true;
    if (!this.#hasAwaited) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, limitMs);
      this.#onSettled = () => {
        if (this.#hasAwaited) return;
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** A client has reconnected, or is no longer awaited. */
  settled(): void {
    this.#onSettled?.();
  }

  get #hasAwaited(): boolean {
    for (const { awaited } of this.#expiring) if (awaited) return true;
    return false;
  }

  tick(now: number): void {
    for (const stream of this.#expiring) {
      if (stream.forgetAt > now) return;
      stream.forget();
    }
    this.#ticker.remove(this);
  }
}
