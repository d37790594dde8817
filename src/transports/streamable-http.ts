import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import { type Dispatcher, Pool } from 'undici';
import { NOWHERE } from '../exchange/bag.js';
import type { Ticker, Ticking } from '../exchange/ticker.js';
import { type Rope, SseDecoder } from '../jsonrpc/index.js';
import { BodyCollector } from './collector.js';
import { TransportError, transportErrorFrom } from './errors.js';

export type ResponseHeaders = Record<string, string | string[] | undefined>;

/** Takes the answer to one HTTP request as it comes. Exactly one of `onEnd` and `onError` ends it. */
export interface AnswerSink {
  /** Status and headers have come. Not called for the redirects that the transport follows itself. */
  onHead(status: number, headers: ResponseHeaders): void;
  /** A JSON body as a whole, or one event of a stream; `eventId` is the event's own id. */
  onMessage(bytes: Buffer, eventId: string | undefined): void;
  /** An event without data that only sets the id to resume from. */
  onPriming?(eventId: string): void;
  /** The server's wish for the pause before a reconnection, in milliseconds. */
  onRetry?(ms: number): void;
  /** The answer is complete; `text` is the beginning of a body that is neither JSON nor an event stream. */
  onEnd(text: string): void;
  onError(error: TransportError): void;
}

export interface StreamableHttpOptions {
  readonly url: string;
  /** Value of `Host`, where the backend wants another one than its authority. */
  readonly hostHeader: string | undefined;
  /** Fixed headers of the route, name and value in turn. */
  readonly headers: readonly string[];
  readonly connectMs: number;
  /** Longest silence in the middle of a JSON body. */
  readonly idleMs: number;
  readonly resultBytes: number;
  readonly ticker: Ticker;
  /** Told, in words that go with the backend's name, of what the backend does wrong and the gateway puts up with. */
  readonly onQuirk?: (what: string) => void;
}

/** Closed before common servers close theirs (5 s and up), so that a request seldom meets a dying connection. */
const KEEP_ALIVE_MS = 4_000;
/** Bodies up to this size go out as one buffer. */
const SINGLE_BUFFER_UP_TO = 64 * 1024;
/** As much of an HTML or text body as an error message needs. */
const TEXT_BYTES = 64 * 1024;
const MAX_REDIRECTS = 3;
const GONE: ReadonlySet<number> = new Set([404, 405, 410]);

/** HTTP requests to one MCP endpoint, with answers as JSON, event stream or text. Knows nothing of MCP's messages. */
export class StreamableHttpTransport {
  readonly options: StreamableHttpOptions;
  readonly origin: string;
  /** Where the endpoint is now: a redirect that led to an answer is remembered until it leads nowhere. */
  path: string;
  readonly #configuredPath: string;
  readonly #pool: Pool;

  constructor(options: StreamableHttpOptions) {
    const url = new URL(options.url);
    this.options = options;
    this.origin = url.origin;
    this.path = url.pathname + url.search;
    this.#configuredPath = this.path;
    this.#pool = new Pool(url.origin, {
      pipelining: 1,
      keepAliveTimeout: KEEP_ALIVE_MS,
      connect: { timeout: options.connectMs },
      headersTimeout: 0,
      bodyTimeout: 0,
    });
  }

  /**
   * Sends one request.
   * @param headers name and value in turn; the route's fixed headers and `Host` are added
   */
  send(
    method: 'POST' | 'GET' | 'DELETE',
    headers: readonly string[],
    body: Rope | undefined,
    sink: AnswerSink,
  ): Transfer {
    const { hostHeader, headers: fixed } = this.options;
    const all = fixed.length === 0 ? [...headers] : [...headers, ...fixed];
    if (hostHeader !== undefined) all.push('host', hostHeader);
    const transfer = new Transfer(this, this.#pool, method, all, outgoingBody(body, all), sink);
    transfer.start();
    return transfer;
  }

  /**
   * Learns from an answer where the endpoint is.
   * @returns whether it is gone from where it was redirected to, and the request is to be sent where it was before
   */
  learnPath(method: string, path: string, status: number): boolean {
    if (status < 400) this.path = path;
    else if (method === 'POST' && GONE.has(status) && path === this.path && path !== this.#configuredPath) {
      this.path = this.#configuredPath;
      return true;
    }
    return false;
  }

  /** Ends every connection, also those in use. */
  async close(): Promise<void> {
    await this.#pool.destroy();
  }
}

function outgoingBody(body: Rope | undefined, headers: string[]): Buffer | (Buffer | string)[] | null {
  if (body === undefined) return null;
  if (body.byteLength <= SINGLE_BUFFER_UP_TO) return body.toBuffer();
  headers.push('content-length', String(body.byteLength));
  return [...body.pieces];
}

/** One request on the wire. */
export class Transfer implements Dispatcher.DispatchHandler, Ticking {
  place = NOWHERE;
  readonly #transport: StreamableHttpTransport;
  readonly #pool: Pool;
  readonly #request: Dispatcher.DispatchOptions;
  readonly #sink: AnswerSink;
  #controller: Dispatcher.DispatchController | undefined;
  #reader: BodyReader | undefined;
  #ended = false;
  #paused = false;
  #redirects = 0;
  #redirected: string | undefined;
  #lastByteAt = 0;

  constructor(
    transport: StreamableHttpTransport,
    pool: Pool,
    method: Dispatcher.HttpMethod,
    headers: string[],
    body: Buffer | (Buffer | string)[] | null,
    sink: AnswerSink,
  ) {
    this.#transport = transport;
    this.#pool = pool;
    this.#request = { path: transport.path, method, headers, body: body as Buffer | null };
    this.#sink = sink;
  }

  start(): void {
    try {
      this.#pool.dispatch(this.#request, this);
    } catch (error) {
      this.#fail(transportErrorFrom(error));
    }
  }

  /** Ends the transfer without a further call to the sink. */
  abort(): void {
    if (this.#ended) return;
    this.#finish();
    this.#controller?.abort(new TransportError('aborted', 'aborted'));
  }

  /** Stops reading until {@link Transfer.resume}: the client is slower than the backend. */
  pause(): void {
    if (this.#ended || this.#paused) return;
    this.#paused = true;
    this.#controller?.pause();
  }

  resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.#controller?.resume();
  }

  tick(now: number): void {
    if (this.#paused || now - this.#lastByteAt < this.#transport.options.idleMs) return;
    this.#stop(
      new TransportError(
        'stalled',
        `no byte for ${this.#transport.options.idleMs} ms in the middle of the answer`,
      ),
    );
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
    if (status >= 300 && status < 400) {
      this.#redirect(status, headers['location']);
      return;
    }
    const { method, path } = this.#request;
    if (this.#transport.learnPath(method, path, status)) {
      this.#redirected = this.#transport.path;
      return;
    }
    try {
      this.#reader = openReader(status, headers, this.#transport.options.resultBytes, this.#sink, (error) =>
        this.#stop(error),
      );
    } catch (error) {
      this.#stop(transportErrorFrom(error));
      return;
    }
    if (this.#reader.kind === 'json') {
      this.#lastByteAt = performance.now();
      this.#transport.options.ticker.add(this);
    }
    this.#sink.onHead(status, headers);
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    const reader = this.#reader;
    if (this.#ended || reader === undefined) return;
    if (reader.kind === 'json') this.#lastByteAt = performance.now();
    try {
      reader.push(chunk);
    } catch (error) {
      this.#stop(transportErrorFrom(error));
    }
  }

  onResponseEnd(): void {
    if (this.#redirected !== undefined) {
      this.#request.path = this.#redirected;
      this.#redirected = undefined;
      this.start();
      return;
    }
    this.#complete();
  }

  onResponseError(_controller: Dispatcher.DispatchController | undefined, error: Error): void {
    if (this.#ended) return;
    // A body shorter than announced may still be a whole message; let the reader have what came.
    if (this.#reader?.kind === 'json' && this.#reader.looksWhole()) {
      this.#complete();
      return;
    }
    this.#reader?.abandon();
    this.#fail(transportErrorFrom(error));
  }

  #complete(): void {
    const reader = this.#reader;
    if (this.#ended || reader === undefined) return;
    this.#finish();
    reader.end((text) => this.#sink.onEnd(text));
  }

  #redirect(status: number, location: string | string[] | undefined): void {
    const target = resolveRedirect(this.#transport, status, location, ++this.#redirects);
    if (target instanceof TransportError) {
      this.#stop(target);
      return;
    }
    this.#redirected = target;
  }

  #stop(error: TransportError): void {
    if (this.#ended) return;
    this.#reader?.abandon();
    this.#fail(error);
    this.#controller?.abort(error);
  }

  #fail(error: TransportError): void {
    if (this.#ended) return;
    this.#finish();
    this.#sink.onError(error);
  }

  #finish(): void {
    this.#ended = true;
    this.#transport.options.ticker.remove(this);
  }
}

/** A redirect is followed with method and body kept (307, 308), and never to another origin: credentials go along. */
function resolveRedirect(
  transport: StreamableHttpTransport,
  status: number,
  location: string | string[] | undefined,
  count: number,
): string | TransportError {
  const problem = (what: string): TransportError =>
    new TransportError(
      'unusable',
      `backend answered ${status} ${what}; set the final address as backend.url`,
    );
  if (status !== 307 && status !== 308) return problem('which does not keep the request');
  if (typeof location !== 'string') return problem('without a Location');
  if (count > MAX_REDIRECTS) return problem('too many times');
  let url: URL;
  try {
    url = new URL(location, transport.origin + transport.path);
  } catch {
    return problem('with an unreadable Location');
  }
  if (url.origin !== transport.origin) return problem(`to another origin, ${url.origin}`);
  return url.pathname + url.search;
}

interface BodyReader {
  readonly kind: 'json' | 'sse' | 'text';
  push(chunk: Buffer): void;
  end(done: (text: string) => void): void;
  abandon(): void;
  looksWhole(): boolean;
}

function openReader(
  status: number,
  headers: ResponseHeaders,
  limit: number,
  sink: AnswerSink,
  fail: (error: TransportError) => void,
): BodyReader {
  const reader = plainReader(status, headers, limit, sink);
  const encoding = headers['content-encoding'];
  if (encoding === undefined || encoding === 'identity') return reader;
  return decodingReader(String(encoding), reader, fail);
}

function plainReader(status: number, headers: ResponseHeaders, limit: number, sink: AnswerSink): BodyReader {
  const type = String(headers['content-type'] ?? '');
  // 202 and 204 have nothing to read; Python's server labels its empty 202 as JSON.
  if (status !== 202 && status !== 204) {
    if (/^\s*application\/(?:[\w.-]+\+)?json/i.test(type)) {
      const announced = headers['content-encoding'] === undefined ? headers['content-length'] : undefined;
      return new JsonReader(limit, typeof announced === 'string' ? announced : undefined, sink);
    }
    if (/^\s*text\/event-stream/i.test(type)) return new EventReader(limit, sink);
  }
  return new TextReader();
}

class JsonReader implements BodyReader {
  readonly kind = 'json';
  readonly #body: BodyCollector;
  readonly #sink: AnswerSink;
  constructor(limit: number, announced: string | undefined, sink: AnswerSink) {
    this.#body = new BodyCollector(limit, announced);
    this.#sink = sink;
  }
  push(chunk: Buffer): void {
    this.#body.push(chunk);
  }
  end(done: (text: string) => void): void {
    if (this.#body.length > 0) this.#sink.onMessage(this.#body.take(), undefined);
    done('');
  }
  abandon(): void {
    this.#body.take();
  }
  looksWhole(): boolean {
    if (this.#body.length === 0) return false;
    const text = this.#body.take();
    this.#body.push(text);
    try {
      JSON.parse(text.toString());
      return true;
    } catch {
      return false;
    }
  }
}

class EventReader implements BodyReader {
  readonly kind = 'sse';
  readonly #decoder: SseDecoder;
  constructor(limit: number, sink: AnswerSink) {
    this.#decoder = new SseDecoder({
      maxEventBytes: limit,
      onEvent: ({ type, data, id }) => {
        if (data.length === 0) {
          if (id !== undefined) sink.onPriming?.(id);
        } else if (type === '' || type === 'message') {
          sink.onMessage(data, id);
        }
      },
      onRetry: (ms) => sink.onRetry?.(ms),
    });
  }
  push(chunk: Buffer): void {
    this.#decoder.push(chunk);
  }
  end(done: (text: string) => void): void {
    this.#decoder.end();
    done('');
  }
  abandon(): void {}
  looksWhole(): boolean {
    return false;
  }
}

class TextReader implements BodyReader {
  readonly kind = 'text';
  readonly #chunks: Buffer[] = [];
  #length = 0;
  push(chunk: Buffer): void {
    if (this.#length >= TEXT_BYTES) return;
    this.#chunks.push(chunk);
    this.#length += chunk.length;
  }
  end(done: (text: string) => void): void {
    done(Buffer.concat(this.#chunks).toString('utf8').slice(0, TEXT_BYTES));
  }
  abandon(): void {}
  looksWhole(): boolean {
    return false;
  }
}

const DECODERS: Readonly<Record<string, () => ReturnType<typeof createGunzip>>> = {
  gzip: () => createGunzip({ flush: 2, finishFlush: 2 }),
  'x-gzip': () => createGunzip({ flush: 2, finishFlush: 2 }),
  deflate: () => createInflate({ flush: 2, finishFlush: 2 }),
  br: () => createBrotliDecompress() as unknown as ReturnType<typeof createGunzip>,
};

/** Some backends compress although they were asked not to. Each chunk is flushed, so that events are not held back. */
function decodingReader(
  encoding: string,
  reader: BodyReader,
  fail: (error: TransportError) => void,
): BodyReader {
  const open = DECODERS[encoding.trim().toLowerCase()];
  if (open === undefined) throw new TransportError('unusable', `unknown Content-Encoding ${encoding}`);
  const decoder = open();
  let abandoned = false;
  decoder.on('data', (chunk: Buffer) => {
    if (abandoned) return;
    try {
      reader.push(chunk);
    } catch (error) {
      fail(transportErrorFrom(error));
    }
  });
  decoder.on('error', (error) =>
    fail(new TransportError('unusable', `bad ${encoding} body: ${error.message}`)),
  );
  return {
    kind: reader.kind,
    push: (chunk) => void decoder.write(chunk),
    end: (done) => {
      decoder.once('end', () => {
        if (!abandoned) reader.end(done);
      });
      decoder.end();
    },
    abandon: () => {
      abandoned = true;
      decoder.destroy();
      reader.abandon();
    },
    looksWhole: () => false,
  };
}
