import { type Caller, identityOf } from '../../../exchange/caller.js';
import type { ClientCapabilities } from '../../../exchange/client-capabilities.js';
import { keyText } from '../../../exchange/utils/hash.js';
import { type DeclaredCapabilities, declaredCapabilities } from '../wire/client-capabilities.js';

/** What the gateway declares when it opens a session on behalf of a caller. */
export interface SessionIdentity {
  /** Equal for callers that may share a session. */
  readonly key: string;
  /** JSON text of the capabilities. */
  readonly capabilities: string;
  /** JSON text of the Implementation object. */
  readonly clientInfo: string;
  /** The capabilities let the server send requests to the client. */
  readonly allowServerRequests: boolean;
}

/** An identity with what it was made from. */
interface LatestIdentity extends SessionIdentity {
  readonly owner: string;
  readonly callerInfo: string | undefined;
}

export interface SessionIdentitiesOptions {
  /** Whether the client's roots are declared. */
  readonly roots: boolean;
  /** JSON text of the Implementation object for clients that name none. */
  readonly ownInfo: string;
}

/** The identities of callers, made once for consecutive calls of one client. */
export class SessionIdentities {
  readonly #options: SessionIdentitiesOptions;
  /** The latest identity by declared capabilities: equal declarations are mostly one object. */
  readonly #latest = new WeakMap<ClientCapabilities, LatestIdentity>();
  readonly #declared = new WeakMap<ClientCapabilities, DeclaredCapabilities>();

  constructor(options: SessionIdentitiesOptions) {
    this.#options = options;
  }

  of(caller: Caller): SessionIdentity {
    const { neutralCapabilities, clientInfo: callerInfo } = caller;
    const owner = identityOf(caller);
    const latest = this.#latest.get(neutralCapabilities);
    if (latest?.owner === owner && latest.callerInfo === callerInfo) return latest;
    const { text, allowServerRequests } = this.#declaredFor(neutralCapabilities);
    const clientInfo = callerInfo ?? this.#options.ownInfo;
    const key = `${owner} ${keyText(text)} ${keyText(clientInfo)}`;
    const identity = { key, capabilities: text, clientInfo, allowServerRequests, owner, callerInfo };
    this.#latest.set(neutralCapabilities, identity);
    return identity;
  }

  #declaredFor(capabilities: ClientCapabilities): DeclaredCapabilities {
    let declared = this.#declared.get(capabilities);
    if (declared === undefined) {
      declared = declaredCapabilities(capabilities, { roots: this.#options.roots });
      this.#declared.set(capabilities, declared);
    }
    return declared;
  }
}
