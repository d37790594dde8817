import { BodyTooLargeError } from '../body/body-collector.js';
import { SseOverflowError } from '../jsonrpc/index.js';

/** What went wrong between the gateway and a backend, below JSON-RPC. */
export type TransportFailure =
  /** No connection was made, so the backend cannot have read the request. */
  | 'unreachable'
  /** The connection broke before any byte of a response; the backend may have read the request. */
  | 'unanswered'
  /** The connection broke in the middle of the response. */
  | 'broken'
  /** The backend stopped sending in the middle of a JSON body. */
  | 'stalled'
  | 'too-large'
  /** A response that the transport cannot read: a redirect to another origin, an unknown encoding. */
  | 'unusable'
  /** The gateway ended the request. */
  | 'aborted';

export class TransportError extends Error {
  readonly failure: TransportFailure;
  constructor(failure: TransportFailure, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'TransportError';
    this.failure = failure;
  }
}

/**
 * Wraps an error of undici, of a socket, or of a body reader.
 * @param failure what a broken connection means at this point of the request
 */
export function transportErrorFrom(error: unknown, failure: TransportFailure = 'broken'): TransportError {
  if (error instanceof TransportError) return error;
  if (error instanceof SseOverflowError || error instanceof BodyTooLargeError)
    return new TransportError('too-large', error.message, error);
  const { code, message } = error as { code?: string; message?: string };
  if (code === 'EMFILE' || code === 'ENFILE') {
    const reason = `${code}: the gateway has no file descriptor left for a connection (see ulimit -n)`;
    return new TransportError('unreachable', reason, error);
  }
  // The AggregateError for several addresses has an empty message, so the code goes first.
  return new TransportError(failure, [code, message].filter((part) => part).join(': '), error);
}
