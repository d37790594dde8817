import type { Transform } from 'node:stream';
import { SseDecoder } from '../jsonrpc/index.js';
import { BodyCollector } from './body-collector.js';
import { contentCoding } from './content-coding.js';
import { TransportError, transportErrorFrom } from './errors.js';
import type { ResponseHeaders } from './response-headers.js';

/** Takes the messages of an answer's body as they come. */
export interface MessageSink {
  /** A JSON body as a whole, or one event of a stream; `eventId` is the event's own id. */
  onMessage(bytes: Buffer, eventId: string | undefined): void;
  /** An event without data that only sets the id to resume from. */
  onPriming?(eventId: string): void;
  /** The server's wish for the pause before a reconnection, in milliseconds. */
  onRetry?(ms: number): void;
  /**
   * An event of another name than `message`.
   * @throws TransportError to end the answer
   */
  onNamedEvent?(name: string, data: Buffer): void;
}

/** How a body ended: `text` is the beginning of one that is neither JSON nor an event stream. */
export type BodyEnd = (whole: boolean, text: string) => void;

/** Reads the body of one answer. */
export interface BodyReader {
  readonly kind: 'json' | 'events' | 'text';
  /**
   * @returns false when the reader lags behind; {@link BodyOwner.caughtUp} is called once it has caught up
   * @throws TransportError, SseOverflowError
   */
  push(chunk: Buffer): boolean;
  /**
   * No more bytes come. What has come of a body that was cut off is used as far as it is whole: servers announce
   * lengths that are wrong, and end streams without the last blank line.
   * @param complete false when the connection broke, or fell silent, before the announced end
   * @throws TransportError, SseOverflowError
   */
  end(complete: boolean, done: BodyEnd): void;
  /** Nobody wants the rest. */
  abandon(): void;
  /** Holds back, or lets go, what the reader has taken in and not yet handed on. */
  hold(held: boolean): void;
}

/** Whose answer is read. */
export interface BodyOwner {
  /** Greatest length in bytes of a JSON body and of one event. */
  readonly limit: number;
  readonly sink: MessageSink;
  /** The body cannot be read any further. */
  fail(error: TransportError): void;
  /** The reader that lagged behind has caught up. */
  caughtUp(): void;
}

const USUAL_JSON = 'application/json';

/**
 * Opens the reader that fits an answer.
 * @throws TransportError for an announced length above the limit, and an unknown `Content-Encoding`
 */
export function openBody(status: number, headers: ResponseHeaders, owner: BodyOwner): BodyReader {
  const reader = plainReader(status, headers, owner);
  const stated = headers['content-encoding'];
  if (stated === undefined) return reader;
  const encoding = String(stated).trim().toLowerCase();
  return NO_CODING.test(encoding) ? reader : new DecodingReader(encoding, reader, owner);
}

/** What servers write there that compress nothing: no coding at all, or what belongs into another header. */
const NO_CODING = /^(identity|none|utf-?8|binary|[78]bit|chunked)?$/;

function plainReader(status: number, headers: ResponseHeaders, { limit, sink }: BodyOwner): BodyReader {
  const type = String(headers['content-type'] ?? '');
  // 202 and 204 have nothing to read; Python's server labels its empty 202 as JSON.
  if (status !== 202 && status !== 204) {
    if (type === USUAL_JSON || /^\s*application\/(?:[\w.-]+\+)?json\b/i.test(type)) {
      const announced = headers['content-encoding'] === undefined ? headers['content-length'] : undefined;
      return new JsonReader(limit, typeof announced === 'string' ? announced : undefined, sink);
    }
    if (/^\s*text\/event-stream\b/i.test(type)) return new EventReader(limit, sink);
  }
  return new TextReader();
}

class JsonReader implements BodyReader {
  readonly kind = 'json';
  readonly #body: BodyCollector;
  readonly #sink: MessageSink;
  constructor(limit: number, announced: string | undefined, sink: MessageSink) {
    this.#body = new BodyCollector(limit, announced);
    this.#sink = sink;
  }
  push(chunk: Buffer): boolean {
    this.#body.push(chunk);
    return true;
  }
  end(complete: boolean, done: BodyEnd): void {
    const bytes = this.#body.take();
    const whole = complete || isJson(bytes);
    if (whole && bytes.length > 0) this.#sink.onMessage(bytes, undefined);
    done(whole, '');
  }
  abandon(): void {
    this.#body.take();
  }
  hold(): void {}
}

function isJson(bytes: Buffer): boolean {
  try {
    JSON.parse(bytes.toString());
    return true;
  } catch {
    return false;
  }
}

class EventReader implements BodyReader {
  readonly kind = 'events';
  readonly #decoder: SseDecoder;
  constructor(limit: number, sink: MessageSink) {
    this.#decoder = new SseDecoder({
      maxEventBytes: limit,
      onEvent: ({ type, data, id }) => {
        if (data.length === 0) {
          if (id !== undefined) sink.onPriming?.(id);
        } else if (type === '' || type === 'message') {
          sink.onMessage(data, id);
        } else sink.onNamedEvent?.(type, data);
      },
      onRetry: (ms) => sink.onRetry?.(ms),
    });
  }
  push(chunk: Buffer): boolean {
    this.#decoder.push(chunk);
    return true;
  }
  end(complete: boolean, done: BodyEnd): void {
    this.#decoder.end();
    done(complete, '');
  }
  abandon(): void {}
  hold(): void {}
}

/** As much of an HTML or text body as an error message needs. */
const TEXT_BYTES = 64 * 1024;

class TextReader implements BodyReader {
  readonly kind = 'text';
  readonly #chunks: Buffer[] = [];
  #length = 0;
  push(chunk: Buffer): boolean {
    if (this.#length < TEXT_BYTES) {
      this.#chunks.push(chunk);
      this.#length += chunk.length;
    }
    return true;
  }
  end(complete: boolean, done: BodyEnd): void {
    done(complete, Buffer.concat(this.#chunks).toString('utf8').slice(0, TEXT_BYTES));
  }
  abandon(): void {}
  hold(): void {}
}

/** Some backends compress although they were asked not to. */
class DecodingReader implements BodyReader {
  readonly kind: BodyReader['kind'];
  readonly #reader: BodyReader;
  readonly #decoder: Transform;
  readonly #owner: BodyOwner;
  #abandoned = false;

  constructor(encoding: string, reader: BodyReader, owner: BodyOwner) {
    const coding = contentCoding(encoding);
    if (coding === undefined) throw new TransportError('unusable', `unknown Content-Encoding ${encoding}`);
    this.kind = reader.kind;
    this.#reader = reader;
    this.#owner = owner;
    this.#decoder = coding.open(true);
    this.#decoder.on('data', (chunk: Buffer) => this.#unlessAbandoned(() => reader.push(chunk)));
    this.#decoder.on('error', (error) =>
      owner.fail(new TransportError('unusable', `bad ${encoding} body: ${error.message}`)),
    );
  }

  push(chunk: Buffer): boolean {
    if (this.#decoder.write(chunk)) return true;
    this.#decoder.once('drain', () => this.#owner.caughtUp());
    return false;
  }

  end(complete: boolean, done: BodyEnd): void {
    this.#decoder.once('end', () => this.#unlessAbandoned(() => this.#reader.end(complete, done)));
    this.#decoder.end();
  }

  abandon(): void {
    this.#abandoned = true;
    this.#decoder.destroy();
    this.#reader.abandon();
  }

  hold(held: boolean): void {
    if (held) this.#decoder.pause();
    else this.#decoder.resume();
  }

  /** What happens on the decoder's own time has nobody above it to catch its errors. */
  #unlessAbandoned(work: () => void): void {
    if (this.#abandoned) return;
    try {
      work();
    } catch (error) {
      this.#owner.fail(transportErrorFrom(error));
    }
  }
}
