import { randomBytes } from 'node:crypto';
import type { Principal } from '../../../exchange/credentials.js';
import type { ResultOutcome } from '../../../exchange/outcome.js';
import type { TaskLimits } from '../../../exchange/tasks.js';
import { Quota } from '../../../exchange/utils/quota.js';
import type { Ticker, Ticking } from '../../../exchange/utils/ticker.js';
import { NOWHERE } from '../../../exchange/utils/unordered-set.js';

/** Limit of all results in bytes; the oldest are evicted. */
const MAX_BYTES = 64 * 1024 * 1024;

interface KeptResult {
  readonly principal: Principal;
  /** JSON text of the task in the neutral form, without its result. */
  readonly task: string;
  readonly outcome: ResultOutcome;
  /** On the monotonic clock. */
  readonly expiresAt: number;
}

/** A reservation for one result. */
export interface ResultPlace {
  readonly ttlMs: number;
  /** Stores the result; returns its number. */
  keep(task: string, outcome: ResultOutcome): string;
  /** Gives up a reservation that was not used. */
  release(): void;
}

/**
 * Results of calls that a client requested as tasks and the backend answered at once. They are kept for a limited time,
 * since the client fetches them as it would fetch those of tasks.
 */
export class ImmediateResults implements Ticking {
  place = NOWHERE;
  readonly #limits: TaskLimits;
  readonly #ticker: Ticker;
  readonly #quota: Quota;
  /** The oldest first. */
  readonly #results = new Map<string, KeptResult>();
  #bytes = 0;

  constructor(limits: TaskLimits, ticker: Ticker) {
    this.#limits = limits;
    this.#ticker = ticker;
    this.#quota = new Quota(limits, (whose) => `tasks${whose}`);
  }

  /**
   * Reserves a place before the call, which could not be refused afterwards. At the limit of the principal, its oldest
   * result is evicted.
   * @throws ExchangeError if the limit is reached
   */
  admit(principal: Principal, ttlMs = this.#limits.ttlMs): ResultPlace {
    if (this.#quota.full(principal) === 'own') this.#evictOldest(principal);
    this.#quota.take(principal);
    const time = Math.min(ttlMs, this.#limits.ttlMs);
    let reserved = true;
    return {
      ttlMs: time,
      keep: (task, outcome) => {
        reserved = false;
        const number = randomBytes(16).toString('base64url');
        this.#results.set(number, { principal, task, outcome, expiresAt: performance.now() + time });
        this.#bytes += outcome.bytes.length;
        this.#ticker.add(this);
        for (const [other, { outcome: kept }] of this.#results) {
          if (this.#bytes <= MAX_BYTES || other === number) break;
          if (kept.bytes.length > 0) this.#drop(other);
        }
        return number;
      },
      release: () => {
        if (reserved) this.#quota.give(principal);
        reserved = false;
      },
    };
  }

  get(number: string, principal: Principal): KeptResult | undefined {
    const kept = this.#results.get(number);
    if (kept?.principal !== principal || performance.now() >= kept.expiresAt) return undefined;
    return kept;
  }

  tick(now: number): void {
    for (const [number, { expiresAt }] of this.#results) if (now >= expiresAt) this.#drop(number);
    if (this.#results.size === 0) this.#ticker.remove(this);
  }

  #evictOldest(principal: Principal): void {
    for (const [number, kept] of this.#results) {
      if (kept.principal !== principal) continue;
      this.#drop(number);
      return;
    }
  }

  #drop(number: string): void {
    const kept = this.#results.get(number);
    if (kept === undefined) return;
    this.#results.delete(number);
    this.#bytes -= kept.outcome.bytes.length;
    this.#quota.give(kept.principal);
  }
}
