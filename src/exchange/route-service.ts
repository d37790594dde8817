import type { Caller } from './caller.js';
import type { ChangeFilter } from './changes/change-filter.js';
import type { Subscriber } from './changes/subscription.js';
import type { Exchange } from './exchange.js';
import type { ServerDescription } from './outbound.js';
import type { ErrorOutcome, Outcome } from './outcome.js';
import type { EraName } from './revision.js';

/** What the inbound sides need of a route: its backend, whatever era it is of. */
export interface RouteService {
  readonly path: string;
  /** Carries out an exchange; every failure comes as an outcome. */
  run(exchange: Exchange): Promise<Outcome>;
  /**
   * The era of the backend that requests of this caller go to.
   * @throws ExchangeError when that cannot be found out
   */
  eraFor(caller: Caller, signal?: AbortSignal): Promise<EraName>;
  /** @throws ExchangeError when the backend cannot be asked and never was */
  describe(caller: Caller, signal?: AbortSignal): Promise<ServerDescription>;
  /** @throws ExchangeError when the backend refuses the credentials of the caller, or cannot be asked */
  authenticate(caller: Caller): Promise<void>;
  /**
   * Tells a subscriber of changes as long as an exchange lasts.
   * @param acknowledge called once it is known what will be heard of
   */
  follow(
    exchange: Exchange,
    filter: ChangeFilter,
    subscriber: Subscriber,
    acknowledge: (honoured: ChangeFilter) => void,
  ): Promise<Outcome>;
  /**
   * What an error means to the client. A fault of the gateway is reported, and becomes an internal error.
   */
  failureOf(error: unknown): ErrorOutcome;
  /** Writes the one log line of an exchange. */
  record(exchange: Exchange, httpStatus: number, outcome: Outcome): void;
}
