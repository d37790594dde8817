import type { RequestId } from '../../jsonrpc/index.js';
import type { Backpressure } from '../backpressure.js';
import { TransportError } from '../errors.js';
import type { ResponseHeaders } from '../response-headers.js';
import type { ResponseSink, UpstreamRequest } from '../transport.js';
import { INITIALIZE, type RequestTraits } from './messages.js';
import type { StdioSession } from './session.js';

/** Whoever messages of a process are handed to: a request in flight, or the stream of a session. */
export interface Recipient {
  /** Still has messages to deal with. */
  lags: boolean;
}

export interface CallOwner {
  /** Nobody waits for the answer any more. */
  abandoned(call: Call): void;
  lags(recipient: Recipient, backpressure: Backpressure): void;
}

const JSON_BODY: ResponseHeaders = { 'content-type': 'application/json' };
const EVENTS: ResponseHeaders = { 'content-type': 'text/event-stream' };

/** A request that was written to a process, and what comes of it. */
export class Call implements UpstreamRequest, Recipient {
  lags = false;
  /** On the monotonic clock. */
  readonly madeAt = performance.now();
  /** As the caller wrote it. */
  readonly id: RequestId;
  /** {@link keyOf} the id under which the process knows it. */
  readonly key: string;
  readonly method: string;
  readonly facts: RequestTraits;
  /** The one that it came on. */
  readonly session: StdioSession | undefined;
  /** Takes the request back, where it has not been written yet. */
  recall: (() => boolean) | undefined;
  readonly #owner: CallOwner;
  readonly #sink: ResponseSink;
  #begun = false;
  #over = false;

  constructor(
    owner: CallOwner,
    sink: ResponseSink,
    about: {
      id: RequestId;
      key: string;
      method: string;
      facts: RequestTraits;
      session: StdioSession | undefined;
    },
  ) {
    this.#owner = owner;
    this.#sink = sink;
    this.id = about.id;
    this.key = about.key;
    this.method = about.method;
    this.facts = about.facts;
    this.session = about.session;
  }

  get isHandshake(): boolean {
    return this.method === INITIALIZE;
  }

  abort(): void {
    if (this.#over) return;
    this.#over = true;
    this.#owner.abandoned(this);
  }

  waitFor(backpressure: Backpressure | undefined): void {
    if (backpressure !== undefined && !this.#over) this.#owner.lags(this, backpressure);
  }

  /** A message on account of the request, before its response. */
  tell(message: Buffer): void {
    if (this.#over) return;
    if (!this.#begun) this.#sink.onHead(200, EVENTS);
    this.#begun = true;
    this.#sink.onMessage(message, undefined);
  }

  /** The response has come; that to a handshake names the session that was opened with it. */
  answer(message: Buffer, type: 'result' | 'error'): void {
    if (this.#over) return;
    const opened = this.isHandshake && type === 'result' ? this.session?.id : undefined;
    const headers = opened === undefined ? JSON_BODY : { ...JSON_BODY, 'mcp-session-id': opened };
    if (!this.#begun) this.#sink.onHead(200, headers);
    this.#begun = true;
    this.#sink.onMessage(message, undefined);
    this.end();
  }

  /** No response comes: the server has ended a stream. */
  end(): void {
    if (this.#over) return;
    this.#over = true;
    if (!this.#begun) this.#sink.onHead(200, EVENTS);
    this.#sink.onEnd('');
  }

  fail(error: TransportError): void {
    if (this.#over) return;
    this.#over = true;
    // What has been told would be told once more if the request were sent again.
    const broken = this.#begun && error.failure === 'unanswered';
    this.#sink.onError(broken ? new TransportError('broken', error.message) : error);
  }
}
