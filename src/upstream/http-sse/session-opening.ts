import { FrameError, parseLenientFrame, type Rope } from '../../jsonrpc/index.js';
import type { Backpressure } from '../backpressure.js';
import type { TransportError } from '../errors.js';
import type { ResponseHeaders } from '../response-headers.js';
import type { StreamableHttpTransport } from '../streamable-http.js';
import type { ResponseSink, UpstreamRequest } from '../transport.js';
import { ENDPOINT, type StreamFailure } from './session-stream.js';
import type { HttpSseTransport } from './transport.js';

/** The transports of servers that are reached by a URL. */
export type UrlTransport = 'streamable-http' | 'http-sse';

/** The transports to choose from. */
export interface TransportChoice {
  readonly streamable: StreamableHttpTransport;
  readonly sse: HttpSseTransport;
  /** The transport that worked last; undefined before any has. */
  readonly detected: UrlTransport | undefined;
  noteDetected(transport: UrlTransport): void;
}

interface PostRefusal {
  readonly status: number;
  readonly headers: ResponseHeaders;
  /** The JSON body. */
  message: Buffer | undefined;
}

/** Statuses about credentials, the address or the load. Servers of any transport send them. */
const NO_EVIDENCE: ReadonlySet<number> = new Set([401, 402, 403, 407, 408, 421, 423, 425, 429]);
/** Statuses by which the URL takes no POST, whatever the body says. */
const NO_POST: ReadonlySet<number> = new Set([404, 405, 501]);

/**
 * Opens a session with a backend whose transport is unknown: by a POST, and if that is refused by a GET that should open
 * the event stream of HTTP+SSE (basic/transports, "Backwards Compatibility"). The transport that worked last goes first.
 * If both are refused, the client gets the first refusal.
 */
export class SessionOpening implements ResponseSink, UpstreamRequest {
  readonly #transports: TransportChoice;
  readonly #headers: readonly string[];
  readonly #body: Rope;
  readonly #sink: ResponseSink;
  #upstreamRequest: UpstreamRequest | undefined;
  #aborted = false;
  #status = 0;
  /** The refusal of the POST. */
  #refusal: PostRefusal | undefined;
  /** Why the GET, sent first, opened no event stream. */
  #noStream: StreamFailure | undefined;

  constructor(transports: TransportChoice, headers: readonly string[], body: Rope, sink: ResponseSink) {
    this.#transports = transports;
    this.#headers = headers;
    this.#body = body;
    this.#sink = sink;
  }

  start(): this {
    if (this.#transports.detected === 'http-sse') this.#openStream();
    else this.#post();
    return this;
  }

  abort(): void {
    this.#aborted = true;
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
    if (this.#status < 300) this.#transports.noteDetected('streamable-http');
    this.#sink.onMessage(bytes, eventId);
  }

  onPriming(eventId: string): void {
    this.#sink.onPriming?.(eventId);
  }

  onRetry(ms: number): void {
    this.#sink.onRetry?.(ms);
  }

  /** Some HTTP+SSE servers open their stream on a POST too. */
  onNamedEvent(name: string): void {
    if (name !== ENDPOINT || this.#aborted || this.#noStream !== undefined) return;
    this.#upstreamRequest?.abort();
    this.#refusal = { status: 405, headers: {}, message: undefined };
    this.#openStream();
  }

  onEnd(text: string): void {
    const refusal = this.#refusal;
    if (refusal === undefined) this.#sink.onEnd(text);
    else if (this.#noStream !== undefined) this.#failWith(this.#noStream);
    else if (NO_POST.has(refusal.status) || !isMessage(refusal.message)) this.#openStream(text);
    else this.#passOnRefusal(text);
  }

  onError(error: TransportError): void {
    this.#sink.onError(error);
  }

  #post(): void {
    this.#upstreamRequest = this.#transports.streamable.send('POST', this.#headers, this.#body, this);
  }

  /** @param refusalText text of the refused POST, if there was one */
  #openStream(refusalText = ''): void {
    this.#upstreamRequest = this.#transports.sse.open({
      headers: this.#headers,
      body: this.#body,
      sink: this.#sink,
      onOpen: () => this.#transports.noteDetected('http-sse'),
      onNoStream: (why) => {
        if (this.#aborted) return;
        if (!speaksAgainst(why)) this.#failWith(why);
        else if (this.#refusal !== undefined) this.#passOnRefusal(refusalText);
        else {
          this.#noStream = why;
          this.#post();
        }
      },
    });
  }

  #passOnRefusal(text: string): void {
    const { status, headers, message } = this.#refusal as PostRefusal;
    this.#sink.onHead(status, headers);
    if (message !== undefined) this.#sink.onMessage(message, undefined);
    this.#sink.onEnd(text);
  }

  #failWith(why: StreamFailure): void {
    if (why.kind === 'failed') this.#sink.onError(why.error);
    else {
      this.#sink.onHead(why.status, why.headers);
      this.#sink.onEnd(why.text);
    }
  }
}

/** Whether a status may mean that the server does not support the POST. */
function isRefusal(status: number): boolean {
  return status === 501 || (status >= 400 && status < 500 && !NO_EVIDENCE.has(status));
}

/** Whether the failure of a stream is evidence against HTTP+SSE. */
function speaksAgainst(why: StreamFailure): boolean {
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
