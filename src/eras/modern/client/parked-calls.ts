import { randomBytes } from 'node:crypto';
import { Quota } from '../../../exchange/quota.js';
import type { Sealer } from '../../../exchange/seal.js';
import type { Ticker, Ticking } from '../../../exchange/ticker.js';
import type { Principal } from '../../../exchange/types.js';
import { NOWHERE } from '../../../exchange/unordered-set.js';
import { openState, type RequestState, sealState } from './request-state.js';

export interface ParkingOptions {
  /** Path of the route that the calls are on. */
  readonly route: string;
  readonly sealer: Sealer;
  readonly ticker: Ticker;
  /** The time that a person has for an answer, in milliseconds. */
  readonly timeoutMs: number;
  readonly maxParked: number;
  readonly maxParkedPerPrincipal: number;
  /** Of all callers without a credential. */
  readonly maxParkedAnonymous: number;
}

/** A call that can wait for its client to come back. */
export interface Parkable {
  /** Nobody came back in time. */
  expire(): void;
}

/** A call's place in the lot. */
export interface ParkedCall<Call> {
  readonly id: string;
  readonly call: Call;
  readonly principal: Principal;
  /** See {@link RequestState.owner}. */
  readonly owner: string | undefined;
  readonly digest: string;
  round: number;
  /** On the monotonic clock; infinite while a client's request for the call is open. */
  expiresAt: number;
}

/** What became of a state that a client brought back. */
export type Found<Call> =
  | { readonly kind: 'parked'; readonly parkedCall: ParkedCall<Call> }
  /** A retry that simply is the call once more. */
  | { readonly kind: 'again' }
  /** Not sealed by this gateway: perhaps the backend's own. */
  | { readonly kind: 'unknown' }
  | { readonly kind: 'refused'; readonly reason: string };

/**
 * The calls that wait, without an open request, for the client to come back with answers. Their number and their time
 * are bounded; a client holds no more of a call than its sealed state.
 */
export class ParkedCallStore<Call extends Parkable> implements Ticking {
  place = NOWHERE;
  readonly #options: ParkingOptions;
  readonly #instance = randomBytes(6).toString('base64url');
  readonly #parkedCalls = new Map<string, ParkedCall<Call>>();
  readonly #quota: Quota;

  constructor(options: ParkingOptions) {
    this.#options = options;
    const {
      maxParked: max,
      maxParkedPerPrincipal: maxPerPrincipal,
      maxParkedAnonymous: maxAnonymous,
    } = options;
    this.#quota = new Quota(
      { max, maxPerPrincipal, maxAnonymous },
      (whose) => `calls${whose} that wait for answers`,
    );
  }

  get size(): number {
    return this.#parkedCalls.size;
  }

  /**
   * Gives a call its place.
   * @throws ExchangeError when there are too many
   */
  admit(call: Call, principal: Principal, digest: string, owner?: string): ParkedCall<Call> {
    this.#quota.take(principal);
    const id = randomBytes(12).toString('base64url');
    const parkedCall: ParkedCall<Call> = {
      id,
      call,
      principal,
      owner,
      digest,
      round: 0,
      expiresAt: Number.POSITIVE_INFINITY,
    };
    this.#parkedCalls.set(id, parkedCall);
    this.#options.ticker.add(this);
    return parkedCall;
  }

  /**
   * Begins the next round; returns the sealed state that the client has to bring.
   * @param openSince the beginning of the time for its answers, on the monotonic clock
   */
  startRound(parkedCall: ParkedCall<Call>, openSince = performance.now()): string {
    parkedCall.round++;
    parkedCall.expiresAt = openSince + this.#options.timeoutMs;
    return this.#seal(
      parkedCall.id,
      parkedCall.round,
      parkedCall.principal,
      parkedCall.digest,
      parkedCall.owner,
    );
  }

  /** Whether the time for answers is over that began then. */
  isOver(openSince: number): boolean {
    return performance.now() >= openSince + this.#options.timeoutMs;
  }

  /** A state for a retry that needs nothing to be kept for it. */
  sealAgain(principal: Principal, digest: string, owner?: string): string {
    return this.#seal('', 0, principal, digest, owner);
  }

  release(parkedCall: ParkedCall<Call>): void {
    if (!this.#parkedCalls.delete(parkedCall.id)) return;
    this.#quota.give(parkedCall.principal);
    if (this.#parkedCalls.size === 0) this.#options.ticker.remove(this);
  }

  /**
   * What a state stands for, when this principal brings it with this request. One of another principal is found by whose
   * credential names the same owner, which is still to be proved: see {@link ParkedCall.principal}.
   */
  find(token: string, principal: Principal, digest: () => string, owner?: string): Found<Call> {
    const state = openState(this.#options.sealer, this.#options.route, token);
    if (state === undefined) return { kind: 'unknown' };
    const reason = this.#problem(state, principal, digest, owner);
    if (reason !== undefined) return { kind: 'refused', reason };
    if (state.call === '') return { kind: 'again' };
    const parkedCall = this.#parkedCalls.get(state.call);
    if (parkedCall === undefined || parkedCall.round !== state.round)
      return { kind: 'refused', reason: 'it was used already' };
    return { kind: 'parked', parkedCall };
  }

  tick(now: number): void {
    for (const parkedCall of this.#parkedCalls.values()) {
      if (now < parkedCall.expiresAt) continue;
      this.release(parkedCall);
      parkedCall.call.expire();
    }
  }

  #problem(
    state: RequestState,
    principal: Principal,
    digest: () => string,
    owner: string | undefined,
  ): string | undefined {
    const isOwners = owner !== undefined && owner === state.owner;
    if (state.principal !== principal && !isOwners) return 'it belongs to another principal';
    if (state.expiresAt < Date.now()) return 'it has expired';
    if (state.digest !== digest()) return 'it belongs to another request';
    if (state.call !== '' && state.instance !== this.#instance)
      return 'its call is not held by this gateway (any more)';
    return undefined;
  }

  #seal(
    call: string,
    round: number,
    principal: Principal,
    digest: string,
    owner: string | undefined,
  ): string {
    const { sealer, route, timeoutMs } = this.#options;
    const expiresAt = Date.now() + timeoutMs;
    const instance = this.#instance;
    return sealState(sealer, route, { instance, call, round, principal, owner, digest, expiresAt });
  }
}
