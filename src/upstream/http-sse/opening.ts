import { FrameError, parseLenientFrame, type Rope } from '../../jsonrpc/index.js';
import type { Backpressure } from '../backpressure.js';
import type { TransportError } from '../errors.js';
import type { ResponseHeaders } from '../response-headers.js';
import type { StreamableHttpTransport } from '../streamable-http.js';
import type { ResponseSink, UpstreamRequest } from '../transport.js';
import { ENDPOINT, type NoStream } from './stream.js';
import type { HttpSseTransport } from './transport.js';

/** The two ways to reach a server by its URL. */
export type UrlTransport = 'streamable-http' | 'http-sse';

export interface Ways {
  readonly streamable: StreamableHttpTransport;
  readonly sse: HttpSseTransport;
  /** How the backend was reached last; undefined before. */
  readonly found: UrlTransport | undefined;
  find(transport: UrlTransport): void;
}

interface Refusal {
  readonly status: number;
  readonly headers: ResponseHeaders;
  /** A JSON body. */
  message: Buffer | undefined;
}

/** Statuses that speak of the credential, the address, or the load, and come from servers of any transport. */
const NO_EVIDENCE: ReadonlySet<number> = new Set([401, 402, 403, 407, 408, 421, 423, 425, 429]);
/** There is nothing that takes a POST, whatever the body says. */
const NO_POST: ReadonlySet<number> = new Set([404, 405, 501]);

/**
 * The first request of a session with a backend whose transport has to be found out: a POST, and where that is refused,
 * a GET that should open the event stream of HTTP+SSE (basic/transports, "Backwards Compatibility"). What worked last
 * is tried first. A refusal by both is told in the words of the first.
 */
export class Opening implements ResponseSink, UpstreamRequest {
  readonly #ways: Ways;
  readonly #headers: readonly string[];
  readonly #body: Rope;
  readonly #sink: ResponseSink;
  #upstreamRequest: UpstreamRequest | undefined;
  #over = false;
  #status = 0;
  /** How the POST was refused. */
  #refusal: Refusal | undefined;
  /** Why there was no event stream where one was expected. */
  #noStream: NoStream | undefined;

  constructor(ways: Ways, headers: readonly string[], body: Rope, sink: ResponseSink) {
    this.#ways = ways;
    this.#headers = headers;
    this.#body = body;
    this.#sink = sink;
  }

  start(): this {
    if (this.#ways.found === 'http-sse') this.#openStream();
    else this.#post();
    return this;
  }

  abort(): void {
    this.#over = true;
    this.#upstreamRequest?.abort();
  }

  waitFor(backpressure: Backpressure | undefined): void {
    this.#upstreamRequest?.waitFor(backpressure);
  }

  onHead(status: number, headers: ResponseHeaders): void {
    if (isRefusal(status)) this.#refusal = { status, headers, message: undefined };
    else this.#sink.onHead(status, headers);
    this.#status = status;
  }

  onMessage(bytes: Buffer, eventId: string | undefined): void {
    if (this.#refusal !== undefined) {
      this.#refusal.message ??= bytes;
      return;
    }
    if (this.#status < 300) this.#ways.find('streamable-http');
    this.#sink.onMessage(bytes, eventId);
  }

  onPriming(eventId: string): void {
    this.#sink.onPriming?.(eventId);
  }

  onRetry(ms: number): void {
    this.#sink.onRetry?.(ms);
  }

  /** Some HTTP+SSE servers open their stream whatever the method is. */
  onNamedEvent(name: string): void {
    if (name !== ENDPOINT || this.#over || this.#noStream !== undefined) return;
    this.#upstreamRequest?.abort();
    this.#refusal = { status: 405, headers: {}, message: undefined };
    this.#openStream();
  }

  onEnd(text: string): void {
    const refusal = this.#refusal;
    if (refusal === undefined) this.#sink.onEnd(text);
    else if (this.#noStream !== undefined) this.#tell(this.#noStream);
    else if (NO_POST.has(refusal.status) || !isMessage(refusal.message)) this.#openStream(text);
    else this.#refuse(text);
  }

  onError(error: TransportError): void {
    this.#sink.onError(error);
  }

  #post(): void {
    this.#upstreamRequest = this.#ways.streamable.send('POST', this.#headers, this.#body, this);
  }

  /** @param said what the POST was refused with, where it was */
  #openStream(said = ''): void {
    const instead = (why: NoStream): void => {
      if (this.#over) return;
      if (!speaksAgainst(why)) this.#tell(why);
      else if (this.#refusal !== undefined) this.#refuse(said);
      else {
        this.#noStream = why;
        this.#post();
      }
    };
    const found = (): void => this.#ways.find('http-sse');
    this.#upstreamRequest = this.#ways.sse.open(this.#headers, this.#body, this.#sink, instead, found);
  }

  #refuse(text: string): void {
    const { status, headers, message } = this.#refusal as Refusal;
    this.#sink.onHead(status, headers);
    if (message !== undefined) this.#sink.onMessage(message, undefined);
    this.#sink.onEnd(text);
  }

  #tell(why: NoStream): void {
    if (why.kind === 'failed') this.#sink.onError(why.error);
    else {
      this.#sink.onHead(why.status, why.headers);
      this.#sink.onEnd(why.text);
    }
  }
}

/** Whether a status may mean that the server does not know what to do with a POST. */
function isRefusal(status: number): boolean {
  return status === 501 || (status >= 400 && status < 500 && !NO_EVIDENCE.has(status));
}

/** Whether it speaks against HTTP+SSE that a stream did not come about. */
function speaksAgainst(why: NoStream): boolean {
  if (why.kind === 'refused') return isRefusal(why.status);
  return !why.announced && why.error.failure !== 'unreachable';
}

function isMessage(bytes: Buffer | undefined): boolean {
  if (bytes === undefined) return false;
  try {
    parseLenientFrame(bytes);
    return true;
  } catch (error) {
    if (error instanceof FrameError) return false;
    throw error;
  }
}
