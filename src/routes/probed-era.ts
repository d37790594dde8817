import type { LegSetting } from '../config/index.js';
import type { Caller } from '../exchange/caller.js';
import { ExchangeError } from '../exchange/errors.js';
import type { ExchangeRequest } from '../exchange/exchange.js';
import type { Outbound } from '../exchange/outbound.js';
import type { EraName } from '../exchange/revision.js';
import { mayBeAsked } from '../exchange/server-requests.js';
import { WrongEra } from '../exchange/side-errors.js';
import type { EraChoice } from './era-choice.js';
import { EraVerdict, type EraVerdictOptions } from './era-verdict.js';

export interface ProbedEraOptions extends Omit<EraVerdictOptions, 'onEraChange'> {
  /** One of each era. */
  readonly sides: readonly Outbound[];
  /** Which side to use of a backend that speaks both eras. */
  readonly leg: LegSetting;
}

/** Whether a modern backend has a legacy side as well, as the first request that would rather use it finds out. */
type LegacyLeg = 'unknown' | 'none' | 'cannot-ask' | 'sessions';

/** Chooses by the verdict about the era of a backend; one that speaks both eras is used on the side that suits best. */
export class ProbedEra implements EraChoice {
  readonly #leg: LegSetting;
  readonly #legacy: Outbound;
  readonly #modern: Outbound;
  readonly #verdict: EraVerdict;
  #legacyLeg: LegacyLeg = 'unknown';
  #modernCannotAsk = false;

  constructor(options: ProbedEraOptions) {
    this.#leg = options.leg;
    this.#legacy = sideOf(options.sides, 'legacy');
    this.#modern = sideOf(options.sides, 'modern');
    this.#verdict = new EraVerdict({
      ...options,
      onEraChange: () => {
        this.#legacyLeg = 'unknown';
        this.#modernCannotAsk = false;
      },
    });
  }

  get doubts(): number {
    return this.#verdict.doubts;
  }

  outboundFor(caller: Caller, request?: ExchangeRequest): Outbound | Promise<Outbound> {
    const era = this.#verdict.get(caller.forwarded);
    return era instanceof Promise
      ? era.then((found) => this.#sideFor(found, caller, request))
      : this.#sideFor(era, caller, request);
  }

  #sideFor(
    era: EraName | undefined,
    caller: Caller,
    request: ExchangeRequest | undefined,
  ): Outbound | Promise<Outbound> {
    // Where nothing is proved, a handshake is what most servers understand.
    if (era === undefined || era === 'legacy' || this.#leg === 'legacy') return this.#legacy;
    if (this.#leg === 'modern') return this.#modern;
    if (caller.era === 'modern' && !this.#needsSession(caller, request)) return this.#modern;
    if (this.#legacyLeg === 'unknown') return this.#tryLegacyLeg(caller);
    return this.#legacyLeg === 'sessions' ? this.#legacy : this.#modern;
  }

  otherThan(tried: Outbound): Outbound | undefined {
    const both = this.#verdict.era === 'modern' && this.#leg === 'auto';
    return both && tried === this.#legacy ? this.#modern : undefined;
  }

  /** Requests that may lead to server requests use the legacy side from now on. */
  cannotAsk(side: Outbound): void {
    if (side === this.#modern) this.#modernCannotAsk = true;
  }

  warmUp(): void {
    this.#verdict.warmUp();
  }

  contradicted(era: EraName, doubts: number, proof?: string): boolean {
    // Another request had the same answer before, and what followed from it holds for this one too.
    if (doubts !== this.#verdict.doubts) return true;
    // A modern backend without a legacy side refuses there, and is modern all the same.
    const ofLeg = era === 'legacy' && this.#verdict.era === 'modern';
    if (!this.#verdict.doubt(era, { stands: ofLeg, proof })) return false;
    if (ofLeg) this.#legacyLeg = 'none';
    return true;
  }

  /** Whether a request of a modern client may lead to server requests that the modern side cannot send. */
  #needsSession(caller: Caller, request: ExchangeRequest | undefined): boolean {
    if (!this.#modernCannotAsk || request === undefined || request.resumes) return false;
    return mayBeAsked(caller, request.method);
  }

  /** The legacy side of a modern backend, if it has one with sessions, on which alone it can send server requests. */
  async #tryLegacyLeg(caller: Caller): Promise<Outbound> {
    try {
      const { session } = caller;
      // A session from before the backend was found to be modern is tried; one is opened where there is none.
      await this.#legacy.authenticate(caller);
      const { sessions } = await this.#legacy.describe(caller);
      this.#legacyLeg = sessions ? 'sessions' : 'cannot-ask';
      if (sessions) return this.#legacy;
      await session?.binding?.end();
      session?.bind(undefined);
    } catch (error) {
      if (error instanceof WrongEra) this.#legacyLeg = 'none';
      else if (!isFailure(error)) throw error;
    }
    return this.#modern;
  }
}

/** @throws TypeError where there is none */
function sideOf(sides: readonly Outbound[], name: EraName): Outbound {
  const side = sides.find(({ era }) => era === name);
  if (side === undefined) throw new TypeError(`no ${name} side`);
  return side;
}

/** Whether an error is of the backend, and not for the client to act upon. */
function isFailure(error: unknown): boolean {
  return error instanceof ExchangeError && (error.outcome.status ?? 200) >= 500;
}
