import type { ClientCapabilities } from './client-capabilities.js';
import type { ClientSession } from './client-session.js';
import type { Principal } from './credentials.js';
import type { ForwardedHeaders } from './forwarded-headers.js';
import type { LogLevel } from './log-levels.js';
import type { EraName, Revision } from './revision.js';

/** Equal for requests that may get the same answers: of one principal, with equal headers and queries. */
export function identityOf({ principal, forwarded }: Pick<Caller, 'principal' | 'forwarded'>): string {
  return forwarded.variant === undefined ? principal : `${principal} ${forwarded.variant}`;
}

/** Who sends a request: what each era says in a place of its own. */
export interface Caller {
  readonly era: EraName;
  readonly revision: Revision;
  readonly principal: Principal;
  /** JSON text of the Implementation object of the client. */
  readonly clientInfo: string | undefined;
  /** In the form of the client's era. */
  readonly capabilities: ClientCapabilities;
  /** In the neutral form: what can be declared to a backend of the other era. */
  readonly neutralCapabilities: ClientCapabilities;
  readonly logLevel: LogLevel | undefined;
  readonly forwarded: ForwardedHeaders;
  /** Of a client that has a session with the gateway. */
  readonly session: ClientSession | undefined;
}
