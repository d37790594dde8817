import type { Revision } from '../../../exchange/revision.js';
import { POST_HEADERS } from '../../../upstream/streamable-http.js';

/** Headers that the era sets on requests to backends, as alternating names and values. */

const GET_HEADERS: readonly string[] = ['accept', 'text/event-stream', 'accept-encoding', 'identity'];

/** Of sessions without an id, by revision. */
const withoutId = new Map<Revision, readonly string[]>();

/**
 * Headers of each POST of a session (basic/transports, "Session Management"). Sessions with
 * the same headers share one list.
 */
export function postHeaders(revision: Revision, sessionId: string | undefined): readonly string[] {
  if (sessionId !== undefined) return [...POST_HEADERS, ...sessionHeaders(revision, sessionId)];
  let headers = withoutId.get(revision);
  if (headers === undefined) {
    headers = [...POST_HEADERS, ...sessionHeaders(revision, undefined)];
    withoutId.set(revision, headers);
  }
  return headers;
}

/** Headers of each GET of a session. */
export function getHeaders(revision: Revision, sessionId: string | undefined): string[] {
  return [...GET_HEADERS, ...sessionHeaders(revision, sessionId)];
}

function sessionHeaders(revision: Revision, sessionId: string | undefined): string[] {
  const version = ['mcp-protocol-version', revision];
  return sessionId === undefined ? version : ['mcp-session-id', sessionId, ...version];
}
