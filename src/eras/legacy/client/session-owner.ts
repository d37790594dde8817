import type { Principal } from '../../../exchange/credentials.js';

/** How long after a challenge the session waits for another credential: people log in meanwhile. */
const LOGIN_MS = 15 * 60_000;
/** Limit of the renewed credentials that are remembered; older ones are tried on the backend again. */
const MAX_RENEWALS = 8;

/** Who may use a session: a principal, and others that proved to be the same owner. */
export class SessionOwner {
  #principal: Principal;
  /** The owner that the credential names; undefined if it names none. */
  #owner: string | undefined;
  /** Other credentials of the same owner. */
  #renewed: Set<Principal> | undefined;
  #challengedAt = Number.NEGATIVE_INFINITY;

  constructor(principal: Principal, owner: string | undefined) {
    this.#principal = principal;
    this.#owner = owner;
  }

  get principal(): Principal {
    return this.#principal;
  }

  includes(principal: Principal): boolean {
    return this.#principal === principal || this.#renewed?.has(principal) === true;
  }

  /** Whether a credential names the same owner. */
  isNamed(owner: string | undefined): boolean {
    return owner !== undefined && owner === this.#owner;
  }

  /** Notes that the backend refused the credential of a request, or requires one. */
  noteChallenge(): void {
    this.#challengedAt = performance.now();
  }

  /**
   * Whether a credential may be what the client got by a login after a challenge. Only a request of the owner can cause a
   * challenge. A credential that names another owner is refused.
   */
  mayBeLogin(owner: string | undefined): boolean {
    if (performance.now() - this.#challengedAt > LOGIN_MS) return false;
    return owner === undefined || this.#owner === undefined;
  }

  /** Replaces the owner: the backend accepted another credential after it refused the one before. */
  transfer(principal: Principal, owner: string | undefined): void {
    this.#principal = principal;
    this.#owner = owner;
    this.#renewed = undefined;
    this.#challengedAt = Number.NEGATIVE_INFINITY;
  }

  /** Adds a renewed credential of the same owner, which the backend accepted. */
  share(principal: Principal): void {
    this.#renewed ??= new Set();
    const [oldest] = this.#renewed;
    if (this.#renewed.size >= MAX_RENEWALS && oldest !== undefined) this.#renewed.delete(oldest);
    this.#renewed.add(principal);
  }
}
