import { deferred } from '../exchange/utils/deferred.js';
import type { Ticker, Ticking } from '../exchange/utils/ticker.js';
import { NOWHERE } from '../exchange/utils/unordered-set.js';
import {
  type ErrorFrame,
  type Frame,
  isSameId,
  type NotificationFrame,
  type RequestFrame,
  type ResultFrame,
  type Rope,
} from '../jsonrpc/index.js';
import type { Backpressure } from './backpressure.js';
import { TransportError } from './errors.js';
import { lenientResult } from './lenient-result.js';
import { readFrames } from './read-frames.js';
import type { ResponseHeaders } from './response-headers.js';
import type { ResponseSink, Transport, UpstreamRequest } from './transport.js';

/** The outcome of one JSON-RPC request over HTTP. */
export type RpcReply =
  | {
      readonly kind: 'response';
      readonly status: number;
      readonly headers: ResponseHeaders;
      readonly frame: ResultFrame | ErrorFrame;
    }
  /** An HTTP response without the JSON-RPC response: a refusal in plain text, or a stream that ended too early. */
  | {
      readonly kind: 'no-response';
      readonly status: number;
      readonly headers: ResponseHeaders;
      readonly text: string;
      /** Where the stream may be resumed; undefined when the server sent no event ids. */
      readonly lastEventId: string | undefined;
      readonly retryMs: number | undefined;
      /** The connection broke; the server did not end the stream. */
      readonly broke?: boolean;
    }
  | { readonly kind: 'failed'; readonly error: TransportError };

export interface RpcListener {
  /** @returns set when the consumer of the notification needs the stream to pause */
  onNotification(frame: NotificationFrame): Backpressure | undefined;
  onRequest(frame: RequestFrame): void;
  /** Called before {@link RpcCall.reply} resolves. */
  onReply?(reply: RpcReply): void;
  /** Whether an event named `endpoint` means that the server speaks HTTP+SSE, which refuses the request. */
  readonly endpointRefuses?: boolean;
  /** The response to another request came on this stream. */
  onStray?(frame: ResultFrame | ErrorFrame): void;
}

/** Ignores notifications and requests of the server. */
export const SILENT: RpcListener = { onNotification() {}, onRequest() {} };

/** A JSON-RPC message to POST. */
export interface RpcPost {
  readonly transport: Transport;
  /** Name and value in turn. */
  readonly headers: readonly string[];
  readonly body: Rope;
  /** Whether the message may reach the server twice. One that never got a connection is repeated in any case. */
  readonly repeatable: boolean;
}

/** In place of an id, for messages that get no response. */
export const NO_ID = '';

/** Longest time that a server may keep the stream open after the response. */
const LINGER_MS = 2_000;
const MAX_UNREAD_BYTES = 2_048;
const METHOD_NOT_ALLOWED = 405;
const LOOKS_LIKE_JSON = /^\s*[{[]/;
const NO_HEADERS: ResponseHeaders = {};
const IGNORE = (): void => {};

/** One JSON-RPC request over a transport, and the messages on its response stream. */
export class RpcCall implements ResponseSink, Ticking {
  place = NOWHERE;
  readonly #reply = deferred<RpcReply>();
  readonly #id: string;
  readonly #ticker: Ticker;
  readonly #listener: RpcListener;
  #settled = false;
  #transport: Transport | undefined;
  #upstreamRequest: UpstreamRequest | undefined;
  /** Of a POST, until it has been repeated once. */
  #headers: readonly string[] | undefined;
  #body: Rope | undefined;
  #repeatable = false;
  #status = 0;
  #responseHeaders: ResponseHeaders = NO_HEADERS;
  #lastEventId: string | undefined;
  #retryMs: number | undefined;
  #unread = '';
  #lingerUntil = 0;

  /** @param id the id under which the request is sent, as JSON text, or {@link NO_ID} */
  constructor(id: string, ticker: Ticker, listener: RpcListener) {
    this.#id = id;
    this.#ticker = ticker;
    this.#listener = listener;
  }

  get reply(): Promise<RpcReply> {
    return this.#reply.promise;
  }

  /** Sends the request, and repeats it once over a new connection if the first was dead. */
  post({ transport, headers, body, repeatable }: RpcPost): this {
    this.#transport = transport;
    this.#headers = headers;
    this.#body = body;
    this.#repeatable = repeatable;
    this.#upstreamRequest = transport.send('POST', headers, body, this);
    return this;
  }

  /** Resumes the response stream of an earlier request (basic/transports, "Resumability and Redelivery"). */
  resume(transport: Transport, headers: readonly string[]): this {
    this.#transport = transport;
    this.#upstreamRequest = transport.send('GET', headers, undefined, this);
    return this;
  }

  /** Aborts the request; the reply becomes `failed` with `aborted`. */
  abort(reason: string): void {
    this.#upstreamRequest?.abort();
    this.#end({ kind: 'failed', error: new TransportError('aborted', reason) });
    this.#ticker.remove(this);
  }

  tick(now: number): void {
    if (now < this.#lingerUntil) return;
    this.#ticker.remove(this);
    this.#upstreamRequest?.abort();
  }

  onHead(status: number, headers: ResponseHeaders): void {
    this.#status = status;
    this.#responseHeaders = headers;
  }

  onMessage(raw: Buffer, eventId: string | undefined): void {
    if (eventId !== undefined) this.#lastEventId = eventId;
    const frames = readFrames(raw, (what) => this.#transport?.reportDeviation(what));
    // Kept for the error message: a refusal in other JSON says why in its own words.
    if (frames === undefined) this.#unread = raw.toString('utf8', 0, MAX_UNREAD_BYTES);
    else for (const frame of frames) this.#take(frame);
  }

  onPriming(eventId: string): void {
    this.#lastEventId = eventId;
  }

  onRetry(ms: number): void {
    this.#retryMs = ms;
  }

  /** Some HTTP+SSE servers open their stream on a POST too, and never respond there. */
  onNamedEvent(name: string): void {
    if (name !== 'endpoint' || this.#settled || this.#listener.endpointRefuses !== true) return;
    const text = 'answers with the event stream of HTTP+SSE';
    this.#end({
      kind: 'no-response',
      status: METHOD_NOT_ALLOWED,
      headers: this.#responseHeaders,
      text,
      lastEventId: undefined,
      retryMs: undefined,
    });
    this.#upstreamRequest?.abort();
  }

  onEnd(text: string): void {
    // Servers write many a refusal by hand: JSON-RPC under another media type, or none.
    if (this.#status >= 400 && LOOKS_LIKE_JSON.test(text)) {
      for (const frame of readFrames(Buffer.from(text), IGNORE) ?? []) this.#take(frame);
    }
    this.#endUnanswered({ text, broke: false });
  }

  #endUnanswered({ text, broke }: { text: string; broke: boolean }): void {
    this.#ticker.remove(this);
    this.#end({
      kind: 'no-response',
      status: this.#status,
      headers: this.#responseHeaders,
      text: text === '' ? this.#unread : text,
      lastEventId: this.#lastEventId,
      retryMs: this.#retryMs,
      broke,
    });
  }

  onError(error: TransportError): void {
    this.#ticker.remove(this);
    const headers = this.#headers;
    this.#headers = undefined;
    if (headers !== undefined && !this.#settled && mayRepeat(error, this.#repeatable)) {
      this.#upstreamRequest = this.#transport?.send('POST', headers, this.#body, this);
    } else if (error.failure === 'broken' && this.#lastEventId !== undefined)
      this.#endUnanswered({ text: '', broke: true });
    else this.#end({ kind: 'failed', error });
  }

  /** Settles the request with its response, which may have come on another stream. */
  take(frame: ResultFrame | ErrorFrame): void {
    const usable = frame.type === 'result' ? lenientResult(frame) : frame;
    this.#end({
      kind: 'response',
      status: this.#status || 200,
      headers: this.#responseHeaders,
      frame: usable,
    });
  }

  #take(frame: Frame): void {
    if (frame.type === 'notification') this.#upstreamRequest?.waitFor(this.#listener.onNotification(frame));
    else if (frame.type === 'request') this.#listener.onRequest(frame);
    else if (!this.#settled && this.#isOwn(frame)) {
      this.take(frame);
      this.#lingerUntil = performance.now() + LINGER_MS;
      this.#ticker.add(this);
    } else this.#listener.onStray?.(frame);
  }

  /**
   * Whether a response is to this request. Servers that fail early write null, no id, or `"server-error"`: on a POST
   * with one request that can only be this one.
   */
  #isOwn(frame: ResultFrame | ErrorFrame): boolean {
    const { id } = frame;
    return (
      id === undefined ||
      (this.#id !== NO_ID && isSameId(this.#id, id)) ||
      (frame.type === 'error' && (this.#status >= 400 || id === '"server-error"'))
    );
  }

  #end(reply: RpcReply): void {
    if (this.#settled) return;
    this.#settled = true;
    this.#listener.onReply?.(reply);
    this.#reply.resolve(reply);
  }
}

/** Whether a request that failed may be repeated once. */
function mayRepeat(error: TransportError, repeatable: boolean): boolean {
  const { code } = (error.cause ?? {}) as { code?: string };
  // Not after a connect timeout: the client would wait twice as long.
  if (error.failure === 'unreachable') return code !== 'UND_ERR_CONNECT_TIMEOUT';
  return repeatable && error.failure === 'unanswered';
}
