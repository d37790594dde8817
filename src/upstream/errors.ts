import { SseOverflowError } from '../jsonrpc/index.js';

/** What went wrong between the gateway and a backend, below the level of JSON-RPC. */
export type TransportFailure =
  /** The request never got a connection, so the backend cannot have seen it. */
  | 'unreachable'
  /** The connection broke after the request, or a part of it, may have been read, before a byte of an answer came. */
  | 'unanswered'
  /** The connection broke in the middle of the answer. */
  | 'broken'
  /** The backend began an answer and then stayed silent. */
  | 'stalled'
  | 'too-large'
  /** An answer that the transport cannot read: a redirect to elsewhere, an unknown encoding. */
  | 'unusable'
  /** The gateway itself ended it. */
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
 * An error of undici, of a socket, or of a reader of bodies as one of the transport.
 * @param failure what a broken connection means, as far as the request had come
 */
export function transportErrorFrom(error: unknown, failure: TransportFailure = 'broken'): TransportError {
  if (error instanceof TransportError) return error;
  if (error instanceof SseOverflowError) return new TransportError('too-large', error.message, error);
  const { code, message } = error as { code?: string; message?: string };
  // An AggregateError of several addresses has an empty message; the code says what happened.
  return new TransportError(failure, [code, message].filter((part) => part).join(': '), error);
}
