import type { Rope } from '../../jsonrpc/index.js';
import type { StreamableHttpTransport } from '../streamable-http.js';
import type { ResponseSink, Transport, UpstreamRequest } from '../transport.js';
import { headerOf } from './headers.js';
import { SessionOpening, type TransportChoice, type UrlTransport } from './session-opening.js';
import { HttpSseTransport } from './transport.js';

/**
 * Detects the transport of a backend whenever a session is opened, so that a backend that is replaced by one of the
 * other transport is detected again. All other requests use the transport of their session.
 */
export class AutoTransport implements Transport, TransportChoice {
  readonly streamable: StreamableHttpTransport;
  readonly sse: HttpSseTransport;
  readonly #onDetected: (transport: UrlTransport) => void;
  #detected: UrlTransport | undefined;

  /** @param onDetected called when another transport works than before */
  constructor(
    streamable: StreamableHttpTransport,
    sse: HttpSseTransport,
    onDetected: (transport: UrlTransport) => void = () => {},
  ) {
    this.streamable = streamable;
    this.sse = sse;
    this.#onDetected = onDetected;
  }

  get detected(): UrlTransport | undefined {
    return this.#detected;
  }

  send(
    method: 'POST' | 'GET' | 'DELETE',
    headers: readonly string[],
    body: Rope | undefined,
    sink: ResponseSink,
  ): UpstreamRequest {
    const session = headerOf(headers, 'mcp-session-id');
    if (session !== undefined && HttpSseTransport.isSessionId(session)) {
      return this.sse.send(method, headers, body, sink);
    }
    // Only `initialize` is sent without a version header: none has been agreed on yet.
    if (session === undefined && body !== undefined && !headers.includes('mcp-protocol-version')) {
      return new SessionOpening(this, headers, body, sink).start();
    }
    return this.streamable.send(method, headers, body, sink);
  }

  noteDetected(transport: UrlTransport): void {
    if (this.#detected === transport) return;
    this.#detected = transport;
    this.#onDetected(transport);
  }

  dropSession(sessionId: string): void {
    this.sse.dropSession(sessionId);
  }

  reportDeviation(what: string): void {
    this.streamable.reportDeviation(what);
  }

  async close(): Promise<void> {
    await Promise.all([this.streamable.close(), this.sse.close()]);
  }
}
