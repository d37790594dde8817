import { ANONYMOUS, type Principal } from '../credentials.js';

/**
 * The part of a limit that one principal may use, so that it cannot keep all others out: half. Callers without a
 * credential, who may be many people, have three quarters together.
 */
export function shareOf(max: number, principal: Principal): number {
  return Math.ceil(max * (principal === ANONYMOUS ? 3 / 4 : 1 / 2));
}

/** Counts things by principal. */
export class PrincipalCounts {
  readonly #counts = new Map<Principal, number>();

  of(principal: Principal): number {
    return this.#counts.get(principal) ?? 0;
  }

  /** The principal that has most; undefined where nobody has any. */
  get most(): Principal | undefined {
    let most: Principal | undefined;
    let largest = 0;
    for (const [principal, count] of this.#counts) {
      if (count <= largest) continue;
      most = principal;
      largest = count;
    }
    return most;
  }

  add(principal: Principal, by = 1): void {
    const count = this.of(principal) + by;
    if (count === 0) this.#counts.delete(principal);
    else this.#counts.set(principal, count);
  }
}
