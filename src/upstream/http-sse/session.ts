import { randomUUID } from 'node:crypto';
import { type Frame, type RequestId, Rope, resultRope } from '../../jsonrpc/index.js';
import type { Backpressure } from '../backpressure.js';
import { CookieJar } from '../cookies.js';
import { TransportError } from '../errors.js';
import type { HttpTarget } from '../http-target.js';
import { readFrames } from '../read-frames.js';
import { withFixed } from '../request-headers.js';
import type { ResponseHeaders } from '../response-headers.js';
import type { ResponseSink, UpstreamRequest } from '../transport.js';
import { messageHeaders, streamHeaders } from './headers.js';
import { KeptFrames } from './kept-frames.js';
import { PostedRequest, type PostedRequestOwner } from './posted-request.js';
import { PostedRequests } from './posted-requests.js';
import { SessionStream, type SessionStreamListener, type StreamFailure } from './session-stream.js';
import { SlowReaders } from './slow-readers.js';
import type { StreamConsumer } from './stream-consumer.js';
import { StreamReader, type StreamReaderOwner } from './stream-reader.js';
import type { HttpSseTimings } from './timings.js';

export interface HttpSseSessionOptions {
  /** Target of the GET. */
  readonly stream: HttpTarget;
  /** Target of POSTs, given the data of the `endpoint` event. @throws TransportError */
  readonly endpoint: (announced: Buffer) => HttpTarget;
  /** Fixed headers of the GET and of POSTs; name and value in turn. */
  readonly getHeaders: readonly string[];
  readonly postHeaders: readonly string[];
  /** Longest time until the `endpoint` event, in milliseconds. */
  readonly endpointMs: number;
  readonly timings: HttpSseTimings;
  readonly onDeviation: (what: string) => void;
  /** The `endpoint` event has come: the backend speaks HTTP+SSE. */
  readonly onOpen: () => void;
  readonly onOver: () => void;
}

/** The `initialize` request that opens a session. */
export interface InitializeRequest {
  /** Name and value in turn; the GET gets the credentials among them too. */
  readonly headers: readonly string[];
  readonly id: RequestId | undefined;
  readonly body: Buffer;
  readonly sink: ResponseSink;
  /** Called instead of the sink where there is no event stream. */
  readonly onNoStream: ((why: StreamFailure) => void) | undefined;
}

/** Prefix of session ids, which the gateway assigns: this transport has none on the wire. */
export const SESSION_PREFIX = 'http-sse-';

/** Answers to pings in flight at a time. */
const MAX_PONGS = 16;
const IGNORE = (): void => {};

/**
 * A session with an HTTP+SSE server (2024-11-05, basic/transports, "HTTP with SSE"): messages of the server come on an
 * event stream, and messages to it are posted to the URL that the stream announces. The session lasts as long as the
 * stream.
 */
export class HttpSseSession implements SessionStreamListener, PostedRequestOwner, StreamReaderOwner {
  readonly id = SESSION_PREFIX + randomUUID();
  /** The `initialize` request; unless it succeeds, the session ends. */
  readonly handshake: PostedRequest;
  readonly #options: HttpSseSessionOptions;
  readonly #stream: SessionStream;
  readonly #cookies = new CookieJar();
  readonly #requests = new PostedRequests();
  readonly #slowReaders: SlowReaders;
  readonly #initialize: InitializeRequest;
  /** The handshake waits for the URL to post it to. */
  #isOpening = true;
  #endpoint: HttpTarget | undefined;
  #reader: StreamReader | undefined;
  readonly #keptFrames = new KeptFrames();
  #retired = false;
  #pongs = 0;
  #over = false;

  constructor(options: HttpSseSessionOptions, initialize: InitializeRequest) {
    const { getHeaders, timings } = options;
    this.#options = options;
    this.#initialize = initialize;
    this.handshake = new PostedRequest(this, initialize.sink, {
      id: initialize.id,
      responseHeaders: { 'mcp-session-id': this.id },
      lingerMs: timings.lingerMs,
    });
    const headers = withFixed(streamHeaders(initialize.headers), getHeaders);
    this.#stream = new SessionStream(options.stream, headers, options.endpointMs, this);
    this.#slowReaders = new SlowReaders({
      slowReaderMs: timings.slowReaderMs,
      pause: (backpressure) => this.#stream.waitFor(backpressure),
      othersWait: (slow) => this.#requests.hasOtherThan(slow),
    });
  }

  /** Opens the stream; the handshake is posted after the `endpoint` event. */
  start(): void {
    this.#stream.start();
  }

  /** Posts a message. */
  post(
    headers: readonly string[],
    id: RequestId | undefined,
    body: Buffer,
    sink: ResponseSink,
  ): UpstreamRequest {
    const { lingerMs } = this.#options.timings;
    const request = new PostedRequest(this, sink, { id, responseHeaders: {}, lingerMs });
    this.#requests.add(request);
    this.#send(request, headers, body);
    return request;
  }

  /** Opens the standalone stream. */
  openStream(sink: ResponseSink): UpstreamRequest {
    const reader = new StreamReader(this, sink);
    this.#reader = reader;
    queueMicrotask(() => {
      if (this.#reader !== reader) return;
      sink.onHead(200, { 'content-type': 'text/event-stream' });
      for (const frame of this.#keptFrames.drain()) reader.take(frame);
    });
    return reader;
  }

  onReaderAborted(reader: StreamReader): void {
    if (this.#reader === reader) this.#reader = undefined;
  }

  /** Ends the session by closing the stream. */
  close(error: TransportError): void {
    this.#stream.close();
    this.#end({ kind: 'failed', error, announced: true });
  }

  /**
   * Ends the session once its requests are done, after one was refused as if the session were unknown: that may have
   * been another replica than the one with the stream, which can still respond to the earlier ones.
   */
  retire(): void {
    this.#retired = true;
    if (this.#requests.size === 0) this.close(new TransportError('aborted', 'the session was lost'));
  }

  onCookies(headers: ResponseHeaders): void {
    this.#cookies.keep(headers);
  }

  onEndpoint(data: Buffer): void {
    this.#endpoint = this.#options.endpoint(data);
    if (!this.#isOpening) return;
    this.#isOpening = false;
    this.#options.onOpen();
    this.#requests.add(this.handshake);
    this.#send(this.handshake, this.#initialize.headers, this.#initialize.body);
  }

  onPostBody(raw: Buffer): void {
    for (const frame of readFrames(raw, IGNORE) ?? []) this.onFrame(frame);
  }

  onFrame(frame: Frame): void {
    const consumer = this.#consumerOf(frame);
    if (consumer !== undefined) consumer.take(frame);
    else if (frame.type === 'request' && frame.method === 'ping' && this.#endpoint !== undefined) {
      this.#answerPing(frame.id);
    } else if (frame.type === 'request' || frame.type === 'notification') this.#keptFrames.push(frame);
  }

  onDeviation(what: string): void {
    this.#options.onDeviation(what);
  }

  onStreamOver(why: StreamFailure): void {
    this.#end(why);
  }

  onFinished(request: PostedRequest, outcome: 'succeeded' | 'failed'): void {
    this.#requests.remove(request);
    if (this.#retired) this.retire();
    if (request !== this.handshake || outcome === 'succeeded') return;
    this.#isOpening = false;
    this.close(new TransportError('aborted', 'no handshake'));
  }

  waitFor(consumer: StreamConsumer, backpressure: Backpressure): void {
    this.#slowReaders.waitFor(consumer, backpressure);
  }

  #send(request: PostedRequest, headers: readonly string[], body: Buffer): void {
    let all = withFixed(messageHeaders(headers), this.#options.postHeaders);
    const cookies = this.#cookies.header;
    if (cookies !== undefined) all = all.concat('cookie', cookies);
    request.post(this.#endpoint as HttpTarget, all, body);
  }

  /** The request that a message names, else the standalone stream, else most likely the latest request. */
  #consumerOf(frame: Frame): StreamConsumer | undefined {
    const named = this.#requests.ofFrame(frame);
    if (named !== undefined || frame.type === 'result' || frame.type === 'error')
      return named ?? this.#reader;
    const { latest } = this.#requests;
    return this.#reader ?? (latest === this.handshake ? undefined : latest);
  }

  /** Servers close the connection of a client that does not answer pings (basic/utilities/ping). */
  #answerPing(id: RequestId): void {
    // Bounded, for servers that ping without taking the answers.
    if (this.#pongs >= MAX_PONGS) return;
    this.#pongs++;
    const done = (): void => {
      this.#pongs--;
    };
    const sink: ResponseSink = { onHead() {}, onMessage() {}, onEnd: done, onError: done };
    const body = resultRope(id, new Rope().push('{}')).toBuffer();
    this.post(this.#initialize.headers, undefined, body, sink);
  }

  #end(why: StreamFailure): void {
    if (this.#over) return;
    this.#over = true;
    this.#slowReaders.clear();
    this.#options.onOver();
    if (this.#isOpening) {
      this.#isOpening = false;
      this.#failHandshake(why);
    }
    const error = why.kind === 'failed' ? why.error : new TransportError('broken', 'the event stream ended');
    this.#requests.failAll(error);
    this.#reader?.end();
  }

  #failHandshake(why: StreamFailure): void {
    const { onNoStream } = this.#initialize;
    if (onNoStream !== undefined) onNoStream(why);
    else if (why.kind === 'failed') this.handshake.fail(why.error);
    else this.handshake.respond(why.status, why.headers, why.text);
  }
}
