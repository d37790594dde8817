/** Buffers shorter than this are copied into blocks: a view for each byte of a slow peer would cost more than the bytes. */
const SMALL = 2048;
const BLOCK = 16 * 1024;

/** Collects bytes that arrive in chunks and returns them as one buffer. */
export class BufferList {
  #parts: Buffer[] = [];
  #byteLength = 0;
  /** Holds copies of small chunks. Bytes `[#from, #to)` follow `#parts`; the bytes before are in views in `#parts`. */
  #block: Buffer | undefined;
  #from = 0;
  #to = 0;

  get byteLength(): number {
    return this.#byteLength;
  }

  /** Appends bytes `[start, end)`; a large chunk is not copied and must not change before {@link take}. */
  push(bytes: Buffer, start: number, end: number): void {
    const length = end - start;
    this.#byteLength += length;
    if (length >= SMALL) {
      this.#closeRun();
      this.#parts.push(bytes.subarray(start, end));
      return;
    }
    if (this.#block === undefined || this.#to + length > BLOCK) {
      this.#closeRun();
      this.#block = Buffer.allocUnsafeSlow(BLOCK);
      this.#from = 0;
      this.#to = 0;
    }
    bytes.copy(this.#block, this.#to, start, end);
    this.#to += length;
  }

  /** Returns all bytes in one buffer and empties the list. */
  take(): Buffer {
    this.#closeRun();
    const parts = this.#parts;
    const only = parts.length === 1 ? parts[0] : undefined;
    const whole = only ?? Buffer.concat(parts, this.#byteLength);
    this.#parts = [];
    this.#byteLength = 0;
    return whole;
  }

  #closeRun(): void {
    if (this.#block === undefined || this.#from === this.#to) return;
    this.#parts.push(this.#block.subarray(this.#from, this.#to));
    this.#from = this.#to;
  }
}
