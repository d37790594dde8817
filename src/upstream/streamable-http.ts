import type { Rope } from '../jsonrpc/index.js';
import { Connections } from './connections.js';
import { withFixed } from './fixed-headers.js';
import { HttpUpstreamRequest } from './http-request.js';
import type { HttpLimits, HttpTarget } from './http-target.js';
import type { AnswerSink, Transport } from './transport.js';

export interface StreamableHttpOptions extends HttpLimits {
  readonly url: string;
  /** Value of `Host`, where the backend wants another one than its authority. */
  readonly hostHeader: string | undefined;
  /** Fixed headers of the route, name and value in turn. */
  readonly headers: readonly string[];
  readonly connectMs: number;
  /** Told, in words that go with the backend's name, of what the backend does wrong and the gateway puts up with. */
  readonly onQuirk?: (what: string) => void;
}

/** Both types, in this order and spelling: some servers compare the header with exactly this text. */
const ACCEPT = 'application/json, text/event-stream';
/** For the few that want the stream first. */
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
/** Bodies up to this size go out as one buffer. */
const SINGLE_BUFFER_UP_TO = 64 * 1024;
const GONE: ReadonlySet<number> = new Set([404, 405, 410]);

/** HTTP requests to one MCP endpoint, with answers as JSON, event stream or text. Knows nothing of MCP's messages. */
export class StreamableHttpTransport implements Transport, HttpTarget {
  readonly options: StreamableHttpOptions;
  readonly origin: string;
  readonly connections: Connections;
  /** Where the endpoint is now: a redirect that led to an answer is remembered until it leads nowhere. */
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

  /** @param headers as they are; the route's fixed headers and `Host` are added */
  send(
    method: 'POST' | 'GET' | 'DELETE',
    headers: readonly string[],
    body: Rope | undefined,
    sink: AnswerSink,
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
   * Learns from an answer where the endpoint is.
   * @returns whether it is gone from where it was redirected to, and the request is to be sent where it was before
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
   * Learns from a 406 which order of media types the backend wants.
   * @param headers of the request
   * @returns the headers with which to send it again; undefined when both orders have been tried
   */
  learnAccept(headers: readonly string[]): string[] | undefined {
    if (headers.includes(ACCEPT)) {
      this.#streamFirst = true;
      return streamFirst(headers);
    }
    if (headers.includes(ACCEPT_STREAM_FIRST)) this.#streamFirst = false;
    return undefined;
  }

  quirk(what: string): void {
    this.options.onQuirk?.(what);
  }

  async close(): Promise<void> {
    await this.connections.destroy();
  }
}

function streamFirst(headers: readonly string[]): string[] {
  return headers.map((value) => (value === ACCEPT ? ACCEPT_STREAM_FIRST : value));
}
