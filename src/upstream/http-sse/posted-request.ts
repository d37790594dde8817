import type { Frame, RequestId } from '../../jsonrpc/index.js';
import type { Backpressure } from '../backpressure.js';
import type { TransportError } from '../errors.js';
import { HttpUpstreamRequest } from '../http-request.js';
import type { HttpTarget } from '../http-target.js';
import type { ResponseHeaders } from '../response-headers.js';
import type { ResponseSink, UpstreamRequest } from '../transport.js';
import type { StreamConsumer } from './stream-consumer.js';

export interface PostedRequestOwner {
  /** The request is over: `succeeded` if the server responded with a result. */
  onFinished(request: PostedRequest, outcome: 'succeeded' | 'failed'): void;
  onCookies(headers: ResponseHeaders): void;
  /** A message of the server in the response to a POST, where this transport has none. */
  onPostBody(bytes: Buffer): void;
  waitFor(consumer: StreamConsumer, backpressure: Backpressure): void;
}

interface PostedRequestOptions {
  /** Undefined for messages that get no response. */
  readonly id: RequestId | undefined;
  /** Headers of the emulated HTTP response. */
  readonly responseHeaders: ResponseHeaders;
  /** See {@link HttpSseTimings.lingerMs}. */
  readonly lingerMs: number;
}

const ACCEPTED = 202;

/**
 * A message posted to an HTTP+SSE server. Its response comes on the stream of the session, and is passed on as if it had
 * come in the HTTP response.
 */
export class PostedRequest implements ResponseSink, UpstreamRequest, StreamConsumer {
  dropsNotifications = false;
  readonly id: RequestId | undefined;
  readonly #owner: PostedRequestOwner;
  readonly #sink: ResponseSink;
  readonly #options: PostedRequestOptions;
  #upstreamRequest: HttpUpstreamRequest | undefined;
  #over = false;
  #hasHead = false;
  /** The POST got an error status. */
  #refused = false;
  /** The POST is complete. */
  #posted = false;
  #lingerTimer: NodeJS.Timeout | undefined;

  constructor(owner: PostedRequestOwner, sink: ResponseSink, options: PostedRequestOptions) {
    this.#owner = owner;
    this.id = options.id;
    this.#sink = sink;
    this.#options = options;
  }

  post(target: HttpTarget, headers: readonly string[], body: Buffer): void {
    if (this.#over) return;
    this.#upstreamRequest = new HttpUpstreamRequest(target, 'POST', headers, body, this);
    this.#upstreamRequest.start();
  }

  abort(): void {
    if (!this.#over) this.#finish('failed');
  }

  waitFor(backpressure: Backpressure | undefined): void {
    if (backpressure !== undefined && !this.#over) this.#owner.waitFor(this, backpressure);
  }

  /** Passes on a message that belongs to this request; the response is the last one. */
  take(frame: Frame): void {
    if (this.#over || (this.dropsNotifications && frame.type === 'notification')) return;
    if (!this.#hasHead) {
      this.#hasHead = true;
      this.#sink.onHead(200, this.#options.responseHeaders);
    }
    const isResponse = frame.type === 'result' || frame.type === 'error';
    if (isResponse) this.#finish(frame.type === 'result' ? 'succeeded' : 'failed');
    const { bytes, root } = frame;
    this.#sink.onMessage(bytes.subarray(root.start, root.end), undefined);
    if (isResponse) this.#sink.onEnd('');
  }

  fail(error: TransportError): void {
    if (this.#over) return;
    this.#finish('failed');
    this.#sink.onError(error);
  }

  /** Ends the request with an HTTP response that holds no message. */
  respond(status: number, headers: ResponseHeaders, text: string): void {
    if (this.#over) return;
    this.#finish('failed');
    this.#sink.onHead(status, headers);
    this.#sink.onEnd(text);
  }

  onHead(status: number, headers: ResponseHeaders): void {
    this.#owner.onCookies(headers);
    if (this.#over || status < 300) return;
    this.#refused = true;
    this.#sink.onHead(status, headers);
  }

  onMessage(bytes: Buffer): void {
    if (!this.#refused) this.#owner.onPostBody(bytes);
    else if (!this.#over) this.#sink.onMessage(bytes, undefined);
  }

  /** The POST is complete. Its text is dropped unless it refuses the message: servers answer "Accepted" or nothing. */
  onEnd(text: string): void {
    this.#onPosted();
    if (this.#over) return;
    if (this.#refused) {
      this.#finish('failed');
      this.#sink.onEnd(text);
    } else if (this.id === undefined) this.respond(ACCEPTED, {}, '');
  }

  onError(error: TransportError): void {
    this.#onPosted();
    this.fail(error);
  }

  #finish(outcome: 'succeeded' | 'failed'): void {
    this.#over = true;
    this.#owner.onFinished(this, outcome);
    const upstreamRequest = this.#upstreamRequest;
    // An open POST is not aborted at once: the server would take the client for gone.
    if (this.#posted || upstreamRequest === undefined) return;
    this.#lingerTimer = setTimeout(() => upstreamRequest.abort(), this.#options.lingerMs).unref();
  }

  #onPosted(): void {
    this.#posted = true;
    clearTimeout(this.#lingerTimer);
  }
}
