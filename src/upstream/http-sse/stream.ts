import { type Frame, FrameError, parseLenientFrames, toValidUtf8 } from '../../jsonrpc/index.js';
import type { Backpressure } from '../backpressure.js';
import { TransportError } from '../errors.js';
import { HttpUpstreamRequest } from '../http-request.js';
import type { HttpTarget } from '../http-target.js';
import type { ResponseHeaders } from '../response-headers.js';
import type { ResponseSink } from '../transport.js';

/** Why there is no event stream: what the backend answered in its place, or what went wrong. */
export type NoStream =
  | {
      readonly kind: 'refused';
      readonly status: number;
      readonly headers: ResponseHeaders;
      readonly text: string;
    }
  /** `announced` where it began as one of HTTP+SSE. */
  | { readonly kind: 'failed'; readonly error: TransportError; readonly announced: boolean };

export interface StreamListener {
  onCookies(headers: ResponseHeaders): void;
  /**
   * Messages can be sent from now on, to what the data says; seldom more than once.
   * @throws TransportError
   */
  onEndpoint(data: Buffer): void;
  onFrame(frame: Frame): void;
  /** The stream is over, or there was none. Told once, unless it was closed from this side. */
  onOver(why: NoStream): void;
  onDeviation(what: string): void;
}

/** As much of a refusal as is kept. */
const MAX_TEXT_BYTES = 2_048;
/** The name of the event that opens a session. */
export const ENDPOINT = 'endpoint';

/** The event stream of one session with an HTTP+SSE server: everything that it says comes on it. */
export class SseStream implements ResponseSink {
  readonly #listener: StreamListener;
  readonly #upstreamRequest: HttpUpstreamRequest;
  readonly #timer: NodeJS.Timeout;
  #over = false;
  /** What came in place of an event stream. */
  #instead: { status: number; headers: ResponseHeaders; text: string } | undefined;
  #announced = false;

  /**
   * @param headers name and value in turn
   * @param endpointMs longest time until the `endpoint` event
   */
  constructor(target: HttpTarget, headers: readonly string[], endpointMs: number, listener: StreamListener) {
    this.#listener = listener;
    this.#timer = setTimeout(() => {
      const what = `no endpoint event came within ${endpointMs} ms`;
      this.#upstreamRequest.abort();
      if (this.#instead === undefined) this.#fail(new TransportError('unusable', what));
      else this.onEnd('');
    }, endpointMs).unref();
    this.#upstreamRequest = new HttpUpstreamRequest(target, 'GET', headers, null, this);
  }

  /** Sends the GET. */
  start(): void {
    this.#upstreamRequest.start();
  }

  /** Ends it from this side. */
  close(): void {
    if (this.#over) return;
    this.#over = true;
    clearTimeout(this.#timer);
    this.#upstreamRequest.abort();
  }

  /** Reads no further until the reader of the last message has caught up. */
  waitFor(backpressure: Backpressure): void {
    this.#upstreamRequest.waitFor(backpressure);
  }

  onHead(status: number, headers: ResponseHeaders): void {
    this.#listener.onCookies(headers);
    const isStream = /^\s*text\/event-stream\b/i.test(String(headers['content-type'] ?? ''));
    if (status === 200 && isStream) return;
    this.#instead = { status, headers, text: '' };
    // The words of a refusal are waited for; a page that is none may have no end.
    if (status >= 400) return;
    this.onEnd('');
    this.#upstreamRequest.abort();
  }

  onNamedEvent(name: string, data: Buffer): void {
    if (this.#over || name !== ENDPOINT || this.#instead !== undefined) return;
    clearTimeout(this.#timer);
    this.#announced = true;
    this.#listener.onEndpoint(data);
  }

  onMessage(raw: Buffer): void {
    if (this.#over) return;
    if (this.#instead !== undefined) {
      this.#instead.text = raw.toString('utf8', 0, MAX_TEXT_BYTES);
      return;
    }
    const { bytes, replaced } = toValidUtf8(raw);
    if (replaced) this.#listener.onDeviation('sends bytes that are no UTF-8');
    let frames: Frame[];
    try {
      frames = parseLenientFrames(bytes);
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      this.#listener.onDeviation(`sends what is no JSON-RPC message: ${error.message}`);
      return;
    }
    for (const frame of frames) this.#listener.onFrame(frame);
  }

  onEnd(text: string): void {
    if (this.#instead === undefined) {
      const what = this.#announced
        ? 'the event stream ended'
        : 'the event stream ended before its endpoint event';
      this.#fail(new TransportError('unanswered', what));
      return;
    }
    const { status, headers, text: said } = this.#instead;
    if (status >= 400) this.#end({ kind: 'refused', status, headers, text: text === '' ? said : text });
    else {
      const type = headers['content-type'] ?? 'no type';
      const what = `it answered GET with HTTP ${status} and ${type}, not with an event stream`;
      this.#fail(new TransportError('unusable', what));
    }
  }

  onError(error: TransportError): void {
    const broken = error.failure === 'broken';
    this.#fail(broken ? new TransportError('unanswered', error.message, error.cause) : error);
  }

  #fail(error: TransportError): void {
    this.#end({ kind: 'failed', error, announced: this.#announced });
  }

  #end(why: NoStream): void {
    if (this.#over) return;
    this.#over = true;
    clearTimeout(this.#timer);
    this.#listener.onOver(why);
  }
}
