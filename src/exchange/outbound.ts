import type { Caller } from './caller.js';
import type { ChangeFilter } from './changes/change-filter.js';
import type { Subscriber, Subscription } from './changes/subscription.js';
import type { Exchange } from './exchange.js';
import type { Outcome } from './outcome.js';
import type { EraName } from './revision.js';

/** What a backend says of itself, in the words of its own era. */
export interface ServerDescription {
  readonly era: EraName;
  /** JSON text of the capabilities, made neutral unless the caller is of the backend's own era. */
  readonly capabilities: string;
  /** JSON texts of the Implementation object and of the instructions string. */
  readonly serverInfo: string | undefined;
  readonly instructions: string | undefined;
  /** How long the description may be kept, in milliseconds. */
  readonly ttlMs: number;
  /** The backend keeps sessions with its clients, on which it can ask them things. */
  readonly sessions: boolean;
  /** JSON text of the whole result, for a caller of the same era. */
  readonly result: Buffer;
}

/** How a call came to a side of the backend. */
export interface CallRouting {
  /** The other side refused it; the client's session, if it has one, stays with that side. */
  readonly viaOtherEra?: boolean;
}

/** The side of an era that talks to backends. */
export interface Outbound {
  readonly era: EraName;
  /**
   * Carries out one request.
   * @throws ExchangeError for errors that are the gateway's or the network's, not the backend's own answer
   * @throws OtherSide when the backend carries it out on its side of the other era alone
   * @throws WrongEra when the backend proves to be of the other era and certainly did not run the request
   */
  call(exchange: Exchange, routing?: CallRouting): Promise<Outcome>;
  /** What the backend is to this caller; for a caller with a session, what its handshake said. */
  describe(caller: Caller, signal?: AbortSignal): Promise<ServerDescription>;
  /**
   * Lets the backend judge the credentials of a client that showed others before, and uses them from then on.
   * @throws ExchangeError when the backend refuses them, or cannot be asked
   */
  authenticate(caller: Caller): Promise<void>;
  /**
   * Tells a subscriber of changes at the backend.
   * @throws ExchangeError when the backend cannot be asked
   */
  subscribe(caller: Caller, filter: ChangeFilter, subscriber: Subscriber): Promise<Subscription>;
  /** Ends sessions and connections; never throws. */
  close(): Promise<void>;
}
