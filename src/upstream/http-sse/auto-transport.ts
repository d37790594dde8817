import type { Rope } from '../../jsonrpc/index.js';
import type { StreamableHttpTransport } from '../streamable-http.js';
import type { ResponseSink, Transport, UpstreamRequest } from '../transport.js';
import { headerOf } from './headers.js';
import { Opening, type UrlTransport, type Ways } from './opening.js';
import { HttpSseTransport } from './transport.js';

/**
 * Reaches a backend by the transport that it has. That is found out whenever a session is opened, so that a backend
 * that is replaced by one of the other transport is found again; all else goes the way of its session.
 */
export class AutoTransport implements Transport, Ways {
  readonly streamable: StreamableHttpTransport;
  readonly sse: HttpSseTransport;
  found: UrlTransport | undefined;
  readonly #onFound: (transport: UrlTransport) => void;

  /** @param onFound told when the backend is reached by another transport than before */
  constructor(
    streamable: StreamableHttpTransport,
    sse: HttpSseTransport,
    onFound: (transport: UrlTransport) => void = () => {},
  ) {
    this.streamable = streamable;
    this.sse = sse;
    this.#onFound = onFound;
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
    // Of all requests, `initialize` alone has no version in its headers: none has been agreed on yet.
    if (session === undefined && body !== undefined && !headers.includes('mcp-protocol-version')) {
      return new Opening(this, headers, body, sink).start();
    }
    return this.streamable.send(method, headers, body, sink);
  }

  find(transport: UrlTransport): void {
    if (this.found === transport) return;
    this.found = transport;
    this.#onFound(transport);
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
