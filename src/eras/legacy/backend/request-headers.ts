import { type ForwardedHeaders, NO_FORWARDED } from '../../../exchange/forwarded-headers.js';
import type { Revision } from '../../../exchange/revision.js';
import { CookieJar } from '../../../upstream/cookies.js';
import { addForwarded } from '../../../upstream/request-headers.js';
import type { ResponseHeaders } from '../../../upstream/response-headers.js';
import { POST_HEADERS } from '../../../upstream/streamable-http.js';

/** Headers that the era sets on requests to backends, as alternating names and values. */

const GET_HEADERS: readonly string[] = ['accept', 'text/event-stream', 'accept-encoding', 'identity'];

/** POST headers of sessions without an id, by revision: they share one list. */
const withoutId = new Map<Revision, readonly string[]>();

/** Headers by which a session is named (basic/transports, "Session Management" and "Protocol Version Header"). */
function sessionHeaders(revision: Revision, sessionId: string | undefined): string[] {
  const version = ['mcp-protocol-version', revision];
  return sessionId === undefined ? version : ['mcp-session-id', sessionId, ...version];
}

function postHeaders(revision: Revision, sessionId: string | undefined): readonly string[] {
  if (sessionId !== undefined) return [...POST_HEADERS, ...sessionHeaders(revision, sessionId)];
  let headers = withoutId.get(revision);
  if (headers === undefined) {
    headers = [...POST_HEADERS, ...sessionHeaders(revision, undefined)];
    withoutId.set(revision, headers);
  }
  return headers;
}

/** Headers of `initialize`, which carries no session id and no version header: neither exists yet. */
export function initializeHeaders(forwarded: ForwardedHeaders): string[] {
  const headers = [...POST_HEADERS];
  addForwarded(headers, forwarded);
  return headers;
}

/** The headers of all requests of one session. */
export class SessionHeaders {
  readonly #revision: Revision;
  readonly #sessionId: string | undefined;
  readonly #post: readonly string[];
  #cookies: CookieJar | undefined;
  /** The latest list, for requests that forward the same. */
  #latest: { readonly forwarded: ForwardedHeaders; readonly list: readonly string[] } | undefined;

  /** @param cookies value of the `Cookie` header to begin with */
  constructor(revision: Revision, sessionId: string | undefined, cookies?: string) {
    this.#revision = revision;
    this.#sessionId = sessionId;
    this.#post = postHeaders(revision, sessionId);
    if (cookies !== undefined) this.#cookies = new CookieJar(cookies);
  }

  /** Headers of a POST or DELETE. */
  post(forwarded: ForwardedHeaders): readonly string[] {
    // Most requests of a session have the same headers and share one list.
    if (this.#cookies !== undefined) return this.#complete([...this.#post], forwarded);
    if (forwarded === NO_FORWARDED) return this.#post;
    if (this.#latest?.forwarded !== forwarded)
      this.#latest = { forwarded, list: this.#complete([...this.#post], forwarded) };
    return this.#latest.list;
  }

  /** Headers of a GET. */
  get(forwarded: ForwardedHeaders): string[] {
    return this.#complete([...GET_HEADERS, ...sessionHeaders(this.#revision, this.#sessionId)], forwarded);
  }

  #complete(headers: string[], forwarded: ForwardedHeaders): string[] {
    addForwarded(headers, forwarded);
    const { cookies } = this;
    if (cookies !== undefined) headers.push('cookie', cookies);
    return headers;
  }

  /** Keeps the cookies of a response within the session: load balancers use them to route it to one replica. */
  keepCookies(headers: ResponseHeaders): void {
    if (headers['set-cookie'] === undefined) return;
    this.#cookies ??= new CookieJar();
    this.#cookies.keep(headers);
  }

  /** Value of the `Cookie` header; undefined if the backend set none. */
  get cookies(): string | undefined {
    return this.#cookies?.header;
  }
}
