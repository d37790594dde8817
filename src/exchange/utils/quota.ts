import type { Principal } from '../credentials.js';
import { ANONYMOUS } from '../credentials.js';
import { EXCHANGE_ERRORS, exchangeError } from '../errors.js';

export interface QuotaLimits {
  readonly max: number;
  readonly maxPerPrincipal: number;
  /** Of all callers without a credential, who may be many people. */
  readonly maxAnonymous: number;
}

/** So many of a thing at a time, and so many for one principal. */
export class Quota {
  readonly #limits: QuotaLimits;
  readonly #what: (whose: string) => string;
  readonly #perPrincipal = new Map<Principal, number>();
  #size = 0;

  /** @param what the things that are counted, and whose they are, for messages to people */
  constructor(limits: QuotaLimits, what: (whose: string) => string) {
    this.#limits = limits;
    this.#what = what;
  }

  get size(): number {
    return this.#size;
  }

  /** Whether one more would be too many, for all or for this principal. */
  full(principal: Principal): 'all' | 'own' | undefined {
    if (this.#size >= this.#limits.max) return 'all';
    return (this.#perPrincipal.get(principal) ?? 0) >= this.#ownLimit(principal) ? 'own' : undefined;
  }

  /** @throws ExchangeError when there are too many */
  take(principal: Principal): void {
    const full = this.full(principal);
    if (full !== undefined) {
      const [limit, whose] =
        full === 'all'
          ? [this.#limits.max, '']
          : [
              this.#ownLimit(principal),
              principal === ANONYMOUS ? ' of callers without a credential' : ' of one principal',
            ];
      throw exchangeError(EXCHANGE_ERRORS.ERAGATE_QUOTA, { limit, what: this.#what(whose) });
    }
    this.#size++;
    this.#perPrincipal.set(principal, (this.#perPrincipal.get(principal) ?? 0) + 1);
  }

  give(principal: Principal): void {
    this.#size--;
    const left = (this.#perPrincipal.get(principal) ?? 1) - 1;
    if (left === 0) this.#perPrincipal.delete(principal);
    else this.#perPrincipal.set(principal, left);
  }

  #ownLimit(principal: Principal): number {
    return principal === ANONYMOUS ? this.#limits.maxAnonymous : this.#limits.maxPerPrincipal;
  }
}
