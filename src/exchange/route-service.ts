import type { Caller } from './caller.js';
import type { ChangeFilter } from './changes/change-filter.js';
import type { Subscriber } from './changes/subscription.js';
import type { Exchange } from './exchange.js';
import type { ServerDescription } from './outbound.js';
import type { ErrorOutcome, Outcome } from './outcome.js';
import type { EraName } from './revision.js';

/** A route as client sides use it: its backend, of any era. */
export interface RouteService {
  readonly path: string;
  /** Carries out an exchange; every failure is an outcome. */
  run(exchange: Exchange): Promise<Outcome>;
  /**
   * The era of the backend side that carries out requests of this caller.
   * @throws ExchangeError when the backend cannot be asked
   */
  eraFor(caller: Caller, signal?: AbortSignal): Promise<EraName>;
  /** @throws ExchangeError when the backend cannot be asked and no description is kept */
  describe(caller: Caller, signal?: AbortSignal): Promise<ServerDescription>;
  /** @throws ExchangeError when the backend refuses the credentials of the caller, or cannot be asked */
  authenticate(caller: Caller): Promise<void>;
  /**
   * Notifies a subscriber of changes until the exchange is cancelled.
   * @param acknowledge called with what the backend agreed to
   */
  follow(
    exchange: Exchange,
    filter: ChangeFilter,
    subscriber: Subscriber,
    acknowledge: (honoured: ChangeFilter) => void,
  ): Promise<Outcome>;
  /** What an error means to the client. Reports a fault of the gateway, which is an internal error to the client. */
  failureOf(error: unknown): ErrorOutcome;
  /** Logs an exchange, in one line. */
  record(exchange: Exchange, httpStatus: number, outcome: Outcome): void;
}
