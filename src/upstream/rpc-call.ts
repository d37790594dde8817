import type { Ticker, Ticking } from '../exchange/ticker.js';
import { NOWHERE } from '../exchange/unordered-set.js';
import {
  type ErrorFrame,
  type Frame,
  FrameError,
  isSameId,
  type NotificationFrame,
  parseLenientFrames,
  type RequestFrame,
  type ResultFrame,
  type Rope,
  scanJson,
  textOf,
  toValidUtf8,
} from '../jsonrpc/index.js';
import type { Backpressure } from './backpressure.js';
import { TransportError } from './errors.js';
import type { ResponseHeaders } from './response-headers.js';
import type { AnswerSink, Transport, UpstreamRequest } from './transport.js';

/** How one JSON-RPC request over HTTP ended. */
export type RpcReply =
  | {
      readonly kind: 'answer';
      readonly status: number;
      readonly headers: ResponseHeaders;
      readonly frame: ResultFrame | ErrorFrame;
    }
  /** An HTTP answer without the JSON-RPC response: a plain-text refusal, or a stream that ended too early. */
  | {
      readonly kind: 'no-answer';
      readonly status: number;
      readonly headers: ResponseHeaders;
      readonly text: string;
      /** Where a broken stream may be taken up again; undefined when the server gave no event ids. */
      readonly lastEventId: string | undefined;
      readonly retryMs: number | undefined;
      /** The connection broke, rather than that the server ended the stream. */
      readonly broke?: boolean;
    }
  | { readonly kind: 'failed'; readonly error: TransportError };

export interface RpcListener {
  /** @returns how to wait for a reader that lags behind */
  onNotification(frame: NotificationFrame): Backpressure | undefined;
  onRequest(frame: RequestFrame): void;
  /** The request has its reply; told before the promise of it resolves. */
  onReply?(reply: RpcReply): void;
  /** An event named `endpoint` is taken for the beginning of HTTP+SSE; else such an event means nothing. */
  readonly endpointRefuses?: boolean;
  /** The response of another request came on this stream. */
  onStray?(frame: ResultFrame | ErrorFrame): void;
}

/** For requests whose notifications and questions nobody wants. */
export const SILENT: RpcListener = { onNotification() {}, onRequest() {} };

/** Stands for the id of a message that has none and gets no response. */
export const NO_ID = '';

/** How long a server may keep the stream open after the response before the gateway ends it. */
const LINGER_MS = 2_000;
const MAX_UNREAD_BYTES = 2_048;
/** JSON-RPC's code for what goes wrong inside a server. */
const INTERNAL = -32603;
const METHOD_NOT_ALLOWED = 405;
const LOOKS_LIKE_JSON = /^\s*[{[]/;
const NO_HEADERS: ResponseHeaders = {};

/** One JSON-RPC request on its way over Streamable HTTP, with whatever else comes on its answer stream. */
export class RpcCall implements AnswerSink, Ticking {
  place = NOWHERE;
  readonly reply: Promise<RpcReply>;
  readonly #id: string;
  readonly #ticker: Ticker;
  readonly #listener: RpcListener;
  #settle!: (reply: RpcReply) => void;
  #settled = false;
  #transport: Transport | undefined;
  #upstreamRequest: UpstreamRequest | undefined;
  /** Of a POST, while it may be sent again. */
  #headers: readonly string[] | undefined;
  #body: Rope | undefined;
  #safe = false;
  #status = 0;
  #answerHeaders: ResponseHeaders = NO_HEADERS;
  #lastEventId: string | undefined;
  #retryMs: number | undefined;
  #unread = '';
  #lingerUntil = 0;

  /** @param id the id under which the request is sent, as JSON text, or {@link NO_ID} */
  constructor(id: string, ticker: Ticker, listener: RpcListener) {
    this.#id = id;
    this.#ticker = ticker;
    this.#listener = listener;
    this.reply = new Promise((resolve) => {
      this.#settle = resolve;
    });
  }

  /**
   * Sends the request; once more, over a new connection, if it met a dead one.
   * @param safe whether it may reach the server twice; one that never got a connection is sent again in any case
   */
  post(transport: Transport, headers: readonly string[], body: Rope, safe: boolean): this {
    this.#transport = transport;
    this.#headers = headers;
    this.#body = body;
    this.#safe = safe;
    this.#upstreamRequest = transport.send('POST', headers, body, this);
    return this;
  }

  /** Takes up the answer stream of an earlier request again. */
  resumeBy(transport: Transport, headers: readonly string[]): this {
    this.#transport = transport;
    this.#upstreamRequest = transport.send('GET', headers, undefined, this);
    return this;
  }

  get settled(): boolean {
    return this.#settled;
  }

  /** Ends the request from this side; `reply` becomes `failed` with `aborted`. */
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
    this.#answerHeaders = headers;
  }

  onMessage(raw: Buffer, eventId: string | undefined): void {
    if (eventId !== undefined) this.#lastEventId = eventId;
    const { bytes, replaced } = toValidUtf8(raw);
    if (replaced) this.#quirk('sends bytes that are no UTF-8');
    let frames: Frame[];
    try {
      frames = parseLenientFrames(bytes);
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      // A refusal in JSON of the server's own kind has words that tell what it means.
      this.#unread = bytes.toString('utf8', 0, MAX_UNREAD_BYTES);
      this.#quirk(`sends what is no JSON-RPC message: ${error.message}`);
      return;
    }
    for (const frame of frames) this.#take(frame);
  }

  onPriming(eventId: string): void {
    this.#lastEventId = eventId;
  }

  onRetry(ms: number): void {
    this.#retryMs = ms;
  }

  /** An HTTP+SSE server that opens its stream whatever the method is will never answer there. */
  onNamedEvent(name: string): void {
    if (name !== 'endpoint' || this.#settled || this.#listener.endpointRefuses !== true) return;
    const text = 'answers with the event stream of HTTP+SSE';
    this.#end({
      kind: 'no-answer',
      status: METHOD_NOT_ALLOWED,
      headers: this.#answerHeaders,
      text,
      lastEventId: undefined,
      retryMs: undefined,
    });
    this.#upstreamRequest?.abort();
  }

  onEnd(text: string): void {
    if (this.#status >= 400 && LOOKS_LIKE_JSON.test(text)) this.#takeRefusal(text);
    this.#endUnanswered(text, false);
  }

  /** Servers write many a refusal by hand, as JSON-RPC under the type of a page, or under none. */
  #takeRefusal(text: string): void {
    try {
      for (const frame of parseLenientFrames(Buffer.from(text))) this.#take(frame);
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
    }
  }

  #endUnanswered(text: string, broke: boolean): void {
    this.#ticker.remove(this);
    this.#end({
      kind: 'no-answer',
      status: this.#status,
      headers: this.#answerHeaders,
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
    if (headers !== undefined && !this.#settled && mayResend(error, this.#safe)) {
      this.#upstreamRequest = this.#transport?.send('POST', headers, this.#body, this);
    } else if (error.failure === 'broken' && this.#lastEventId !== undefined) this.#endUnanswered('', true);
    else this.#end({ kind: 'failed', error });
  }

  /** A response that reached the gateway on another stream. */
  take(frame: ResultFrame | ErrorFrame): void {
    const read = frame.type === 'result' ? readResult(frame) : frame;
    this.#end({ kind: 'answer', status: this.#status || 200, headers: this.#answerHeaders, frame: read });
  }

  #quirk(what: string): void {
    this.#transport?.quirk(what);
  }

  #take(frame: Frame): void {
    if (frame.type === 'notification') this.#upstreamRequest?.waitFor(this.#listener.onNotification(frame));
    else if (frame.type === 'request') this.#listener.onRequest(frame);
    else if (!this.#settled && this.#isMine(frame)) {
      this.take(frame);
      this.#lingerUntil = performance.now() + LINGER_MS;
      this.#ticker.add(this);
    } else this.#listener.onStray?.(frame);
  }

  /**
   * Whether a response belongs to this request. Some servers answer with the id null, none, or `"server-error"` when
   * they fail early: on a POST with one request it can only be this one's.
   */
  #isMine(frame: ResultFrame | ErrorFrame): boolean {
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
    this.#settle(reply);
  }
}

const EMPTY = Buffer.from('{}');
const EMPTY_OBJECT = scanJson(EMPTY, 1);

/**
 * Results of MCP are objects (basic, "Responses"). Some servers write null where they have nothing to say; with anything
 * else they have failed, since no client could read it.
 */
function readResult(frame: ResultFrame): ResultFrame | ErrorFrame {
  const { id, bytes, root, result } = frame;
  if (result.kind === 'object') return frame;
  if (result.kind === 'null') {
    return { type: 'result', id, bytes: EMPTY, root: EMPTY_OBJECT, result: EMPTY_OBJECT };
  }
  const message = `the backend answered with a result that is no object: ${textOf(bytes, result).slice(0, 100)}`;
  return { type: 'error', id, bytes, root, error: result, code: INTERNAL, message, data: undefined };
}

/** Whether a request that failed can still be sent, for one time more. */
function mayResend(error: TransportError, safe: boolean): boolean {
  const { code } = (error.cause ?? {}) as { code?: string };
  // Another wait as long as the first would be too long for whoever waits.
  if (error.failure === 'unreachable') return code !== 'UND_ERR_CONNECT_TIMEOUT';
  return safe && error.failure === 'unanswered';
}
