import { randomBytes } from 'node:crypto';
import type { Principal } from '../../../exchange/credentials.js';
import { Quota } from '../../../exchange/utils/quota.js';
import type { Sealer } from '../../../exchange/utils/sealer.js';
import type { Ticker, Ticking } from '../../../exchange/utils/ticker.js';
import { NOWHERE } from '../../../exchange/utils/unordered-set.js';
import { openState, type RequestState, sealState } from './request-state.js';
import { type SettledRound, SettledRounds } from './settled-rounds.js';

export interface ParkingOptions {
  /** Path of the route that the calls are on. */
  readonly route: string;
  readonly sealer: Sealer;
  readonly ticker: Ticker;
  /** Longest time for the client's answers, in milliseconds. */
  readonly timeoutMs: number;
  readonly maxParked: number;
  readonly maxParkedPerPrincipal: number;
  /** Of all callers without a credential. */
  readonly maxParkedAnonymous: number;
  /** Limit of the rounds of server requests in one call. */
  readonly maxRounds: number;
}

/** A call that can wait for a retry of its client. */
export interface Parkable {
  /** Called when no retry came in time. */
  expire(): void;
}

/** An entry of the store. */
export interface ParkedCall<Call> {
  readonly id: string;
  readonly call: Call;
  readonly principal: Principal;
  /** See {@link RequestState.owner}. */
  readonly owner: string | undefined;
  readonly digest: string;
  round: number;
  /** On the monotonic clock; infinite while an HTTP request waits for the call. */
  expiresAt: number;
}

/** The result of looking up a `requestState`. */
export type Found<Call> =
  | { readonly kind: 'parked'; readonly parkedCall: ParkedCall<Call> }
  /** A retry with this state has its response. */
  | { readonly kind: 'settled'; readonly settled: SettledRound }
  /** The retry repeats the call; nothing was kept for it. */
  | { readonly kind: 'repeat' }
  /** Not sealed by this gateway; it may be the backend's own. */
  | { readonly kind: 'unknown' }
  | { readonly kind: 'refused'; readonly reason: string };

/** The result for a state whose round is over. */
export const USED = { kind: 'refused', reason: 'it was used already' } as const;

/**
 * Calls that wait for a retry with the client's answers, while no HTTP request is open for them. Their number and their
 * time are limited. The client holds the sealed `requestState` by which a call is found.
 */
export class ParkedCallStore<Call extends Parkable> implements Ticking {
  place = NOWHERE;
  readonly #options: ParkingOptions;
  readonly #instance = randomBytes(6).toString('base64url');
  readonly #parkedCalls = new Map<string, ParkedCall<Call>>();
  readonly #settled = new SettledRounds();
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

  get maxRounds(): number {
    return this.#options.maxRounds;
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
   * Begins the next round; returns the `requestState` for it.
   * @param openSince when the time for answers began, on the monotonic clock
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

  /** Keeps the response to a retry of a round, for copies of the retry that come later. */
  settle({ id, principal }: ParkedCall<Call>, round: number, settled: Omit<SettledRound, 'principal'>): void {
    this.#settled.add(id, round, { principal, ...settled });
  }

  /** Stops the time of a call while a retry is verified; the returned function lets it go on as before. */
  suspend(parkedCall: ParkedCall<Call>): () => void {
    const { expiresAt } = parkedCall;
    parkedCall.expiresAt = Number.POSITIVE_INFINITY;
    return () => {
      parkedCall.expiresAt = expiresAt;
    };
  }

  /** Whether the time for answers that began at `openSince` is over. */
  isOver(openSince: number): boolean {
    return performance.now() >= openSince + this.#options.timeoutMs;
  }

  /** A `requestState` for a retry that repeats the call. */
  sealRetry(principal: Principal, digest: string, owner?: string): string {
    return this.#seal('', 0, principal, digest, owner);
  }

  release(parkedCall: ParkedCall<Call>): void {
    if (!this.#parkedCalls.delete(parkedCall.id)) return;
    this.#quota.give(parkedCall.principal);
    if (this.#parkedCalls.size === 0) this.#options.ticker.remove(this);
  }

  /**
   * Looks up the `requestState` of a retry. The call of another principal is found if both credentials name the same
   * owner; the caller then has to verify the credential, see {@link ParkedCall.principal}.
   */
  find(token: string, principal: Principal, digest: () => string, owner?: string): Found<Call> {
    const state = openState(this.#options.sealer, this.#options.route, token);
    if (state === undefined) return { kind: 'unknown' };
    const reason = this.#problem(state, principal, digest, owner);
    if (reason !== undefined) return { kind: 'refused', reason };
    if (state.call === '') return { kind: 'repeat' };
    const parkedCall = this.#parkedCalls.get(state.call);
    if (parkedCall?.round === state.round) return { kind: 'parked', parkedCall };
    const settled = this.#settled.find(state.call, state.round);
    return settled === undefined ? USED : { kind: 'settled', settled };
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
