import { isEventStream } from '../../body/media-type.js';
import type { Frame } from '../../jsonrpc/index.js';
import type { Backpressure } from '../backpressure.js';
import { TransportError } from '../errors.js';
import { HttpUpstreamRequest } from '../http-request.js';
import type { HttpTarget } from '../http-target.js';
import { readFrames } from '../read-frames.js';
import type { ResponseHeaders } from '../response-headers.js';
import type { ResponseSink } from '../transport.js';

/** Why there is no event stream, or no longer one. */
export type StreamFailure =
  /** The backend responded with an error status. */
  | {
      readonly kind: 'refused';
      readonly status: number;
      readonly headers: ResponseHeaders;
      readonly text: string;
    }
  /** `announced` if an `endpoint` event had come, so that the backend does speak HTTP+SSE. */
  | { readonly kind: 'failed'; readonly error: TransportError; readonly announced: boolean };

export interface SessionStreamListener {
  onCookies(headers: ResponseHeaders): void;
  /**
   * The `endpoint` event; messages can be sent from now on. Some servers send it again.
   * @throws TransportError
   */
  onEndpoint(data: Buffer): void;
  onFrame(frame: Frame): void;
  /** The stream is over, or never began. Fires once, unless the stream was closed from this side. */
  onStreamOver(why: StreamFailure): void;
  onDeviation(what: string): void;
}

/** How much of the text of a refusal is kept. */
const MAX_TEXT_BYTES = 2_048;
/** Name of the event that announces the URL for messages. */
export const ENDPOINT = 'endpoint';

/** The event stream of one session with an HTTP+SSE server; all its messages come on it. */
export class SessionStream implements ResponseSink {
  readonly #listener: SessionStreamListener;
  readonly #upstreamRequest: HttpUpstreamRequest;
  readonly #timer: NodeJS.Timeout;
  #over = false;
  /** A response that is no event stream. */
  #otherResponse: { status: number; headers: ResponseHeaders; text: string } | undefined;
  #announced = false;

  /**
   * @param headers name and value in turn
   * @param endpointMs longest time until the `endpoint` event
   */
  constructor(
    target: HttpTarget,
    headers: readonly string[],
    endpointMs: number,
    listener: SessionStreamListener,
  ) {
    this.#listener = listener;
    this.#timer = setTimeout(() => {
      const what = `no endpoint event came within ${endpointMs} ms`;
      this.#upstreamRequest.abort();
      if (this.#otherResponse === undefined) this.#fail(new TransportError('unusable', what));
      else this.onEnd('');
    }, endpointMs).unref();
    this.#upstreamRequest = new HttpUpstreamRequest(target, 'GET', headers, null, this);
  }

  /** Sends the GET. */
  start(): void {
    this.#upstreamRequest.start();
  }

  /** Closes the stream from this side. */
  close(): void {
    if (this.#over) return;
    this.#over = true;
    clearTimeout(this.#timer);
    this.#upstreamRequest.abort();
  }

  /** Pauses reading until the consumer of the last message has drained. */
  waitFor(backpressure: Backpressure): void {
    this.#upstreamRequest.waitFor(backpressure);
  }

  onHead(status: number, headers: ResponseHeaders): void {
    this.#listener.onCookies(headers);
    if (status === 200 && isEventStream(headers['content-type'])) return;
    this.#otherResponse = { status, headers, text: '' };
    // The text of a refusal is read; any other body may have no end.
    if (status >= 400) return;
    this.onEnd('');
    this.#upstreamRequest.abort();
  }

  onNamedEvent(name: string, data: Buffer): void {
    if (this.#over || name !== ENDPOINT || this.#otherResponse !== undefined) return;
    clearTimeout(this.#timer);
    this.#announced = true;
    this.#listener.onEndpoint(data);
  }

  onMessage(raw: Buffer): void {
    if (this.#over) return;
    if (this.#otherResponse !== undefined) {
      this.#otherResponse.text = raw.toString('utf8', 0, MAX_TEXT_BYTES);
      return;
    }
    const frames = readFrames(raw, (what) => this.#listener.onDeviation(what));
    for (const frame of frames ?? []) this.#listener.onFrame(frame);
  }

  onEnd(text: string): void {
    if (this.#otherResponse === undefined) {
      const what = this.#announced
        ? 'the event stream ended'
        : 'the event stream ended before its endpoint event';
      this.#fail(new TransportError('unanswered', what));
      return;
    }
    const { status, headers, text: message } = this.#otherResponse;
    if (status >= 400) this.#end({ kind: 'refused', status, headers, text: text === '' ? message : text });
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

  #end(why: StreamFailure): void {
    if (this.#over) return;
    this.#over = true;
    clearTimeout(this.#timer);
    this.#listener.onStreamOver(why);
  }
}
