import type { Dispatcher } from 'undici';
import type { Ticking } from '../exchange/ticker.js';
import { NOWHERE } from '../exchange/unordered-set.js';
import type { Backpressure } from './backpressure.js';
import { type BodyOwner, type BodyReader, openBody } from './body-reader.js';
import type { Connection } from './connections.js';
import { TransportError, type TransportFailure, transportErrorFrom } from './errors.js';
import type { HttpTarget } from './http-target.js';
import { resolveRedirect } from './redirect.js';
import type { ResponseHeaders } from './response-headers.js';
import type { AnswerSink, UpstreamRequest } from './transport.js';

/** One HTTP request to a backend and its response, read through undici's handler interface. */
export class HttpUpstreamRequest implements Dispatcher.DispatchHandler, BodyOwner, UpstreamRequest, Ticking {
  place = NOWHERE;
  readonly #target: HttpTarget;
  readonly #request: Dispatcher.DispatchOptions;
  readonly sink: AnswerSink;
  #connection!: Connection;
  /** Undefined until the request is written to a connection. */
  #controller: Dispatcher.DispatchController | undefined;
  #reader: BodyReader | undefined;
  /** No more bytes come; the reader may still be busy with those that have. */
  #received = false;
  /** The sink has been told the end, or wants to hear none. */
  #ended = false;
  #held = false;
  #lagging = false;
  #redirects = 0;
  #redirected: string | undefined;
  #lastByteAt = 0;

  constructor(
    target: HttpTarget,
    method: Dispatcher.HttpMethod,
    headers: readonly string[],
    body: Buffer | readonly Buffer[] | null,
    sink: AnswerSink,
  ) {
    this.#target = target;
    // undici takes more than its types say: a list of buffers as a body, and it does not write to the headers.
    this.#request = {
      path: target.path,
      method,
      headers: headers as string[],
      body: body as Buffer | null,
    };
    this.sink = sink;
  }

  get limit(): number {
    return this.#target.options.resultBytes;
  }

  start(): void {
    const connection = this.#target.connections.take();
    this.#connection = connection;
    this.#controller = undefined;
    try {
      connection.client.dispatch(this.#request, this);
    } catch (error) {
      this.#target.connections.discard(connection);
      this.#fail(transportErrorFrom(error));
    }
  }

  abort(): void {
    if (this.#ended) return;
    this.#finish();
    this.#reader?.abandon();
    this.#controller?.abort(new TransportError('aborted', 'aborted'));
  }

  waitFor(backpressure: Backpressure | undefined): void {
    if (backpressure === undefined || this.#ended || this.#held) return;
    this.#held = true;
    this.#controller?.pause();
    this.#reader?.hold(true);
    backpressure(() => this.#resume());
  }

  tick(now: number): void {
    const { idleMs } = this.#target.options;
    if (this.#held || this.#received || now - this.#lastByteAt < idleMs) return;
    this.#close(new TransportError('stalled', `no byte for ${idleMs} ms in the middle of the answer`));
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#ended) controller.abort(new TransportError('aborted', 'aborted'));
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: ResponseHeaders,
  ): void {
    if (this.#ended || status < 200) return;
    if (status >= 300 && status < 400) this.#redirect(status, headers['location']);
    else this.#begin(status, headers);
  }

  #begin(status: number, headers: ResponseHeaders): void {
    if (this.#isToBeSentAgain(status)) return;
    try {
      this.#reader = openBody(status, headers, this);
    } catch (error) {
      this.fail(transportErrorFrom(error));
      return;
    }
    if (this.#reader.kind === 'json') {
      this.#lastByteAt = performance.now();
      this.#target.options.ticker.add(this);
    }
    this.sink.onHead(status, headers);
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    const reader = this.#reader;
    if (this.#ended || this.#received || reader === undefined) return;
    if (reader.kind === 'json') this.#lastByteAt = performance.now();
    try {
      if (reader.push(chunk)) return;
    } catch (error) {
      this.fail(transportErrorFrom(error));
      return;
    }
    this.#lagging = true;
    controller.pause();
  }

  onResponseEnd(): void {
    const { connections } = this.#target;
    // A stream that lasts is ended by a server that goes away, which is about to close the connection too.
    if (this.#request.method === 'GET' && this.#reader?.kind === 'events')
      connections.discard(this.#connection);
    else connections.giveBack(this.#connection);
    if (this.#redirected === undefined) {
      this.#close();
      return;
    }
    this.#request.path = this.#redirected;
    this.#redirected = undefined;
    if (!this.#ended) this.start();
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    const { connections } = this.#target;
    connections.discard(this.#connection);
    if (this.#ended || this.#received) return;
    const failure = this.#failure();
    if (failure === 'unanswered') connections.retire(this.#connection);
    this.#close(transportErrorFrom(error, failure));
  }

  /** Whether the answer teaches the transport how to ask, and it is to ask so at once: nothing was carried out. */
  #isToBeSentAgain(status: number): boolean {
    const { method, path, headers } = this.#request;
    if (this.#target.learnPath(method, path, status)) this.#redirected = this.#target.path;
    else if (status === 406) {
      const others = this.#target.learnAccept(headers as string[]);
      if (others === undefined) return false;
      this.#request.headers = others;
      this.#redirected = path;
    }
    return this.#redirected !== undefined;
  }

  /** What it means that the connection is gone now. A request is given its connection as it is written. */
  #failure(): TransportFailure {
    if (this.#controller === undefined) return 'unreachable';
    return this.#reader === undefined && this.#redirected === undefined ? 'unanswered' : 'broken';
  }

  /** No more bytes come: lets the reader make what it can of those that have. */
  #close(error?: TransportError): void {
    const reader = this.#reader;
    if (this.#ended || this.#received) return;
    if (reader === undefined) {
      this.#fail(error ?? new TransportError('broken', 'the answer ended before it began'));
      return;
    }
    this.#received = true;
    try {
      reader.end(error === undefined, (whole, text) => {
        if (whole) this.#complete(text);
        else this.#fail(error as TransportError);
      });
    } catch (thrown) {
      this.#fail(transportErrorFrom(thrown));
    }
    if (error?.failure === 'stalled') this.#controller?.abort(error);
  }

  #complete(text: string): void {
    if (this.#ended) return;
    this.#finish();
    this.sink.onEnd(text);
  }

  #resume(): void {
    this.#held = false;
    this.#lastByteAt = performance.now();
    this.#reader?.hold(false);
    if (!this.#lagging) this.#readOn();
  }

  /** The reader has caught up. */
  caughtUp(): void {
    this.#lagging = false;
    if (!this.#held) this.#readOn();
  }

  #readOn(): void {
    // By then the connection may serve another request.
    if (!this.#received) this.#controller?.resume();
  }

  #redirect(status: number, location: string | string[] | undefined): void {
    const target = resolveRedirect(this.#target, this.#request, status, location, ++this.#redirects);
    if (target instanceof TransportError) this.fail(target);
    else this.#redirected = target;
  }

  /** The answer cannot be read any further. */
  fail(error: TransportError): void {
    if (this.#ended) return;
    this.#reader?.abandon();
    this.#fail(error);
    this.#controller?.abort(error);
  }

  #fail(error: TransportError): void {
    if (this.#ended) return;
    this.#finish();
    this.sink.onError(error);
  }

  #finish(): void {
    this.#ended = true;
    this.#target.options.ticker.remove(this);
  }
}
