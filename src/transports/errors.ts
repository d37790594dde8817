/** What went wrong between the gateway and a backend, below the level of JSON-RPC. */
export type TransportFailure =
  /** No connection came about, so the backend cannot have seen the request. */
  | 'unreachable'
  /** The connection broke after the request, or a part of it, may have been read. */
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

/** Error codes of undici and the operating system that prove that nothing was sent. */
const UNREACHABLE = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EHOSTDOWN',
  'ERR_TLS_CERT_ALTNAME_INVALID',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'CERT_HAS_EXPIRED',
  'UND_ERR_CONNECT_TIMEOUT',
]);

/** Sorts an error of undici or of a socket. */
export function transportErrorFrom(error: unknown): TransportError {
  if (error instanceof TransportError) return error;
  const { code, message } = error as { code?: string; message?: string };
  const failure = code !== undefined && UNREACHABLE.has(code) ? 'unreachable' : 'broken';
  // An AggregateError of several addresses has an empty message; the code says what happened.
  return new TransportError(failure, [code, message].filter((part) => part).join(': '), error);
}
