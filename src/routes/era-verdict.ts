import type { ProbeFinding } from '../eras/index.js';
import type { BackendLabel } from '../exchange/backend-label.js';
import { ExchangeError, exchangeError } from '../exchange/errors.js';
import { faultsTo } from '../exchange/failures.js';
import { type ForwardedHeaders, isSameVariant } from '../exchange/forwarded-headers.js';
import type { EraName } from '../exchange/revision.js';
import { BACKEND_ERRORS } from '../upstream/backend-errors.js';

/** The era that a backend is held to be of, and why. */
export interface Verdict {
  readonly era: EraName;
  readonly reason: string;
  /** On the monotonic clock, in milliseconds. */
  readonly until: number;
}

export interface EraVerdictOptions extends BackendLabel {
  /** Asks the backend whether it speaks the modern era. */
  readonly probe: (forwarded: ForwardedHeaders) => Promise<ProbeFinding>;
  /** Observes every new verdict. */
  readonly onVerdict: (verdict: Verdict) => void;
  /** The backend cannot be used at the start; `reason` is a sentence. */
  readonly onAbsent: (reason: string) => void;
  readonly onFault: (error: unknown) => void;
  /** The backend is of another era than before. */
  readonly onEraChange: () => void;
}

interface Probing {
  /** The credential that the probe is sent with. */
  readonly forwarded: ForwardedHeaders;
  readonly found: Promise<Verdict | undefined>;
}

/** What a refusal means for a verdict. */
export interface Doubt {
  /** The verdict stands all the same. */
  readonly stands: boolean;
  /** What the backend said that no server of the refused era says. */
  readonly proof: string | undefined;
}

const HOUR_MS = 3_600_000;
/** How long after a probe without proof there is no other, where one takes long or an older verdict stands. */
const PROVISIONAL_MS = 60_000;
/** How long after a doubt in vain a verdict is not doubted again. */
const CONFIRMED_MS = 1_000;

/** The verdict about the era of a backend: found by a probe, kept for a while, and found again once it is doubted. */
export class EraVerdict {
  readonly #options: EraVerdictOptions;
  /** Undefined while none is found, or the last one is doubted. */
  #verdict: Verdict | undefined;
  #latest: Verdict | undefined;
  #probing: Probing | undefined;
  #confirmedAt = Number.NEGATIVE_INFINITY;
  #doubts = 0;
  /** What proves that the backend is modern, for where a probe proves nothing. */
  #provedModern: string | undefined;

  constructor(options: EraVerdictOptions) {
    this.#options = options;
  }

  get era(): EraName | undefined {
    return this.#verdict?.era;
  }

  /** How often it was doubted. */
  get doubts(): number {
    return this.#doubts;
  }

  /**
   * The era of the backend, at once where it is known; undefined where nothing proves any.
   * @throws ExchangeError when the backend cannot be reached, or shares no version with the gateway
   */
  get(forwarded: ForwardedHeaders): EraName | Promise<EraName | undefined> {
    const verdict = this.#verdict;
    if (verdict === undefined) return this.#find(forwarded).then((found) => found?.era);
    // An old verdict serves until the new one is found; a failure leaves it as it is.
    if (performance.now() > verdict.until) this.#find(forwarded).catch(faultsTo(this.#options.onFault));
    return verdict.era;
  }

  /** Finds the verdict in the background. */
  warmUp(): void {
    const { onAbsent, onFault } = this.#options;
    if (this.#verdict !== undefined) return;
    this.#find({}).catch((error: unknown) => {
      if (error instanceof ExchangeError) onAbsent(error.message);
      else onFault(error);
    });
  }

  /**
   * The side of an era was refused.
   * @returns false where the verdict was found again a moment ago, and stands
   */
  doubt(era: EraName, { stands, proof }: Doubt): boolean {
    if (performance.now() - this.#confirmedAt < CONFIRMED_MS) return false;
    this.#doubts++;
    if (era === 'legacy') this.#provedModern = proof;
    if (!stands) this.#verdict = undefined;
    return true;
  }

  /** One probe at a time, of which all get the result. */
  async #find(forwarded: ForwardedHeaders): Promise<Verdict | undefined> {
    const probing = this.#probing;
    if (probing !== undefined) {
      const verdict = await probing.found;
      if (verdict !== undefined || isSameCaller(probing.forwarded, forwarded)) return verdict;
      // What is refused to one credential may be open to another.
      return this.#probe(forwarded);
    }
    const found = this.#probe(forwarded).finally(() => {
      this.#probing = undefined;
    });
    this.#probing = { forwarded, found };
    return found;
  }

  async #probe(forwarded: ForwardedHeaders): Promise<Verdict | undefined> {
    const finding = await this.#options.probe(forwarded);
    const { route, name } = this.#options;
    switch (finding.kind) {
      case 'spoken':
        return this.#settle('modern', finding.reason, HOUR_MS);
      case 'not-spoken':
        return this.#settle('legacy', finding.reason, HOUR_MS);
      case 'no-common-version':
        throw exchangeError(
          BACKEND_ERRORS.ERAGATE_NO_COMMON_VERSION,
          { route },
          { detail: `no common protocol version with ${name}: it ${finding.reason}` },
        );
      case 'unreachable':
        throw exchangeError(
          BACKEND_ERRORS.ERAGATE_BACKEND_UNREACHABLE,
          { route },
          { detail: `cannot reach ${name}: ${finding.reason}` },
        );
      case 'inconclusive':
        return this.#settleWithoutProof(finding.reason, finding.slow);
    }
  }

  /** An older verdict stands; without one, a verdict is kept only if it took long to find. */
  #settleWithoutProof(reason: string, slow: boolean): Verdict | undefined {
    if (this.#verdict !== undefined)
      return this.#settle(this.#verdict.era, this.#verdict.reason, PROVISIONAL_MS);
    if (this.#provedModern !== undefined) return this.#settle('modern', this.#provedModern, PROVISIONAL_MS);
    return slow ? this.#settle('legacy', `unproved: ${reason}`, PROVISIONAL_MS) : undefined;
  }

  #settle(era: EraName, reason: string, forMs: number): Verdict {
    const now = performance.now();
    const before = this.#latest;
    const verdict = { era, reason, until: now + forMs };
    if (before?.era !== era) this.#options.onEraChange();
    else if (this.#verdict === undefined) this.#confirmedAt = now;
    this.#verdict = verdict;
    this.#latest = verdict;
    if (before?.era !== era || before.reason !== reason) this.#options.onVerdict(verdict);
    return verdict;
  }
}

/** Whether a backend cannot tell two callers apart. */
function isSameCaller(a: ForwardedHeaders, b: ForwardedHeaders): boolean {
  return a.authorization === b.authorization && isSameVariant(a, b);
}
