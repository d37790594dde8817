import type { Transform } from 'node:stream';
import { contentCoding } from '../body/content-coding.js';
import type { BodyEnd, BodyExtent, BodyOwner, BodyReader } from './body-reader.js';
import { TransportError, transportErrorFrom } from './errors.js';

/** Decompresses a body for another reader. Some backends compress although the request asks for `identity`. */
export class DecodingReader implements BodyReader {
  readonly kind: BodyReader['kind'];
  readonly #reader: BodyReader;
  readonly #decoder: Transform;
  readonly #owner: BodyOwner;
  #discarded = false;

  /**
   * @param encoding `Content-Encoding` in lower case
   * @throws TransportError `unusable` for an unknown encoding
   */
  constructor(encoding: string, reader: BodyReader, owner: BodyOwner) {
    const coding = contentCoding(encoding);
    if (coding === undefined) throw new TransportError('unusable', `unknown Content-Encoding ${encoding}`);
    this.kind = reader.kind;
    this.#reader = reader;
    this.#owner = owner;
    this.#decoder = coding.open(true);
    this.#decoder.on('data', (chunk: Buffer) => this.#unlessDiscarded(() => reader.push(chunk)));
    this.#decoder.on('error', (error) =>
      owner.fail(new TransportError('unusable', `bad ${encoding} body: ${error.message}`)),
    );
  }

  push(chunk: Buffer): boolean {
    if (this.#decoder.write(chunk)) return true;
    this.#decoder.once('drain', () => this.#owner.onDrain());
    return false;
  }

  end(received: BodyExtent, done: BodyEnd): void {
    this.#decoder.once('end', () => this.#unlessDiscarded(() => this.#reader.end(received, done)));
    this.#decoder.end();
  }

  discard(): void {
    this.#discarded = true;
    this.#decoder.destroy();
    this.#reader.discard();
  }

  pause(): void {
    this.#decoder.pause();
  }

  resume(): void {
    this.#decoder.resume();
  }

  /** Reports errors to the owner: nothing above the decoder's own events catches them. */
  #unlessDiscarded(work: () => void): void {
    if (this.#discarded) return;
    try {
      work();
    } catch (error) {
      this.#owner.fail(transportErrorFrom(error));
    }
  }
}
