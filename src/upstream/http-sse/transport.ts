import { parseFrame, type RequestId, type Rope } from '../../jsonrpc/index.js';
import { Connections } from '../connections.js';
import { TransportError } from '../errors.js';
import { FixedTarget, type HttpLimits } from '../http-target.js';
import type { ResponseSink, Transport, UpstreamRequest } from '../transport.js';
import { resolveEndpoint } from './endpoint.js';
import { headerOf } from './headers.js';
import { HttpSseSession, SESSION_PREFIX } from './session.js';
import type { NoStream } from './stream.js';

export interface HttpSseOptions extends HttpLimits {
  /** Of the event stream. */
  readonly url: string;
  /** Where to send messages, in place of what the backend announces. */
  readonly messagesUrl: string | undefined;
  /** Value of `Host`, where the backend wants another one than its authority. */
  readonly hostHeader: string | undefined;
  /** Fixed headers of the route, name and value in turn. */
  readonly headers: readonly string[];
  readonly connectMs: number;
  /** Longest time until a stream says where to send messages. */
  readonly endpointMs: number;
  readonly onDeviation?: (what: string) => void;
}

/**
 * HTTP+SSE, the transport of 2024-11-05, in the terms of Streamable HTTP: the POST of `initialize` opens a stream, whose
 * session gets an id of the gateway's own; POSTs with this id are answered as if the answer were theirs; a GET hears
 * what belongs to no request; a DELETE closes the stream. Once the stream has ended, the id is unknown: 404.
 */
export class HttpSseTransport implements Transport {
  readonly #options: HttpSseOptions;
  readonly #url: URL;
  readonly #messagesUrl: URL | undefined;
  readonly #stream: FixedTarget;
  readonly #getHeaders: readonly string[];
  readonly #postHeaders: readonly string[];
  readonly #connections = new Map<string, Connections>();
  readonly #sessions = new Map<string, HttpSseSession>();

  constructor(options: HttpSseOptions) {
    const { url, messagesUrl, headers, hostHeader } = options;
    this.#options = options;
    this.#url = new URL(url);
    this.#messagesUrl = messagesUrl === undefined ? undefined : new URL(messagesUrl);
    const withHost = hostHeader === undefined ? headers : [...headers, 'host', hostHeader];
    this.#getHeaders = withHost;
    // The name is that of the server behind the URL, and nobody else's.
    const isElsewhere = this.#messagesUrl !== undefined && this.#messagesUrl.origin !== this.#url.origin;
    this.#postHeaders = isElsewhere ? headers : withHost;
    this.#stream = this.#targetAt(this.#url);
  }

  /** Whether an id is of a session of this transport, alive or not. */
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
    if (method === 'POST' && id === undefined && body !== undefined) return this.open(headers, body, sink);
    const session = id === undefined ? undefined : this.#sessions.get(id);
    if (session === undefined) return answerWith(sink, id === undefined ? 400 : 404, 'Session not found');
    if (method === 'GET') return session.listen(sink);
    if (method === 'DELETE' || body === undefined) {
      session.close(new TransportError('aborted', 'the session was ended'));
      return answerWith(sink, 200, '');
    }
    return session.post(headers, idOf(body), body.toBuffer(), sink);
  }

  /**
   * Opens a session for its first request.
   * @param instead called in place of the sink where the backend turns out not to speak HTTP+SSE
   */
  open(
    headers: readonly string[],
    body: Rope,
    sink: ResponseSink,
    instead?: (why: NoStream) => void,
    onOpen?: () => void,
  ): UpstreamRequest {
    const { endpointMs, onDeviation } = this.#options;
    const session = new HttpSseSession(
      {
        stream: this.#stream,
        endpoint: (announced) => this.#endpointAt(announced),
        getHeaders: this.#getHeaders,
        postHeaders: this.#postHeaders,
        endpointMs,
        onDeviation: (what) => onDeviation?.(what),
        onOpen: () => onOpen?.(),
        onOver: () => this.#sessions.delete(session.id),
      },
      headers,
      { id: idOf(body), body: body.toBuffer() },
      sink,
      instead,
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

  /** @throws TransportError, which is logged as well: the one who runs the gateway has to do something about it */
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

/** Tells a sink an answer that was never on the wire; not at once, since who sends does not know the transmission yet. */
function answerWith(sink: ResponseSink, status: number, text: string): UpstreamRequest {
  let aborted = false;
  queueMicrotask(() => {
    if (aborted) return;
    sink.onHead(status, {});
    sink.onEnd(text);
  });
  return {
    abort() {
      aborted = true;
    },
    waitFor() {},
  };
}

function idOf(body: Rope): RequestId | undefined {
  const frame = parseFrame(body.toBuffer());
  return frame.type === 'request' ? frame.id : undefined;
}
