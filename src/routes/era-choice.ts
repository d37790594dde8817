import type { Caller } from '../exchange/caller.js';
import type { ExchangeRequest } from '../exchange/exchange.js';
import type { Outbound } from '../exchange/outbound.js';
import type { EraName } from '../exchange/revision.js';

/** Chooses the era, and with it the side of the gateway, that carries out a request on a backend. */
export interface EraChoice {
  /** Grows whenever the choice is doubted; to be read before {@link EraChoice.outboundFor}. */
  readonly doubts: number;
  /**
   * The side to use for a caller, or for a request of it; at once where it is known.
   * @throws ExchangeError when the backend cannot be reached, or shares no version with the gateway
   */
  outboundFor(caller: Caller, request?: ExchangeRequest): Outbound | Promise<Outbound>;
  /** The side that may carry out what the tried one refuses on principle; undefined where it is not to be used. */
  otherThan(tried: Outbound): Outbound | undefined;
  /**
   * The backend answered as one of another era would.
   * @param doubts of the time when the side was chosen
   * @param proof what it said, if no server of the era that was asked says so
   * @returns whether to ask for the side again
   */
  contradicted(era: EraName, doubts: number, proof?: string): boolean;
  /** A handler of the backend cannot send a server request on this side. */
  cannotAsk(side: Outbound): void;
  /** Finds the era in the background, so that the first request need not wait for it. */
  warmUp(): void;
}

/** The choice of the configuration, or of a gateway with one era: it is never questioned. */
export class PinnedEra implements EraChoice {
  readonly doubts = 0;
  readonly #side: Outbound;
  readonly #warmUp: () => void;

  /** @param warmUp called at the start */
  constructor(side: Outbound, warmUp: () => void = () => {}) {
    this.#side = side;
    this.#warmUp = warmUp;
  }

  outboundFor(): Outbound {
    return this.#side;
  }

  otherThan(): undefined {}

  contradicted(): boolean {
    return false;
  }

  cannotAsk(): void {}

  warmUp(): void {
    this.#warmUp();
  }
}
