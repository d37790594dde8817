import { randomUUID } from 'node:crypto';
import {
  type Frame,
  FrameError,
  parseLenientFrames,
  type RequestId,
  Rope,
  resultRope,
  toValidUtf8,
} from '../../jsonrpc/index.js';
import type { Backpressure } from '../backpressure.js';
import { CookieJar } from '../cookies.js';
import { TransportError } from '../errors.js';
import { withFixed } from '../fixed-headers.js';
import type { HttpTarget } from '../http-target.js';
import type { ResponseHeaders } from '../response-headers.js';
import type { ResponseSink, UpstreamRequest } from '../transport.js';
import { messageHeaders, streamHeaders } from './headers.js';
import { type CallOwner, type Receiver, StreamCall } from './posted-request.js';
import { Calls } from './posted-requests.js';
import { SlowReaders } from './slow-readers.js';
import { type NoStream, SseStream, type StreamListener } from './stream.js';
import { type ReadableSession, StreamReader } from './stream-reader.js';

export interface SessionOptions {
  /** Where the GET goes. */
  readonly stream: HttpTarget;
  /** Where POSTs go, given the data of the `endpoint` event. @throws TransportError */
  readonly endpoint: (announced: Buffer) => HttpTarget;
  /** Headers of the GET, and of every POST, that do not come from the caller; name and value in turn. */
  readonly getHeaders: readonly string[];
  readonly postHeaders: readonly string[];
  /** Longest time until the `endpoint` event. */
  readonly endpointMs: number;
  readonly onDeviation: (what: string) => void;
  /** The session can be used. */
  readonly onOpen: () => void;
  readonly onOver: () => void;
}

/** Begins the ids that the gateway gives to sessions of this transport, which has none of its own. */
export const SESSION_PREFIX = 'http-sse-';

/** What comes while nobody listens is kept for whoever begins to, up to so much. */
const MAX_WAITING = 64;
const MAX_WAITING_BYTES = 1024 * 1024;
/** Answers to pings that are on their way at a time. */
const MAX_PONGS = 16;

/**
 * A session with an HTTP+SSE server (2024-11-05, basic/transports, "HTTP with SSE"): an event stream, on which the
 * server says everything, and POSTs to the place that it announces there. The session is as long as the stream.
 */
export class HttpSseSession implements StreamListener, CallOwner, ReadableSession {
  readonly id = SESSION_PREFIX + randomUUID();
  /** `initialize`, the first request. A session without an answer to it is none. */
  readonly handshake: StreamCall;
  readonly #options: SessionOptions;
  readonly #stream: SseStream;
  readonly #cookies = new CookieJar();
  readonly #calls = new Calls();
  readonly #slowReaders: SlowReaders;
  /** What happens instead if there is no event stream to be had. */
  readonly #instead: ((why: NoStream) => void) | undefined;
  #endpoint: HttpTarget | undefined;
  /** The body of the handshake, until it is known where to send it. */
  #opening: Buffer | undefined;
  /** Headers of the handshake. */
  readonly #firstHeaders: readonly string[];
  #listener: StreamReader | undefined;
  #waiting: Frame[] = [];
  #retired = false;
  #pongs = 0;
  #over = false;

  /**
   * @param headers of the POST, name and value in turn; the credentials among them go with the GET too
   * @param instead called in place of the sink where the backend does not speak HTTP+SSE
   */
  constructor(
    options: SessionOptions,
    headers: readonly string[],
    initialize: { readonly id: RequestId | undefined; readonly body: Buffer },
    sink: ResponseSink,
    instead?: (why: NoStream) => void,
  ) {
    this.#options = options;
    this.#instead = instead;
    this.handshake = new StreamCall(this, initialize.id, sink, { 'mcp-session-id': this.id });
    this.#opening = initialize.body;
    this.#firstHeaders = headers;
    const getHeaders = withFixed(streamHeaders(headers), options.getHeaders);
    this.#stream = new SseStream(options.stream, getHeaders, options.endpointMs, this);
    this.#slowReaders = new SlowReaders(
      (backpressure) => this.#stream.waitFor(backpressure),
      (slowReaders) => this.#calls.someNotIn(slowReaders),
    );
  }

  /** Opens the stream, and sends the handshake as soon as it is known where to. */
  start(): void {
    this.#stream.start();
  }

  /** Sends a message. */
  post(
    headers: readonly string[],
    id: RequestId | undefined,
    body: Buffer,
    sink: ResponseSink,
  ): UpstreamRequest {
    const call = new StreamCall(this, id, sink, {});
    this.#calls.add(call);
    this.#send(call, headers, body);
    return call;
  }

  /** Gives what belongs to no request to a sink. */
  listen(sink: ResponseSink): UpstreamRequest {
    const reader = new StreamReader(this, sink);
    this.#listener = reader;
    queueMicrotask(() => {
      if (this.#listener !== reader) return;
      sink.onHead(200, { 'content-type': 'text/event-stream' });
      for (const frame of this.#waiting.splice(0)) reader.take(frame);
    });
    return reader;
  }

  unlisten(reader: StreamReader): void {
    if (this.#listener === reader) this.#listener = undefined;
  }

  /** Ends the session from this side, as all transports of this kind do: by closing the stream. */
  close(error: TransportError): void {
    this.#stream.close();
    this.#end({ kind: 'failed', error, announced: true });
  }

  /**
   * Nothing more is asked on the session, since a message was refused as if it were not known: what was taken before may
   * still be answered, where another replica than the stream's refused it.
   */
  retire(): void {
    this.#retired = true;
    if (this.#calls.size === 0) this.close(new TransportError('aborted', 'the session was lost'));
  }

  onCookies(headers: ResponseHeaders): void {
    this.#cookies.keep(headers);
  }

  onEndpoint(data: Buffer): void {
    this.#endpoint = this.#options.endpoint(data);
    const opening = this.#opening;
    this.#opening = undefined;
    if (opening === undefined) return;
    this.#options.onOpen();
    this.#calls.add(this.handshake);
    this.#send(this.handshake, this.#firstHeaders, opening);
  }

  onBody(raw: Buffer): void {
    try {
      for (const frame of parseLenientFrames(toValidUtf8(raw).bytes)) this.onFrame(frame);
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
    }
  }

  onFrame(frame: Frame): void {
    const receiver = this.#receiverOf(frame);
    if (receiver !== undefined) receiver.take(frame);
    else if (frame.type === 'request' && frame.method === 'ping' && this.#endpoint !== undefined) {
      this.#answerPing(frame.id);
    } else if (frame.type === 'request' || frame.type === 'notification') this.#keep(frame);
  }

  onDeviation(what: string): void {
    this.#options.onDeviation(what);
  }

  onOver(why: NoStream): void {
    this.#end(why);
  }

  finished(call: StreamCall, succeeded: boolean): void {
    this.#calls.remove(call);
    if (this.#retired) this.retire();
    if (call !== this.handshake || succeeded) return;
    this.#opening = undefined;
    this.close(new TransportError('aborted', 'no handshake'));
  }

  waitFor(receiver: Receiver, backpressure: Backpressure): void {
    this.#slowReaders.waitFor(receiver, backpressure);
  }

  #send(call: StreamCall, headers: readonly string[], body: Buffer): void {
    let all = withFixed(messageHeaders(headers), this.#options.postHeaders);
    const cookies = this.#cookies.header;
    if (cookies !== undefined) all = all.concat('cookie', cookies);
    call.post(this.#endpoint as HttpTarget, all, body);
  }

  /** Whose a message is: its call's, else that of whoever listens; if nobody does, most likely of the call that came last. */
  #receiverOf(frame: Frame): Receiver | undefined {
    const call = this.#calls.ofFrame(frame);
    if (call !== undefined || frame.type === 'result' || frame.type === 'error')
      return call ?? this.#listener;
    const { last } = this.#calls;
    return this.#listener ?? (last === this.handshake ? undefined : last);
  }

  #keep(frame: Frame): void {
    this.#waiting.push(frame);
    let bytes = this.#waiting.reduce((sum, { root }) => sum + root.end - root.start, 0);
    while (this.#waiting.length > MAX_WAITING || bytes > MAX_WAITING_BYTES) {
      const dropped = this.#waiting.shift() as Frame;
      bytes -= dropped.root.end - dropped.root.start;
    }
  }

  /** Servers take a client for gone that gives no sign of life (basic/utilities/ping). */
  #answerPing(id: RequestId): void {
    // One that takes no answers is not to have the gateway pile them up.
    if (this.#pongs >= MAX_PONGS) return;
    this.#pongs++;
    const over = () => {
      this.#pongs--;
    };
    const nobody: ResponseSink = { onHead() {}, onMessage() {}, onEnd: over, onError: over };
    this.post(this.#firstHeaders, undefined, resultRope(id, new Rope().push('{}')).toBuffer(), nobody);
  }

  #end(why: NoStream): void {
    if (this.#over) return;
    this.#over = true;
    this.#slowReaders.clear();
    this.#options.onOver();
    const failed = why.kind === 'failed' ? why.error : undefined;
    if (this.#opening !== undefined) {
      this.#opening = undefined;
      if (this.#instead !== undefined) this.#instead(why);
      else if (why.kind === 'failed') this.handshake.fail(why.error);
      else this.handshake.refuse(why.status, why.headers, why.text);
    }
    this.#calls.failAll(failed ?? new TransportError('broken', 'the event stream ended'));
    this.#listener?.end();
  }
}
