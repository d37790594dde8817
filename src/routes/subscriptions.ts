import type { Principal } from '../exchange/credentials.js';
import type { Exchange } from '../exchange/exchange.js';

/**
 * The open subscriptions of a route, up to a limit. At the limit the principal with the most loses its oldest one to a
 * principal with fewer, so that none can keep all others out by opening many.
 */
export class Subscriptions {
  readonly #max: number;
  /** Of each principal, the oldest first. */
  readonly #open = new Map<Principal, Set<Exchange>>();
  #count = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** @returns false where there is no room */
  admit(exchange: Exchange): boolean {
    const { principal } = exchange.caller;
    if (this.#count >= this.#max && !this.#evictFor(this.#open.get(principal)?.size ?? 0)) return false;
    const own = this.#open.get(principal);
    if (own === undefined) this.#open.set(principal, new Set([exchange]));
    else own.add(exchange);
    this.#count++;
    return true;
  }

  /** A subscription is over. Does nothing for one that is not open any more. */
  release(exchange: Exchange): void {
    const { principal } = exchange.caller;
    const own = this.#open.get(principal);
    if (own?.delete(exchange) !== true) return;
    if (own.size === 0) this.#open.delete(principal);
    this.#count--;
  }

  /** @param owned subscriptions of the principal that wants another */
  #evictFor(owned: number): boolean {
    let most: ReadonlySet<Exchange> = new Set();
    for (const others of this.#open.values()) if (others.size > most.size) most = others;
    const [oldest] = most;
    if (oldest === undefined || most.size <= owned + 1) return false;
    this.release(oldest);
    oldest.cancel('the subscription made way for others');
    return true;
  }
}
