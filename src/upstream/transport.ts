import type { Rope } from '../jsonrpc/index.js';
import type { Backpressure } from './backpressure.js';
import type { MessageSink } from './body-reader.js';
import type { TransportError } from './errors.js';
import type { ResponseHeaders } from './response-headers.js';

/** Takes the answer to one request of a transport as it comes. Exactly one of `onEnd` and `onError` ends it. */
export interface AnswerSink extends MessageSink {
  /** Status and headers have come. Not called for the redirects that the transport follows itself. */
  onHead(status: number, headers: ResponseHeaders): void;
  /** The answer is complete; `text` is the beginning of a body that is neither JSON nor an event stream. */
  onEnd(text: string): void;
  onError(error: TransportError): void;
}

/** One request on its way, and its answer. */
export interface UpstreamRequest {
  /** Ends it without a further call to the sink. */
  abort(): void;
  /** Stops reading while whoever the last message was for lags behind. */
  waitFor(backpressure: Backpressure | undefined): void;
}

/**
 * How messages get to one backend and back, in the terms of Streamable HTTP: a POST carries messages to it, a GET opens
 * the stream for what belongs to no request, a DELETE ends a session (basic/transports). Transports without requests of
 * their own act as if they had them, so that the eras need to know of one form only.
 */
export interface Transport {
  /**
   * Sessions are made by the transport itself: one that is gone is told by the status 404, nothing that the backend says
   * can mean the same, and each has a stream for what belongs to no request.
   */
  readonly ownsSessions?: boolean;
  /**
   * Sends one request.
   * @param headers name and value in turn, names in lower case
   */
  send(
    method: 'POST' | 'GET' | 'DELETE',
    headers: readonly string[],
    body: Rope | undefined,
    sink: AnswerSink,
  ): UpstreamRequest;
  /** A session is given up without a DELETE, since the backend does not know it any more. */
  abandon?(sessionId: string): void;
  /** The backend did what it should not, and the gateway puts up with it; in words that go with its name. */
  quirk(what: string): void;
  /**
   * A transport to try something out over that the backend may not survive; to be closed after that. Left out where
   * nothing can happen to the backend.
   */
  probeTransport?(): Transport;
  /** Ends every connection, also those in use. */
  close(): Promise<void>;
}
