/** Pieces shorter than this are gathered in blocks: a view of each byte of a dribbling peer would be all overhead. */
const SMALL = 2048;
const BLOCK = 16 * 1024;

/** Bytes that come in pieces and are wanted in one, joined once when all are there. */
export class Pieces {
  #parts: Buffer[] = [];
  #byteLength = 0;
  /** Where small pieces are copied to. Bytes `[#from, #to)` follow `#parts`; those before belong to views of it. */
  #block: Buffer | undefined;
  #from = 0;
  #to = 0;

  get byteLength(): number {
    return this.#byteLength;
  }

  /** Appends bytes `[start, end)`; a large piece is not copied and must not change until it has been taken. */
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

  /** All bytes in one buffer; nothing is left. */
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
