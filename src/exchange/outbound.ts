import type { Caller } from './caller.js';
import type { ChangeFilter } from './changes/change-filter.js';
import type { Subscriber, Subscription } from './changes/subscription.js';
import type { Exchange } from './exchange.js';
import type { Outcome } from './outcome.js';
import type { EraName } from './revision.js';

/** How a backend describes itself. */
export interface ServerDescription {
  readonly era: EraName;
  /** JSON text, in the neutral form unless the caller is of the backend's era. */
  readonly capabilities: string;
  /** JSON text of the Implementation object. */
  readonly serverInfo: string | undefined;
  /** JSON text of a string. */
  readonly instructions: string | undefined;
  /** How long the description is fresh, in milliseconds. */
  readonly ttlMs: number;
  /** Whether the backend keeps sessions, on which it can send server requests. */
  readonly sessions: boolean;
  /** JSON text of the whole result, for a caller of the same era. */
  readonly result: Buffer;
}

/** How a backend side was chosen for a call. */
export interface CallRouting {
  /** The side of the other era refused the call. The client's session, if there is one, stays with that side. */
  readonly viaOtherEra?: boolean;
}

/** The side of an era that talks to backends. */
export interface Outbound {
  readonly era: EraName;
  /**
   * Carries out one request.
   * @throws ExchangeError for errors of the gateway and the network; an error of the backend is an outcome
   * @throws OtherSide if the backend carries the request out on its side of the other era only
   * @throws WrongEra if the backend is of the other era, and has not carried out the request
   */
  call(exchange: Exchange, routing?: CallRouting): Promise<Outcome>;
  /**
   * The backend as it describes itself to this caller; from the handshake, for a caller with a session.
   * @throws ExchangeError when the backend cannot be asked, WrongEra
   */
  describe(caller: Caller, signal?: AbortSignal): Promise<ServerDescription>;
  /**
   * Has the backend verify new credentials of a client, which are used from then on.
   * @throws ExchangeError when the backend refuses them, or cannot be asked
   */
  authenticate(caller: Caller): Promise<void>;
  /**
   * Notifies a subscriber of changes at the backend.
   * @throws ExchangeError when the backend cannot be asked
   */
  subscribe(caller: Caller, filter: ChangeFilter, subscriber: Subscriber): Promise<Subscription>;
  /** Ends sessions and connections; never throws. */
  close(): Promise<void>;
}
