import type { Channel } from './channel.js';
import type { Revision } from './revision.js';

/** A session with a backend that outlives the process that opened it. */
export interface SealedBackendSession {
  readonly id: string;
  readonly revision: Revision;
  /** Value of the `Cookie` header by which a load balancer finds the session. */
  readonly cookies: string | undefined;
}

/** A client's session with the gateway, as a backend side sees it. */
export interface ClientSession {
  /** Carries messages that belong to no request. */
  readonly channel: Channel;
  readonly binding: SessionBinding | undefined;
  /** From the sealed session id: for the backend side that is the first to serve the session. */
  readonly backendSession: SealedBackendSession | undefined;
  /** Whether the client has a stream open for messages outside any request. */
  readonly listening: boolean;
  /** Replaces the binding. The caller ends the one before. */
  bind(binding: SessionBinding | undefined): void;
}

/** What a backend side keeps for one client session. */
export interface SessionBinding {
  readonly backendSession: SealedBackendSession | undefined;
  /** The client opened or closed its stream for messages outside any request; see {@link ClientSession.listening}. */
  onListening(): void;
  /** Passes on a notification of the client. */
  notify(method: string, bytes: Buffer): void;
  /** Ends the session at the backend; never throws. */
  end(): Promise<void>;
}
