import type { RequestId } from '../../jsonrpc/index.js';
import type { Backpressure } from '../backpressure.js';
import { TransportError } from '../errors.js';
import type { ResponseHeaders } from '../response-headers.js';
import type { ResponseSink, UpstreamRequest } from '../transport.js';
import type { Consumer } from './consumer.js';
import { INITIALIZE, type RequestTraits } from './messages.js';
import type { StdioSession } from './session.js';

export interface RequestOwner {
  /** The caller has aborted the request. */
  onAborted(request: InFlightRequest): void;
  onBackpressure(consumer: Consumer, backpressure: Backpressure): void;
}

interface RequestOptions {
  /** As the caller wrote it. */
  readonly id: RequestId;
  /** {@link keyOf} the id that the process knows. */
  readonly key: string;
  readonly method: string;
  readonly traits: RequestTraits;
  /** The session that the request came on. */
  readonly session: StdioSession | undefined;
}

const JSON_BODY: ResponseHeaders = { 'content-type': 'application/json' };
const EVENTS: ResponseHeaders = { 'content-type': 'text/event-stream' };

/** A request that was sent to a process, and its response. */
export class InFlightRequest implements UpstreamRequest, Consumer, RequestOptions {
  backlogged = false;
  /** On the monotonic clock. */
  readonly sentAt = performance.now();
  readonly id: RequestId;
  readonly key: string;
  readonly method: string;
  readonly traits: RequestTraits;
  readonly session: StdioSession | undefined;
  /** Removes the request from the write queue; undefined once the process can read it. */
  withdraw: (() => boolean) | undefined;
  readonly #owner: RequestOwner;
  readonly #sink: ResponseSink;
  #hasHead = false;
  #over = false;

  constructor(owner: RequestOwner, sink: ResponseSink, options: RequestOptions) {
    this.#owner = owner;
    this.#sink = sink;
    this.id = options.id;
    this.key = options.key;
    this.method = options.method;
    this.traits = options.traits;
    this.session = options.session;
  }

  get isHandshake(): boolean {
    return this.method === INITIALIZE;
  }

  abort(): void {
    if (this.#over) return;
    this.#over = true;
    this.#owner.onAborted(this);
  }

  waitFor(backpressure: Backpressure | undefined): void {
    if (backpressure !== undefined && !this.#over) this.#owner.onBackpressure(this, backpressure);
  }

  /** Passes on a notification or request that belongs to this request. */
  deliver(message: Buffer): void {
    if (this.#over) return;
    this.#sendHead(EVENTS);
    this.#sink.onMessage(message, undefined);
  }

  /** Passes on the response. That to a handshake names the session which it opened. */
  respond(message: Buffer, type: 'result' | 'error'): void {
    if (this.#over) return;
    const opened = this.isHandshake && type === 'result' ? this.session?.id : undefined;
    this.#sendHead(opened === undefined ? JSON_BODY : { ...JSON_BODY, 'mcp-session-id': opened });
    this.#sink.onMessage(message, undefined);
    this.end();
  }

  /** Ends the response stream: the server has ended a subscription, which gets no response. */
  end(): void {
    if (this.#over) return;
    this.#over = true;
    this.#sendHead(EVENTS);
    this.#sink.onEnd('');
  }

  fail(error: TransportError): void {
    if (this.#over) return;
    this.#over = true;
    // Repeating the request would repeat the messages that were passed on.
    const broken = this.#hasHead && error.failure === 'unanswered';
    this.#sink.onError(broken ? new TransportError('broken', error.message) : error);
  }

  #sendHead(headers: ResponseHeaders): void {
    if (this.#hasHead) return;
    this.#hasHead = true;
    this.#sink.onHead(200, headers);
  }
}
