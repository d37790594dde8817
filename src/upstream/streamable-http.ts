import type { Rope } from '../jsonrpc/index.js';
import { Connections } from './connections.js';
import { HttpUpstreamRequest } from './http-request.js';
import type { HttpLimits, HttpTarget } from './http-target.js';
import { withFixed } from './request-headers.js';
import type { ResponseSink, Transport } from './transport.js';

export interface StreamableHttpOptions extends HttpLimits {
  readonly url: string;
  /** Value of `Host`, if not the authority of the URL. */
  readonly hostHeader: string | undefined;
  /** Fixed headers of the route, name and value in turn. */
  readonly headers: readonly string[];
  /** Longest time for making a connection, in milliseconds. */
  readonly connectMs: number;
  /** See {@link Transport.reportDeviation}. */
  readonly onDeviation?: (what: string) => void;
}

/** Order and spelling matter: some servers compare the header with exactly this text. */
const ACCEPT = 'application/json, text/event-stream';
/** For servers that refuse the other order with 406. */
const ACCEPT_STREAM_FIRST = 'text/event-stream, application/json';
/** Headers of every POST, name and value in turn. */
export const POST_HEADERS: readonly string[] = [
  'content-type',
  'application/json',
  'accept',
  ACCEPT,
  'accept-encoding',
  'identity',
];
/** Bodies up to this size are sent as one buffer. */
const SINGLE_BUFFER_UP_TO = 64 * 1024;
const GONE: ReadonlySet<number> = new Set([404, 405, 410]);

/** Streamable HTTP to one MCP endpoint; responses are JSON, an event stream or text. Knows no messages of MCP. */
export class StreamableHttpTransport implements Transport, HttpTarget {
  readonly options: StreamableHttpOptions;
  readonly origin: string;
  readonly connections: Connections;
  /** The current path and query: a redirect that worked is reused until its target is gone. */
  path: string;
  readonly #configuredPath: string;
  #streamFirst = false;
  /** Headers of every request. */
  readonly #headers: readonly string[];

  constructor(options: StreamableHttpOptions) {
    const url = new URL(options.url);
    this.options = options;
    this.origin = url.origin;
    this.path = url.pathname + url.search;
    this.#configuredPath = this.path;
    const { headers, hostHeader } = options;
    this.#headers = hostHeader === undefined ? headers : [...headers, 'host', hostHeader];
    this.connections = new Connections(url.origin, options.connectMs);
  }

  /** @param headers without the fixed headers of the route and `Host`, which are added here */
  send(
    method: 'POST' | 'GET' | 'DELETE',
    headers: readonly string[],
    body: Rope | undefined,
    sink: ResponseSink,
  ): HttpUpstreamRequest {
    const large = body !== undefined && body.byteLength > SINGLE_BUFFER_UP_TO;
    let all = withFixed(headers, this.#headers);
    if (large) all = all.concat('content-length', String(body.byteLength));
    if (this.#streamFirst) all = streamFirst(all);
    const outgoing = body === undefined ? null : large ? body.chunks : body.toBuffer();
    const upstreamRequest = new HttpUpstreamRequest(this, method, all, outgoing, sink);
    upstreamRequest.start();
    return upstreamRequest;
  }

  /**
   * Learns the path of the endpoint from the status of a response.
   * @returns whether a redirect target is gone, so that the request is to be repeated at the configured path
   */
  learnPath(method: string, path: string, status: number): boolean {
    if (status < 400) this.path = path;
    else if (method === 'POST' && GONE.has(status) && path === this.path && path !== this.#configuredPath) {
      this.path = this.#configuredPath;
      return true;
    }
    return false;
  }

  /**
   * Learns from a 406 which order of media types the backend accepts.
   * @returns the headers to repeat the request with; undefined when both orders were refused
   */
  learnAccept(headers: readonly string[]): string[] | undefined {
    if (headers.includes(ACCEPT)) {
      this.#streamFirst = true;
      return streamFirst(headers);
    }
    if (headers.includes(ACCEPT_STREAM_FIRST)) this.#streamFirst = false;
    return undefined;
  }

  reportDeviation(what: string): void {
    this.options.onDeviation?.(what);
  }

  async close(): Promise<void> {
    await this.connections.destroy();
  }
}

function streamFirst(headers: readonly string[]): string[] {
  return headers.map((value) => (value === ACCEPT ? ACCEPT_STREAM_FIRST : value));
}
