import { parseFrame, type RequestId, type Rope } from '../../jsonrpc/index.js';
import { Connections } from '../connections.js';
import { TransportError } from '../errors.js';
import { FixedTarget, type HttpLimits } from '../http-target.js';
import { synthesizeResponse } from '../synthetic-response.js';
import type { ResponseSink, Transport, UpstreamRequest } from '../transport.js';
import { resolveEndpoint } from './endpoint.js';
import { headerOf } from './headers.js';
import { HttpSseSession, SESSION_PREFIX } from './session.js';
import type { StreamFailure } from './session-stream.js';
import { HTTP_SSE_TIMINGS, type HttpSseTimings } from './timings.js';

export interface HttpSseOptions extends HttpLimits {
  /** Of the event stream. */
  readonly url: string;
  /** Where to post messages, instead of the URL that the backend announces. */
  readonly messagesUrl: string | undefined;
  /** Value of `Host`, if not the authority of the URL. */
  readonly hostHeader: string | undefined;
  /** Fixed headers of the route, name and value in turn. */
  readonly headers: readonly string[];
  /** Longest time for making a connection, in milliseconds. */
  readonly connectMs: number;
  /** Longest time until the `endpoint` event, in milliseconds. */
  readonly endpointMs: number;
  /** See {@link Transport.reportDeviation}. */
  readonly onDeviation?: (what: string) => void;
  /** Default {@link HTTP_SSE_TIMINGS}. */
  readonly timings?: Partial<HttpSseTimings> | undefined;
}

/** An `initialize` that opens a session. */
interface SessionOpenRequest {
  readonly headers: readonly string[];
  readonly body: Rope;
  readonly sink: ResponseSink;
  /** Called instead of the sink where the backend opens no event stream. */
  readonly onNoStream?: (why: StreamFailure) => void;
  /** The backend speaks HTTP+SSE. */
  readonly onOpen?: () => void;
}

/**
 * Emulates Streamable HTTP for a backend that speaks HTTP+SSE, the transport of 2024-11-05: the POST of `initialize`
 * opens an event stream and assigns a session id; POSTs with this id get their responses from the stream; a GET reads
 * its messages not tied to a request; a DELETE closes it. Once the stream has ended, the id gets a 404.
 */
export class HttpSseTransport implements Transport {
  readonly #options: HttpSseOptions;
  readonly #timings: HttpSseTimings;
  readonly #url: URL;
  readonly #messagesUrl: URL | undefined;
  readonly #stream: FixedTarget;
  readonly #getHeaders: readonly string[];
  readonly #postHeaders: readonly string[];
  /** By origin. */
  readonly #connections = new Map<string, Connections>();
  readonly #sessions = new Map<string, HttpSseSession>();

  constructor(options: HttpSseOptions) {
    const { url, messagesUrl, headers, hostHeader } = options;
    this.#options = options;
    this.#timings = { ...HTTP_SSE_TIMINGS, ...options.timings };
    this.#url = new URL(url);
    this.#messagesUrl = messagesUrl === undefined ? undefined : new URL(messagesUrl);
    const withHost = hostHeader === undefined ? headers : [...headers, 'host', hostHeader];
    this.#getHeaders = withHost;
    // The configured Host is that of the stream's origin only.
    const isElsewhere = this.#messagesUrl !== undefined && this.#messagesUrl.origin !== this.#url.origin;
    this.#postHeaders = isElsewhere ? headers : withHost;
    this.#stream = this.#targetAt(this.#url);
  }

  /** Whether a session of this transport has, or had, this id. */
  static isSessionId(id: string): boolean {
    return id.startsWith(SESSION_PREFIX);
  }

  send(
    method: 'POST' | 'GET' | 'DELETE',
    headers: readonly string[],
    body: Rope | undefined,
    sink: ResponseSink,
  ): UpstreamRequest {
    const id = headerOf(headers, 'mcp-session-id');
    if (method === 'POST' && id === undefined && body !== undefined)
      return this.open({ headers, body, sink });
    const session = id === undefined ? undefined : this.#sessions.get(id);
    if (session === undefined)
      return synthesizeResponse(sink, id === undefined ? 400 : 404, 'Session not found');
    if (method === 'GET') return session.openStream(sink);
    if (method === 'DELETE' || body === undefined) {
      session.close(new TransportError('aborted', 'the session was ended'));
      return synthesizeResponse(sink, 200, '');
    }
    return session.post(headers, idOf(body), body.toBuffer(), sink);
  }

  open({ headers, body, sink, onNoStream, onOpen }: SessionOpenRequest): UpstreamRequest {
    const { endpointMs, onDeviation } = this.#options;
    const session = new HttpSseSession(
      {
        stream: this.#stream,
        endpoint: (announced) => this.#endpointAt(announced),
        getHeaders: this.#getHeaders,
        postHeaders: this.#postHeaders,
        endpointMs,
        timings: this.#timings,
        onDeviation: (what) => onDeviation?.(what),
        onOpen: () => onOpen?.(),
        onOver: () => this.#sessions.delete(session.id),
      },
      { headers, id: idOf(body), body: body.toBuffer(), sink, onNoStream },
    );
    this.#sessions.set(session.id, session);
    session.start();
    return session.handshake;
  }

  dropSession(sessionId: string): void {
    this.#sessions.get(sessionId)?.retire();
  }

  reportDeviation(what: string): void {
    this.#options.onDeviation?.(what);
  }

  async close(): Promise<void> {
    for (const session of [...this.#sessions.values()]) {
      session.close(new TransportError('aborted', 'the gateway is shutting down'));
    }
    await Promise.all([...this.#connections.values()].map((connections) => connections.destroy()));
  }

  /** @throws TransportError, which is reported too: the operator has to change the configuration */
  #endpointAt(announced: Buffer): FixedTarget {
    try {
      return this.#targetAt(resolveEndpoint(announced, this.#url, this.#messagesUrl));
    } catch (error) {
      if (error instanceof TransportError) this.reportDeviation(error.message);
      throw error;
    }
  }

  #targetAt(url: URL): FixedTarget {
    let connections = this.#connections.get(url.origin);
    if (connections === undefined) {
      connections = new Connections(url.origin, this.#options.connectMs);
      this.#connections.set(url.origin, connections);
    }
    return new FixedTarget(url, connections, this.#options);
  }
}

function idOf(body: Rope): RequestId | undefined {
  const frame = parseFrame(body.toBuffer());
  return frame.type === 'request' ? frame.id : undefined;
}
