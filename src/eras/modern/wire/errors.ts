import { CODE } from '../../../exchange/errors.js';
import type { ErrorOutcome } from '../../../exchange/outcome.js';
import type { Rope } from '../../../jsonrpc/index.js';
import { MODERN_CODE, RESERVED_CODES } from './names.js';

export interface ModernError {
  readonly status: number;
  readonly code: number;
  readonly data: Rope | string | undefined;
}

const RESOURCE_NOT_FOUND = -32002;

/** HTTP statuses by code (basic/transports, "Error responses"); all other errors are those of handlers and have 200. */
const STATUS: Readonly<Record<number, number>> = {
  [CODE.methodNotFound]: 404,
  [MODERN_CODE.headerMismatch]: 400,
  [MODERN_CODE.missingClientCapability]: 400,
  [MODERN_CODE.unsupportedVersion]: 400,
};

/** The request that an error is the response to. */
export interface FailedRequest {
  /** The uri of a `resources/read`; undefined for any other request. */
  readonly uri: string | undefined;
  /** Whether the revision has the method. */
  readonly knownMethod: boolean;
}

/** Puts an error into the form of the modern era. */
export function encodeError(error: ErrorOutcome, request: FailedRequest): ModernError {
  if (error.origin === 'backend') return backendError(error, request);
  if (error.origin === 'refusal') {
    // A challenge or a rate limit: the status is decisive, and the error is the backend's.
    const { code, data } = backendError(error, request);
    return { status: error.status ?? 200, code, data };
  }
  const code = error.code === CODE.notFoundOrTimeout ? CODE.internal : error.code;
  return { status: error.status ?? STATUS[code] ?? 200, code, data: error.data };
}

function backendError(error: ErrorOutcome, { uri, knownMethod }: FailedRequest): ModernError {
  const { code, data } = error;
  if (uri !== undefined && isNotFound(error)) {
    return { status: 200, code: CODE.invalidParams, data: data ?? JSON.stringify({ uri }) };
  }
  if (error.form === 'modern') {
    // Some servers send all errors with 200, others with 400; where the revision sets a status for the code, it is used.
    const status = MODERN_STATUS.has(code) ? STATUS[code] : error.status;
    return { status: status ?? 200, code, data };
  }
  if (code === CODE.parse || code === CODE.invalidRequest) {
    // The backend rejects a message that the gateway has written; the client is not at fault.
    return { status: 500, code: CODE.internal, data };
  }
  // Python's SDK of the legacy era responds to an unknown method with invalid params.
  if (code === CODE.invalidParams && !knownMethod && error.message === 'Invalid request parameters') {
    return { status: 404, code: CODE.methodNotFound, data };
  }
  if (code >= RESERVED_CODES.from && code <= RESERVED_CODES.to) {
    // These codes have no meaning in the legacy era, or another one.
    return { status: 200, code: CODE.internal, data };
  }
  return { status: STATUS[code] ?? 200, code, data };
}

/** Codes about the envelope of the request; their HTTP status is fixed by the revision. */
const MODERN_STATUS: ReadonlySet<number> = new Set(Object.values(MODERN_CODE));

/**
 * Whether the error of a `resources/read` means that the resource does not exist: earlier revisions have -32002 for it,
 * Python's SDK the code 0, FastMCP -32001, which other servers use for timeouts and lost sessions. Invalid params of a
 * legacy server are about the uri, which is the only parameter.
 */
function isNotFound({ code, message, form }: ErrorOutcome): boolean {
  if (code === RESOURCE_NOT_FOUND) return true;
  if (form === 'modern') return false;
  if (code === CODE.notFoundOrTimeout) return !/session|time/i.test(message);
  return code === CODE.invalidParams || (code === 0 && /^unknown resource/i.test(message));
}
