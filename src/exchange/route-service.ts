import type { Exchange } from './exchange.js';
import type { ServerDescription } from './outbound.js';
import type { Outcome } from './outcome.js';
import type { Caller } from './types.js';

/** What the inbound sides need of a route: its backend, whatever era it is of. */
export interface RouteService {
  readonly path: string;
  /** Carries out an exchange; every failure comes as an outcome. */
  run(exchange: Exchange): Promise<Outcome>;
  /** @throws ExchangeError when the backend cannot be asked and never was */
  describe(caller: Caller): Promise<ServerDescription>;
  /** @throws ExchangeError when the backend refuses the credentials of the caller, or cannot be asked */
  authenticate(caller: Caller): Promise<void>;
  /** Writes the one log line of an exchange. */
  record(exchange: Exchange, httpStatus: number, outcome: Outcome): void;
}
