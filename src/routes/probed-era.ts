import type { LegSetting } from '../config/index.js';
import type { ProbeFinding } from '../eras/index.js';
import { badGateway, ExchangeError, unreachable } from '../exchange/errors.js';
import type { ExchangeRequest } from '../exchange/exchange.js';
import type { Outbound } from '../exchange/outbound.js';
import { mayBeAsked } from '../exchange/server-requests.js';
import { WrongEra } from '../exchange/side-errors.js';
import type { Caller, EraName, ForwardedHeaders } from '../exchange/types.js';
import type { EraChoice } from './era-choice.js';

/** What is held to be true of a backend, since when, and why. */
export interface Verdict {
  readonly era: EraName;
  readonly reason: string;
  /** On the monotonic clock, in milliseconds. */
  readonly until: number;
}

export interface ProbedEraOptions {
  /** Name of the backend in messages to people. */
  readonly name: string;
  /** One of each era. */
  readonly sides: readonly Outbound[];
  /** Which side to use of a backend that speaks both eras. */
  readonly leg: LegSetting;
  /** Asks the backend whether it speaks the modern era. */
  readonly probe: (forwarded: ForwardedHeaders) => Promise<ProbeFinding>;
  /** Observes every verdict. */
  readonly onVerdict: (verdict: Verdict) => void;
}

interface Probing {
  /** The credential that the probe is sent with. */
  readonly authorization: string | undefined;
  readonly found: Promise<Verdict | undefined>;
}

/** Whether a modern backend serves the legacy era as well, as the first request finds out that would rather use it. */
type LegacyLeg = 'unknown' | 'none' | 'cannot-ask' | 'sessions';

const HOUR_MS = 3_600_000;
/** How long a probe that proved nothing is not repeated where waiting for it takes long, or an older verdict stands. */
const PROVISIONAL_MS = 60_000;
/** A verdict that was doubted in vain is not doubted again for so long. */
const CONFIRMED_MS = 1_000;

/**
 * The era of a backend is found by a probe, remembered for a while, and found again when responses contradict it. A
 * backend that speaks both eras is used on the side that suits the request.
 */
export class ProbedEra implements EraChoice {
  readonly #options: ProbedEraOptions;
  readonly #legacy: Outbound;
  readonly #modern: Outbound;
  #verdict: Verdict | undefined;
  #probing: Probing | undefined;
  #legacyLeg: LegacyLeg = 'unknown';
  #modernCannotAsk = false;
  /** The verdict that was told last, which may be in doubt by now. */
  #told: Verdict | undefined;
  #confirmedAt = Number.NEGATIVE_INFINITY;
  #doubts = 0;
  /** What proves that the backend is modern, should asking for its era prove nothing. */
  #provedModern: string | undefined;

  constructor(options: ProbedEraOptions) {
    this.#options = options;
    this.#legacy = sideOf(options.sides, 'legacy');
    this.#modern = sideOf(options.sides, 'modern');
  }

  get doubts(): number {
    return this.#doubts;
  }

  outboundFor(caller: Caller, request?: ExchangeRequest): Outbound | Promise<Outbound> {
    const verdict = this.#current(caller.forwarded);
    if (verdict !== undefined) return this.#sideFor(caller, request, verdict);
    return this.#find(caller.forwarded).then((found) => this.#sideFor(caller, request, found));
  }

  #sideFor(
    caller: Caller,
    request: ExchangeRequest | undefined,
    verdict: Verdict | undefined,
  ): Outbound | Promise<Outbound> {
    const { leg } = this.#options;
    // Nothing is known: the handshake is what most servers in the world understand.
    if (verdict === undefined || verdict.era === 'legacy') return this.#legacy;
    if (leg === 'modern') return this.#modern;
    if (leg === 'legacy') return this.#legacy;
    if (caller.era === 'modern' && !this.#needsSession(caller, request)) return this.#modern;
    if (this.#legacyLeg === 'none' || this.#legacyLeg === 'cannot-ask') return this.#modern;
    return this.#legacyLeg === 'sessions' ? this.#legacy : this.#tryLegacyLeg(caller);
  }

  otherThan(tried: Outbound): Outbound | undefined {
    const { leg } = this.#options;
    const both = this.#verdict?.era === 'modern' && leg === 'auto';
    return both && tried === this.#legacy ? this.#modern : undefined;
  }

  /** Requests that may lead to server requests use the legacy side from now on. */
  cannotAsk(side: Outbound): void {
    if (side === this.#modern) this.#modernCannotAsk = true;
  }

  warmUp(): void {
    if (this.#verdict === undefined) this.#find({}).catch(() => {});
  }

  contradicted(era: EraName, doubts: number, proof?: string): boolean {
    // Another request had the same answer before, and what followed from it holds for this one too.
    if (doubts !== this.#doubts) return true;
    if (performance.now() - this.#confirmedAt < CONFIRMED_MS) return false;
    this.#doubts++;
    if (era === 'legacy') this.#provedModern = proof;
    if (era === 'legacy' && this.#verdict?.era === 'modern') this.#legacyLeg = 'none';
    else this.#verdict = undefined;
    return true;
  }

  #current(forwarded: ForwardedHeaders): Verdict | undefined {
    const verdict = this.#verdict;
    if (verdict === undefined) return undefined;
    if (performance.now() > verdict.until) {
      // Old, but not known to be wrong: it serves until the new one is there.
      this.#find(forwarded).catch(() => {});
    }
    return verdict;
  }

  /** One probe at a time; whoever comes meanwhile waits for the same one. */
  async #find(forwarded: ForwardedHeaders): Promise<Verdict | undefined> {
    const { authorization } = forwarded;
    const underWay = this.#probing;
    if (underWay !== undefined) {
      const verdict = await underWay.found;
      if (verdict !== undefined || underWay.authorization === authorization) return verdict;
      // What was refused to one caller may be open to another.
      return this.#probe(forwarded);
    }
    const found = this.#probe(forwarded).finally(() => {
      this.#probing = undefined;
    });
    this.#probing = { authorization, found };
    return found;
  }

  async #probe(forwarded: ForwardedHeaders): Promise<Verdict | undefined> {
    const finding = await this.#options.probe(forwarded);
    const { name } = this.#options;
    switch (finding.kind) {
      case 'spoken':
        return this.#settle('modern', finding.reason, HOUR_MS);
      case 'not-spoken':
        return this.#settle('legacy', finding.reason, HOUR_MS);
      case 'no-common-version':
        throw badGateway(`no common protocol version with ${name}: it ${finding.reason}`);
      case 'unreachable':
        throw unreachable(`cannot reach ${name}: ${finding.reason}`);
      case 'inconclusive':
        // An older verdict stands; without one the handshake is tried, and only what took long to find out is kept.
        if (this.#verdict !== undefined)
          return this.#settle(this.#verdict.era, this.#verdict.reason, PROVISIONAL_MS);
        if (this.#provedModern !== undefined)
          return this.#settle('modern', this.#provedModern, PROVISIONAL_MS);
        return finding.slow
          ? this.#settle('legacy', `unproved: ${finding.reason}`, PROVISIONAL_MS)
          : undefined;
    }
  }

  #settle(era: EraName, reason: string, forMs: number): Verdict {
    const now = performance.now();
    const before = this.#told;
    const verdict = { era, reason, until: now + forMs };
    if (before?.era !== era) {
      this.#legacyLeg = 'unknown';
      this.#modernCannotAsk = false;
    } else if (this.#verdict === undefined) this.#confirmedAt = now;
    this.#verdict = verdict;
    this.#told = verdict;
    if (before?.era !== era || before.reason !== reason) this.#options.onVerdict(verdict);
    return verdict;
  }

  /** Whether a request of a modern client may lead to questions that the backend can put in the legacy way alone. */
  #needsSession(caller: Caller, request: ExchangeRequest | undefined): boolean {
    if (!this.#modernCannotAsk || request === undefined || request.resumes) return false;
    return mayBeAsked(caller, request.method);
  }

  /**
   * Server requests are best sent on the backend's own legacy side, if it has one that can ask: those to a legacy client, and
   * those that its modern side cannot put.
   */
  async #tryLegacyLeg(caller: Caller): Promise<Outbound> {
    try {
      const { session } = caller;
      // A session from before the backend was found to be modern is tried; one is opened where there is none.
      await this.#legacy.authenticate(caller);
      const { sessions } = await this.#legacy.describe(caller);
      this.#legacyLeg = sessions ? 'sessions' : 'cannot-ask';
      if (sessions) return this.#legacy;
      await session?.binding?.end();
      if (session !== undefined) session.binding = undefined;
    } catch (error) {
      if (error instanceof WrongEra) this.#legacyLeg = 'none';
      else if (!isFailure(error)) throw error;
    }
    return this.#modern;
  }
}

/** @throws TypeError for sides that a choice needs not be made among */
function sideOf(sides: readonly Outbound[], name: EraName): Outbound {
  const side = sides.find(({ era }) => era === name);
  if (side === undefined) throw new TypeError(`no ${name} side`);
  return side;
}

/** Whether an error is of the backend, and not for the client to act upon. */
function isFailure(error: unknown): boolean {
  return error instanceof ExchangeError && (error.outcome.status ?? 200) >= 500;
}
