import { CODE } from '../../../exchange/errors.js';
import type { ErrorOutcome } from '../../../exchange/outcome.js';
import { scanJson, stringMember } from '../../../jsonrpc/index.js';

/** Error codes of this era beside those of JSON-RPC. */
export const LEGACY_CODE = {
  /** server/resources, "Error Handling" */
  resourceNotFound: -32002,
  /** Since 2025-11-25 (client/elicitation, "URL Elicitation Required Error"). */
  urlElicitationRequired: -32042,
} as const;

/**
 * Statuses with which an error is sent to a legacy client: challenges, throttling, and a gateway or backend that is down. All
 * other errors have 200, since SDK clients of this era turn a 4xx into an error without code and message.
 */
const SENT_STATUSES: ReadonlySet<number> = new Set([401, 403, 429, 502, 503]);

export interface LegacyError {
  readonly status: number;
  readonly code: number;
}

/** The request that an error is the response to. */
export interface FailedRequest {
  /** The uri of a `resources/read`; undefined for any other request. */
  readonly uri: string | undefined;
  /** Whether the client can open pages for the user. */
  readonly urlElicitation: boolean;
}

/** Status and code of an error for a legacy client. */
export function encodeError(error: ErrorOutcome, request: FailedRequest): LegacyError {
  return { status: statusOf(error), code: codeOf(error, request) };
}

function statusOf(error: ErrorOutcome): number {
  if (error.origin === 'backend') return 200;
  if (error.origin === 'gateway' && error.declared !== undefined) return error.declared.status.legacy;
  return SENT_STATUSES.has(error.status ?? 200) ? (error.status as number) : 200;
}

function codeOf(error: ErrorOutcome, { uri, urlElicitation }: FailedRequest): number {
  const { code, form } = error;
  // Only a client that can open pages can do what this code requires.
  if (code === LEGACY_CODE.urlElicitationRequired && !urlElicitation) return CODE.internal;
  if (error.origin === 'gateway') return error.declared?.code.legacy ?? code;
  if (form === 'legacy' || error.origin === 'refusal') return code;
  if (uri !== undefined && isNotFound(error, uri)) return LEGACY_CODE.resourceNotFound;
  // The backend rejects a message that the gateway has written; the client is not at fault.
  return code === CODE.parse || code === CODE.invalidRequest ? CODE.internal : code;
}

/**
 * Whether a modern server did not find a resource. That era has no code for this: the uri in the data distinguishes it from
 * other invalid params (server/resources, "Error Handling").
 */
function isNotFound(error: ErrorOutcome, uri: string): boolean {
  if (error.code !== CODE.invalidParams || typeof error.data !== 'string') return false;
  const bytes = Buffer.from(error.data);
  return stringMember(bytes, scanJson(bytes, 1), 'uri') === uri;
}
