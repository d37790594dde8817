import { BodyCollector } from '../body/body-collector.js';
import { SseDecoder } from '../jsonrpc/index.js';
import type { BodyEnd, BodyExtent, BodyReader, MessageSink } from './body-reader.js';
import { TransportError } from './errors.js';

/** Reads a JSON body into one message. */
export class JsonReader implements BodyReader {
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
  end(received: BodyExtent, done: BodyEnd): void {
    const bytes = this.#body.take();
    const usable = received === 'whole' || parses(bytes);
    if (usable && bytes.length > 0) this.#sink.onMessage(bytes, undefined);
    done(usable ? 'whole' : 'truncated', '');
  }
  discard(): void {
    this.#body.take();
  }
  pause(): void {}
  resume(): void {}
}

function parses(bytes: Buffer): boolean {
  try {
    JSON.parse(bytes.toString());
    return true;
  } catch {
    return false;
  }
}

/** Reads an event stream; each event is a message. */
export class EventReader implements BodyReader {
  readonly kind = 'events';
  readonly #decoder: SseDecoder;
  readonly #limit: number;
  /** Bytes since the last message. */
  #without = 0;
  constructor(limit: number, sink: MessageSink) {
    this.#limit = limit;
    this.#decoder = new SseDecoder({
      maxEventBytes: limit,
      onEvent: ({ type, data, id }) => {
        if (data.length === 0) {
          if (id !== undefined) sink.onPriming?.(id);
        } else if (type === '' || type === 'message') {
          this.#without = 0;
          sink.onMessage(data, id);
        } else sink.onNamedEvent?.(type, data);
      },
      onRetry: (ms) => sink.onRetry?.(ms),
    });
  }
  push(chunk: Buffer): boolean {
    // A stream of comments and of events without a message may be endless.
    this.#without += chunk.length;
    this.#decoder.push(chunk);
    if (this.#without > 2 * this.#limit)
      throw new TransportError('unusable', `its event stream has no message in ${2 * this.#limit} bytes`);
    return true;
  }
  end(received: BodyExtent, done: BodyEnd): void {
    this.#decoder.end();
    done(received, '');
  }
  discard(): void {}
  pause(): void {}
  resume(): void {}
}

/** How much of an HTML or text body is kept for an error message. */
const TEXT_BYTES = 64 * 1024;
/** A longer one is not read to its end: it is no error page, and may be endless. */
const MAX_TEXT_BYTES = 1024 * 1024;

/** Keeps the beginning of any other body. */
export class TextReader implements BodyReader {
  readonly kind = 'text';
  readonly #chunks: Buffer[] = [];
  #length = 0;
  push(chunk: Buffer): boolean {
    if (this.#length < TEXT_BYTES) this.#chunks.push(chunk);
    this.#length += chunk.length;
    if (this.#length > MAX_TEXT_BYTES)
      throw new TransportError('unusable', `its response is text of more than ${MAX_TEXT_BYTES} bytes`);
    return true;
  }
  end(received: BodyExtent, done: BodyEnd): void {
    done(received, Buffer.concat(this.#chunks).toString('utf8').slice(0, TEXT_BYTES));
  }
  discard(): void {}
  pause(): void {}
  resume(): void {}
}
