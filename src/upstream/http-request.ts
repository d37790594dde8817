import type { Dispatcher } from 'undici';
import type { Ticking } from '../exchange/utils/ticker.js';
import { NOWHERE } from '../exchange/utils/unordered-set.js';
import type { Backpressure } from './backpressure.js';
import type { BodyOwner, BodyReader } from './body-reader.js';
import type { Connection } from './connections.js';
import { TransportError, type TransportFailure, transportErrorFrom } from './errors.js';
import type { HttpTarget } from './http-target.js';
import { openBody } from './open-body.js';
import { joinQuery, splitQuery, withoutQuery } from './query.js';
import { resolveRedirect } from './redirect.js';
import type { ResponseHeaders } from './response-headers.js';
import type { ResponseSink, UpstreamRequest } from './transport.js';

/** One HTTP request to a backend and its response, read through undici's handler interface. */
export class HttpUpstreamRequest implements Dispatcher.DispatchHandler, BodyOwner, UpstreamRequest, Ticking {
  place = NOWHERE;
  readonly #target: HttpTarget;
  readonly #request: Dispatcher.DispatchOptions;
  readonly sink: ResponseSink;
  /** Of the caller, which is joined with the path. */
  readonly #query: string | undefined;
  #connection: Connection;
  /** Undefined until the request is written to a connection. */
  #controller: Dispatcher.DispatchController | undefined;
  #reader: BodyReader | undefined;
  /** No more bytes come; the reader may still decompress earlier ones. */
  #received = false;
  /** The sink got its last call, or the request was aborted. */
  #ended = false;
  /** The consumer of a message applies backpressure. */
  #paused = false;
  /** The reader's buffer is full. */
  #readerFull = false;
  #redirects = 0;
  /** Path to repeat the request at, once this response has ended. */
  #nextPath: string | undefined;
  #lastByteAt = 0;

  constructor(
    target: HttpTarget,
    method: Dispatcher.HttpMethod,
    given: readonly string[],
    body: Buffer | readonly Buffer[] | null,
    sink: ResponseSink,
  ) {
    const { headers, query } = withoutQuery(given);
    this.#target = target;
    this.#query = query;
    this.#connection = target.connections.acquire();
    // undici documents iterables of buffers as bodies and does not write to the headers; its types say neither.
    this.#request = {
      path: joinQuery(target.path, query),
      method,
      headers: headers as string[],
      body: body as Buffer | null,
    };
    this.sink = sink;
  }

  get limit(): number {
    return this.#target.options.resultBytes;
  }

  /** To be called once, right after the construction, which takes a connection. */
  start(): void {
    const connection = this.#connection;
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
    this.#reader?.discard();
    this.#controller?.abort(new TransportError('aborted', 'aborted'));
  }

  waitFor(backpressure: Backpressure | undefined): void {
    if (backpressure === undefined || this.#ended || this.#paused) return;
    this.#paused = true;
    this.#controller?.pause();
    this.#reader?.pause();
    backpressure(() => this.#resume());
  }

  tick(now: number): void {
    const { idleMs } = this.#target.options;
    if (this.#paused || this.#received || now - this.#lastByteAt < idleMs) return;
    this.#close(new TransportError('stalled', `no byte for ${idleMs} ms in the middle of the response`));
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
    if (this.#willRepeat(status)) return;
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
    this.#readerFull = true;
    controller.pause();
  }

  onResponseEnd(): void {
    const { connections } = this.#target;
    // A server ends a long-lived stream when it shuts down, and then closes the connection too.
    if (this.#request.method === 'GET' && this.#reader?.kind === 'events')
      connections.discard(this.#connection);
    else connections.release(this.#connection);
    if (this.#nextPath === undefined) {
      this.#close();
      return;
    }
    this.#request.path = this.#nextPath;
    this.#nextPath = undefined;
    if (this.#ended) return;
    this.#connection = connections.acquire();
    this.start();
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    const { connections } = this.#target;
    connections.discard(this.#connection);
    if (this.#ended || this.#received) return;
    const failure = this.#failure();
    if (failure === 'unanswered') connections.discardIdle(this.#connection);
    this.#close(transportErrorFrom(error, failure));
  }

  /** Learns from the status of a request that was not carried out. @returns whether to repeat it accordingly */
  #willRepeat(status: number): boolean {
    const { method, path, headers } = this.#request;
    if (this.#target.learnPath(method, splitQuery(path, this.#query), status))
      this.#nextPath = joinQuery(this.#target.path, this.#query);
    else if (status === 406) {
      const accepted = this.#target.learnAccept(headers as string[]);
      if (accepted === undefined) return false;
      this.#request.headers = accepted;
      this.#nextPath = path;
    }
    return this.#nextPath !== undefined;
  }

  /** What losing the connection means at this point. undici passes the controller when it writes the request. */
  #failure(): TransportFailure {
    if (this.#controller === undefined) return 'unreachable';
    return this.#reader === undefined && this.#nextPath === undefined ? 'unanswered' : 'broken';
  }

  /** No more bytes come: the reader uses what has arrived. */
  #close(error?: TransportError): void {
    const reader = this.#reader;
    if (this.#ended || this.#received) return;
    if (reader === undefined) {
      this.#fail(error ?? new TransportError('broken', 'the response ended before its headers'));
      return;
    }
    this.#received = true;
    try {
      reader.end(error === undefined ? 'whole' : 'truncated', (usable, text) => {
        if (usable === 'whole') this.#complete(text);
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
    this.#paused = false;
    this.#lastByteAt = performance.now();
    this.#reader?.resume();
    if (!this.#readerFull) this.#readOn();
  }

  onDrain(): void {
    this.#readerFull = false;
    if (!this.#paused) this.#readOn();
  }

  #readOn(): void {
    // After the last byte, the connection may serve another request.
    if (!this.#received) this.#controller?.resume();
  }

  #redirect(status: number, location: string | string[] | undefined): void {
    const target = resolveRedirect(this.#target, this.#request, status, location, ++this.#redirects);
    if (target instanceof TransportError) this.fail(target);
    else this.#nextPath = joinQuery(splitQuery(target, this.#query), this.#query);
  }

  fail(error: TransportError): void {
    if (this.#ended) return;
    this.#reader?.discard();
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
