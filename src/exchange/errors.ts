import { type ErrorOutcome, ownError } from './outcome.js';

/** JSON-RPC 2.0 error codes, and the range that MCP's SDKs use for their own. */
export const CODE = {
  parse: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internal: -32603,
  /** SDKs of the legacy era: anything wrong with the HTTP request. */
  server: -32000,
  /** SDKs of the legacy era: session not found, and request timed out. */
  notFoundOrTimeout: -32001,
} as const;

/** Ends an exchange with an error for the client; everything that the gateway throws on purpose is one of these. */
export class ExchangeError extends Error {
  readonly outcome: ErrorOutcome;
  constructor(outcome: ErrorOutcome) {
    super(outcome.message);
    this.name = 'ExchangeError';
    this.outcome = outcome;
  }
}

/** The client cannot be asked: it did not declare the capability, has no stream, or has gone. */
export class ServerRequestRefused extends Error {
  readonly code: number;
  constructor(message: string, code: number = CODE.methodNotFound) {
    super(message);
    this.name = 'ServerRequestRefused';
    this.code = code;
  }
}

/** The server took its question back: it waits for no answer, and is to get none (basic/utilities/cancellation). */
export class ServerRequestWithdrawn extends Error {
  constructor() {
    super('the server took the question back');
    this.name = 'ServerRequestWithdrawn';
  }
}

/** The backend cannot be reached, or answered something that is not MCP: nobody's request is at fault. */
export function badGateway(what: string, status = 502): ExchangeError {
  return new ExchangeError(ownError({ code: CODE.internal, message: what, status }));
}

/** No connection to the backend comes about, which may be over soon. */
export function unreachable(what: string): ExchangeError {
  return new ExchangeError(
    ownError({ code: CODE.internal, message: what, status: 502, headers: { 'retry-after': '1' } }),
  );
}

/** The backend cannot serve for the time being, and says how long that will take (RFC 9110, section 10.2.3). */
export function unavailable(what: string, retryAfter: string): ExchangeError {
  const headers = { 'retry-after': retryAfter };
  return new ExchangeError(ownError({ code: CODE.internal, message: what, status: 503, headers }));
}

/** A limit of the gateway was reached; the client may try again later. */
export function overloaded(what: string, retryAfterSeconds = 1): ExchangeError {
  return new ExchangeError(
    ownError({
      code: CODE.internal,
      message: what,
      status: 503,
      headers: { 'retry-after': String(retryAfterSeconds) },
    }),
  );
}

/** The backend took longer than `timeouts.total`. */
export function timedOut(afterMs: number): ExchangeError {
  return new ExchangeError(
    ownError({
      code: CODE.notFoundOrTimeout,
      message: `Request timed out: the backend gave no answer within ${afterMs} ms`,
      status: 504,
    }),
  );
}

/** The client has gone or has cancelled: nobody reads the outcome. */
export function cancelled(reason: string): ExchangeError {
  return new ExchangeError(ownError({ code: CODE.internal, message: `Request cancelled: ${reason}` }));
}
