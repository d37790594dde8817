import type { Frame, RequestId } from '../../jsonrpc/index.js';
import type { Backpressure } from '../backpressure.js';
import type { TransportError } from '../errors.js';
import { HttpUpstreamRequest } from '../http-request.js';
import type { HttpTarget } from '../http-target.js';
import type { ResponseHeaders } from '../response-headers.js';
import type { ResponseSink, UpstreamRequest } from '../transport.js';

/** What a message is part of. */
export interface CallOwner {
  /** The call takes nothing more; `succeeded` where the server answered it with a result. */
  finished(call: StreamCall, succeeded: boolean): void;
  onCookies(headers: ResponseHeaders): void;
  /** A message of the server came in the answer to a POST, where this transport has none. */
  onBody(bytes: Buffer): void;
  waitFor(receiver: Receiver, backpressure: Backpressure): void;
}

/** Whoever takes messages off a session's stream. */
export interface Receiver {
  /** It lags behind, and others wait: of what is only told, it misses some. */
  lossy: boolean;
  take(frame: Frame): void;
}

/** A POST that goes on although its answer came on the stream is ended after so long. */
const LINGER_MS = 10_000;
const ACCEPTED = 202;

/**
 * One POST to an HTTP+SSE server, and the answer that comes on the session's stream, told as if it had come in the
 * answer to the POST.
 */
export class StreamCall implements ResponseSink, UpstreamRequest, Receiver {
  lossy = false;
  /** Of a request; undefined for all other messages, which have no answer. */
  readonly id: RequestId | undefined;
  readonly #owner: CallOwner;
  readonly #sink: ResponseSink;
  /** Headers of the answer, where there is one. */
  readonly #answerHeaders: ResponseHeaders;
  #upstreamRequest: HttpUpstreamRequest | undefined;
  #over = false;
  #begun = false;
  #refused = false;
  #posted = false;
  #lingering: NodeJS.Timeout | undefined;

  constructor(
    owner: CallOwner,
    id: RequestId | undefined,
    sink: ResponseSink,
    answerHeaders: ResponseHeaders,
  ) {
    this.#owner = owner;
    this.id = id;
    this.#sink = sink;
    this.#answerHeaders = answerHeaders;
  }

  post(target: HttpTarget, headers: readonly string[], body: Buffer): void {
    if (this.#over) return;
    this.#upstreamRequest = new HttpUpstreamRequest(target, 'POST', headers, body, this);
    this.#upstreamRequest.start();
  }

  abort(): void {
    if (!this.#over) this.#finish();
  }

  waitFor(backpressure: Backpressure | undefined): void {
    if (backpressure !== undefined && !this.#over) this.#owner.waitFor(this, backpressure);
  }

  /** A message of the server that belongs to this call; the last one is the response. */
  take(frame: Frame): void {
    if (this.#over || (this.lossy && frame.type === 'notification')) return;
    if (!this.#begun) {
      this.#begun = true;
      this.#sink.onHead(200, this.#answerHeaders);
    }
    const isResponse = frame.type === 'result' || frame.type === 'error';
    if (isResponse) this.#finish(frame.type === 'result');
    const { bytes, root } = frame;
    this.#sink.onMessage(bytes.subarray(root.start, root.end), undefined);
    if (isResponse) this.#sink.onEnd('');
  }

  /** The answer cannot come any more. */
  fail(error: TransportError): void {
    if (this.#over) return;
    this.#finish();
    this.#sink.onError(error);
  }

  /** The server refuses it without any message. */
  refuse(status: number, headers: ResponseHeaders, text: string): void {
    if (this.#over) return;
    this.#finish();
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
    if (!this.#refused) this.#owner.onBody(bytes);
    else if (!this.#over) this.#sink.onMessage(bytes, undefined);
  }

  /** The server took the message. What its answer says is not for anybody: it is a word of thanks, or nothing. */
  onEnd(text: string): void {
    this.#hasPosted();
    if (this.#over) return;
    if (this.#refused) {
      this.#finish();
      this.#sink.onEnd(text);
    } else if (this.id === undefined) this.refuse(ACCEPTED, {}, '');
  }

  onError(error: TransportError): void {
    this.#hasPosted();
    this.fail(error);
  }

  #finish(succeeded = false): void {
    this.#over = true;
    this.#owner.finished(this, succeeded);
    const upstreamRequest = this.#upstreamRequest;
    // A POST that has been sent is not broken off: the server would take its client for gone.
    if (this.#posted || upstreamRequest === undefined) return;
    this.#lingering = setTimeout(() => upstreamRequest.abort(), LINGER_MS).unref();
  }

  #hasPosted(): void {
    this.#posted = true;
    clearTimeout(this.#lingering);
  }
}
