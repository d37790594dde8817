import type { Principal } from '../credentials.js';
import { ANONYMOUS } from '../credentials.js';
import { EXCHANGE_ERRORS, exchangeError } from '../errors.js';

export interface QuotaLimits {
  readonly max: number;
  readonly maxPerPrincipal: number;
  /** Of all callers without a credential together, who may be many people. */
  readonly maxAnonymous: number;
}

/** Limits how many of a thing there are at a time, in all and for one principal. */
export class Quota {
  readonly #limits: QuotaLimits;
  readonly #what: (whose: string) => string;
  readonly #perPrincipal = new Map<Principal, number>();
  #size = 0;

  /** @param what names the things in messages to people; its argument is a phrase for whose they are */
  constructor(limits: QuotaLimits, what: (whose: string) => string) {
    this.#limits = limits;
    this.#what = what;
  }

  /** The limit that one more would exceed: of all, or of this principal. */
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
