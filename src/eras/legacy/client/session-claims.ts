import { type ClientCapabilities, readCapabilities } from '../../../exchange/client-capabilities.js';
import type { SealedBackendSession } from '../../../exchange/client-session.js';
import type { Principal } from '../../../exchange/credentials.js';
import type { Revision } from '../../../exchange/revision.js';
import type { Sealer } from '../../../exchange/utils/sealer.js';
import { neutralClientCapabilities } from '../wire/client-capabilities.js';

/** What a sealed session id holds: all that a process needs to serve a session that another process opened. */
export interface SessionClaims {
  readonly route: string;
  readonly revision: Revision;
  readonly principal: Principal;
  /** The owner that the credential of the handshake names; undefined if it names none. */
  readonly owner: string | undefined;
  /** JSON text of the client's Implementation object. */
  readonly clientInfo: string | undefined;
  readonly capabilities: ClientCapabilities;
  readonly neutralCapabilities: ClientCapabilities;
  readonly backendSession: SealedBackendSession | undefined;
}

const PURPOSE = 'session';
/** How long a sealed id is valid after the handshake. */
const LIFETIME_MS = 7 * 24 * 3_600_000;
/** Larger parts are left out of the id, which is sent as a header. Client infos may hold icons. */
const MAX_INFO_BYTES = 1_024;
const MAX_CAPABILITIES_BYTES = 3_000;
const MAX_COOKIES_BYTES = 512;
/** Longest header line of common proxies, and longest token that the sealer opens. */
const MAX_TOKEN_CHARS = 8_000;

type Sealed = [
  route: string,
  revision: string,
  principal: string,
  issuedAt: number,
  clientInfo: string | null,
  capabilities: string,
  backendId: string | null,
  backendRevision: string | null,
  owner: string | null,
  cookies: string | null,
];

/** Seals claims into the session ids of one route, and opens them. */
export class ClaimsSealer {
  readonly #route: string;
  readonly #sealer: Sealer;

  constructor(route: string, sealer: Sealer) {
    this.#route = route;
    this.#sealer = sealer;
  }

  /**
   * Seals claims, without those that would make the id too long: some backends have ids of several thousand characters.
   * @param backend the session that the client's one is bound to
   */
  seal(claims: SessionClaims, backend: SealedBackendSession | undefined): string {
    const clientInfo = upTo(MAX_INFO_BYTES, claims.clientInfo);
    const capabilities = upTo(MAX_CAPABILITIES_BYTES, claims.capabilities.text) ?? '{}';
    const token = this.#seal(claims, clientInfo, capabilities, backend);
    if (token.length <= MAX_TOKEN_CHARS) return token;
    // Another process needs the backend's session more than what the client says of itself.
    const withoutClient = this.#seal(claims, null, '{}', backend);
    if (withoutClient.length <= MAX_TOKEN_CHARS) return withoutClient;
    return this.#seal(claims, clientInfo, capabilities, undefined);
  }

  #seal(
    { revision, principal, owner }: SessionClaims,
    clientInfo: string | null,
    capabilities: string,
    backend: SealedBackendSession | undefined,
  ): string {
    const sealed: Sealed = [
      this.#route,
      revision,
      principal,
      Date.now(),
      clientInfo,
      capabilities,
      backend?.id ?? null,
      backend?.revision ?? null,
      owner ?? null,
      upTo(MAX_COOKIES_BYTES, backend?.cookies),
    ];
    return this.#sealer.seal(PURPOSE, JSON.stringify(sealed));
  }

  /** The claims of an id; undefined if it is not of this route, has expired, or was not sealed with a known key. */
  open(token: string): SessionClaims | undefined {
    const content = this.#sealer.open(PURPOSE, token);
    if (content === undefined) return undefined;
    const sealed = JSON.parse(content) as Sealed;
    const [route, revision, principal, issuedAt, clientInfo, capabilities] = sealed;
    const [backendId, backendRevision, owner, cookies] = sealed.slice(6) as (string | null | undefined)[];
    if (route !== this.#route || Date.now() - issuedAt > LIFETIME_MS) return undefined;
    const declared = readCapabilities(capabilities);
    return {
      route,
      revision,
      principal: principal as Principal,
      owner: owner ?? undefined,
      clientInfo: clientInfo ?? undefined,
      capabilities: declared,
      neutralCapabilities: neutralClientCapabilities(declared, revision),
      backendSession:
        typeof backendId === 'string'
          ? { id: backendId, revision: backendRevision ?? revision, cookies: cookies ?? undefined }
          : undefined,
    };
  }
}

/** The text, unless it is longer. */
function upTo(bytes: number, text: string | undefined): string | null {
  return text !== undefined && Buffer.byteLength(text) <= bytes ? text : null;
}
