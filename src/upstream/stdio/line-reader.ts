const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
/** How much of both ends of a line above the limit is kept; the id is searched there. */
const END_BYTES = 4 * 1024;
const NOTHING: Buffer = Buffer.alloc(0);

/** Both ends of a line above the limit. */
export interface OversizedLine {
  readonly head: Buffer;
  readonly tail: Buffer;
  readonly byteLength: number;
}

export interface LineHandlers {
  /** A line without its line break; never an empty one. */
  onLine(line: Buffer): void;
  onOversized(line: OversizedLine): void;
}

/** Splits a stream of bytes into lines at LF or CRLF. Of a line above the limit only the ends are kept in memory. */
export class LineReader {
  readonly #limit: number;
  readonly #handlers: LineHandlers;
  #pieces: Buffer[] = [];
  #length = 0;
  /** Of a line above the limit. */
  #head: Buffer | undefined;
  #paused = false;
  /** Bytes that arrived before or during the pause. */
  #rest: Buffer | undefined;
  #tail: Buffer = NOTHING;

  /** @param limit greatest length of a line in bytes */
  constructor(limit: number, handlers: LineHandlers) {
    this.#limit = limit;
    this.#handlers = handlers;
  }

  push(chunk: Buffer): void {
    let start = 0;
    while (!this.#paused) {
      const end = chunk.indexOf(LINE_FEED, start);
      if (end === -1) {
        if (start < chunk.length) this.#keep(start === 0 ? chunk : chunk.subarray(start));
        return;
      }
      this.#keep(start === end ? NOTHING : chunk.subarray(start, end));
      this.#finish();
      start = end + 1;
    }
    if (start === chunk.length) return;
    const left = chunk.subarray(start);
    this.#rest = this.#rest === undefined ? left : Buffer.concat([this.#rest, left]);
  }

  /** Holds back lines until {@link LineReader.resume}, including those that have already arrived. */
  pause(): void {
    this.#paused = true;
  }

  resume(): void {
    this.#paused = false;
    const rest = this.#rest;
    this.#rest = undefined;
    if (rest !== undefined) this.push(rest);
  }

  /** No more bytes come. The rest counts as a line without its end. */
  end(): void {
    if (this.#length > 0) this.#finish();
  }

  #keep(piece: Buffer): void {
    if (piece.length === 0) return;
    this.#length += piece.length;
    if (this.#head !== undefined) {
      this.#tail = lastBytes(this.#tail, piece);
      return;
    }
    this.#pieces.push(piece);
    if (this.#length <= this.#limit) return;
    const whole = Buffer.concat(this.#pieces);
    this.#pieces = [];
    // Copies, since a slice keeps the whole buffer alive.
    this.#head = Buffer.from(whole.subarray(0, END_BYTES));
    this.#tail = Buffer.from(whole.subarray(-END_BYTES));
  }

  #finish(): void {
    const byteLength = this.#length;
    const head = this.#head;
    const tail = this.#tail;
    const [first = NOTHING] = this.#pieces;
    const whole = this.#pieces.length > 1 ? Buffer.concat(this.#pieces, byteLength) : first;
    this.#pieces = [];
    this.#length = 0;
    this.#head = undefined;
    this.#tail = NOTHING;
    if (head !== undefined) {
      this.#handlers.onOversized({ head, tail, byteLength });
      return;
    }
    const end = whole.at(-1) === CARRIAGE_RETURN ? whole.length - 1 : whole.length;
    if (end > 0) this.#handlers.onLine(end === whole.length ? whole : whole.subarray(0, end));
  }
}

function lastBytes(before: Buffer, piece: Buffer): Buffer {
  if (piece.length >= END_BYTES) return Buffer.from(piece.subarray(-END_BYTES));
  return Buffer.concat([before, piece]).subarray(-END_BYTES);
}
