import { BodyCollector } from '../body/body-collector.js';
import { SseDecoder } from '../jsonrpc/index.js';
import type { BodyEnd, BodyExtent, BodyReader, MessageSink } from './body-reader.js';

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

/** Keeps the beginning of any other body. */
export class TextReader implements BodyReader {
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
  end(received: BodyExtent, done: BodyEnd): void {
    done(received, Buffer.concat(this.#chunks).toString('utf8').slice(0, TEXT_BYTES));
  }
  discard(): void {}
  pause(): void {}
  resume(): void {}
}
