import { randomBytes } from 'node:crypto';
import type { ResultOutcome } from '../../../exchange/outcome.js';
import { Quota } from '../../../exchange/quota.js';
import type { TaskLimits } from '../../../exchange/tasks.js';
import type { Ticker, Ticking } from '../../../exchange/ticker.js';
import type { Principal } from '../../../exchange/types.js';
import { NOWHERE } from '../../../exchange/unordered-set.js';

/** Bytes of results that are kept together; the oldest make way. */
const MAX_BYTES = 64 * 1024 * 1024;

interface KeptResult {
  readonly principal: Principal;
  /** JSON text of the task, in the neutral form and without the result. */
  readonly task: string;
  readonly outcome: ResultOutcome;
  /** On the monotonic clock. */
  readonly expiresAt: number;
}

/** A place that was taken for a result. */
export interface ResultPlace {
  readonly ttlMs: number;
  /** Returns the number under which it is kept. */
  keep(task: string, outcome: ResultOutcome): string;
  giveBack(): void;
}

/**
 * Results of calls that were to become tasks and did not: their clients come for them as for those of tasks. Each is kept
 * for a while, so many for a principal and in all.
 */
export class KeptResults implements Ticking {
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

  get size(): number {
    return this.#results.size;
  }

  /**
   * Takes a place before the call is made, since afterwards it could not be refused any more. The oldest result of the
   * principal makes way.
   * @throws ExchangeError when there are too many
   */
  admit(principal: Principal, ttlMs = this.#limits.ttlMs): ResultPlace {
    if (this.#quota.full(principal) === 'own') this.#makeRoom(principal);
    this.#quota.take(principal);
    const time = Math.min(ttlMs, this.#limits.ttlMs);
    let taken = true;
    return {
      ttlMs: time,
      keep: (task, outcome) => {
        taken = false;
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
      giveBack: () => {
        if (taken) this.#quota.give(principal);
        taken = false;
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

  #makeRoom(principal: Principal): void {
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
