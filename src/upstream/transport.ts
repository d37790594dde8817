import type { Rope } from '../jsonrpc/index.js';
import type { Backpressure } from './backpressure.js';
import type { MessageSink } from './body-reader.js';
import type { TransportError } from './errors.js';
import type { ResponseHeaders } from './response-headers.js';

/** Receives the response to one request of a transport. Exactly one of `onEnd` and `onError` fires, once, as the last. */
export interface ResponseSink extends MessageSink {
  /** Status and headers have arrived. Not called for redirects, which the transport follows itself. */
  onHead(status: number, headers: ResponseHeaders): void;
  /** The response is complete; `text` is the beginning of a body that is neither JSON nor an event stream. */
  onEnd(text: string): void;
  onError(error: TransportError): void;
}

/** Ignores a response. */
export const IGNORE_RESPONSE: ResponseSink = { onHead() {}, onMessage() {}, onEnd() {}, onError() {} };

/** A request that was sent, and its response. */
export interface UpstreamRequest {
  /** Ends the request; the sink is not called any more. */
  abort(): void;
  /** Pauses reading until the consumer of the last message has drained; undefined does nothing. */
  waitFor(backpressure: Backpressure | undefined): void;
}

/**
 * Carries messages to one backend and back, in the terms of Streamable HTTP: a POST sends a message, a GET opens the
 * stream of server messages not tied to a request, a DELETE ends a session (basic/transports). Transports of other
 * forms emulate these, so that the eras know only one.
 */
export interface Transport {
  /**
   * The transport assigns the session ids. Then only status 404 means that a session is lost, whatever the backend
   * says, and each session has a standalone GET stream.
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
    sink: ResponseSink,
  ): UpstreamRequest;
  /** Drops a session that the backend no longer knows; no DELETE is sent. */
  dropSession?(sessionId: string): void;
  /** Reports a deviation of the backend from the protocol that the gateway tolerates, as a predicate: "sends ...". */
  reportDeviation(what: string): void;
  /** Opens a separate transport for requests that may crash the backend. Absent where none can. The caller closes it. */
  probeTransport?(): Transport;
  /** Ends every connection, also those in use. */
  close(): Promise<void>;
}
