/** A body is longer than its reader takes. */
export class BodyTooLargeError extends Error {
  override readonly name = 'BodyTooLargeError';

  /** @param limit greatest length in bytes */
  constructor(limit: number) {
    super(`body larger than ${limit} bytes`);
  }
}

const EMPTY = Buffer.alloc(0);

/** Bodies of at least this size are collected into one buffer of their announced length. */
const PREALLOCATE_FROM = 64 * 1024;

/**
 * Collects a body of unknown length within a limit. The bytes are held once: a large body of announced length is
 * copied chunk by chunk into its final buffer, and a body of one chunk is that chunk.
 */
export class BodyCollector {
  readonly #limit: number;
  #whole: Buffer | undefined;
  /** The only chunk so far: most bodies come in one. */
  #first: Buffer | undefined;
  #chunks: Buffer[] | undefined;
  #length = 0;

  /**
   * @param limit greatest length in bytes
   * @param announced value of `Content-Length`, if any
   * @throws BodyTooLargeError when the announced length is above the limit
   */
  constructor(limit: number, announced: string | undefined) {
    this.#limit = limit;
    if (announced !== undefined) {
      const length = Number(announced);
      if (length > limit) throw new BodyTooLargeError(limit);
      if (length >= PREALLOCATE_FROM) this.#whole = Buffer.allocUnsafeSlow(length);
    }
  }

  /** @throws BodyTooLargeError */
  push(chunk: Buffer): void {
    const length = this.#length + chunk.length;
    if (length > this.#limit) throw new BodyTooLargeError(this.#limit);
    if (this.#whole !== undefined) {
      if (length <= this.#whole.length) {
        chunk.copy(this.#whole, this.#length);
        this.#length = length;
        return;
      }
      this.#chunks = [this.#whole.subarray(0, this.#length)];
      this.#whole = undefined;
    }
    if (this.#chunks !== undefined) this.#chunks.push(chunk);
    else if (this.#first === undefined) this.#first = chunk;
    else this.#chunks = [this.#first, chunk];
    this.#length = length;
  }

  /** The body so far. */
  take(): Buffer {
    if (this.#whole !== undefined) return this.#whole.subarray(0, this.#length);
    const whole = this.#chunks === undefined ? this.#first : Buffer.concat(this.#chunks, this.#length);
    this.#first = undefined;
    this.#chunks = undefined;
    return whole ?? EMPTY;
  }
}
