/**
 * What of a client's HTTP request goes to the backend beside the message. Requests with equal headers and queries share
 * one object, unless they carry trace headers.
 */
export interface ForwardedHeaders {
  readonly authorization?: string;
  /** All other headers: names in lower case and values in turn, in the order of the request. */
  readonly lines?: readonly string[];
  /** Of the URL, without `?`. */
  readonly query?: string;
  /** Digest of all that can change an answer, beside the credential; equal for equal values. */
  readonly variant?: string;
  /** The client sends something of its own that can change an answer, beside the credential. */
  readonly personal?: boolean;
}

export const NO_FORWARDED: ForwardedHeaders = {};

/** Headers by which a caller replaces a fixed one of the route; all others that the route sets replace the caller's. */
export const REPLACING_HEADERS = ['authorization', 'traceparent', 'tracestate'] as const;

/** Whether two requests with the same credential may get the same answers. */
export function isSameVariant(a: ForwardedHeaders, b: ForwardedHeaders): boolean {
  return (a.variant ?? '') === (b.variant ?? '');
}

/** Whether results are for the caller alone, whatever the backend says of them. */
export function isPersonal({ authorization, personal }: ForwardedHeaders): boolean {
  return authorization !== undefined || personal === true;
}

/** What a request forwards, with the credentials of a later one. */
export function withCredentials(forwarded: ForwardedHeaders, later: ForwardedHeaders): ForwardedHeaders {
  if (isSameVariant(forwarded, later)) return later;
  const { authorization, ...others } = forwarded;
  return later.authorization === undefined ? others : { ...others, authorization: later.authorization };
}
