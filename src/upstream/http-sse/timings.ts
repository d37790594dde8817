/** Time limits of HTTP+SSE sessions, in milliseconds. */
export interface HttpSseTimings {
  /** How long a POST may stay unanswered after its response has come on the stream. */
  readonly lingerMs: number;
  /** How long a slow reader may pause the stream while other requests wait for messages on it. */
  readonly slowReaderMs: number;
}

export const HTTP_SSE_TIMINGS: HttpSseTimings = { lingerMs: 10_000, slowReaderMs: 1_000 };
