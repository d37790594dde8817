/**
 * JSON text in pieces: slices of what came in and strings of what the gateway adds. Nothing is copied until
 * {@link Rope.toBuffer}; slices keep the buffer that they point into alive.
 */

/** Part of a buffer, shared between ropes. Kept as numbers: a `Buffer` view of each slice would cost more than copying most of them. */
class Slice {
  readonly bytes: Buffer;
  readonly start: number;
  readonly end: number;

  constructor(bytes: Buffer, start: number, end: number) {
    this.bytes = bytes;
    this.start = start;
    this.end = end;
  }
}

/** Up to this many bytes or characters a loop here is faster than a call into the runtime. */
const SHORT = 48;

export class Rope {
  #parts: (string | Slice)[] = [];
  #byteLength = 0;

  /** Length of the whole in bytes of UTF-8. */
  get byteLength(): number {
    return this.#byteLength;
  }

  /** The pieces in order. */
  get pieces(): readonly (Buffer | string)[] {
    return this.#parts.map((part) => (typeof part === 'string' ? part : viewOf(part)));
  }

  /** Appends a piece; of a rope, what it holds now. */
  push(piece: Buffer | string | Rope): this {
    if (typeof piece === 'string') {
      if (piece.length > 0) {
        this.#parts.push(piece);
        this.#byteLength += Buffer.byteLength(piece);
      }
      return this;
    }
    if (!(piece instanceof Rope)) return this.pushSlice(piece, 0, piece.length);
    // By count: a rope may be pushed onto itself.
    const count = piece.#parts.length;
    for (let i = 0; i < count; i++) {
      this.#parts.push(piece.#parts[i] as string | Slice);
    }
    this.#byteLength += piece.#byteLength;
    return this;
  }

  /** Appends the JSON text of a string. */
  pushString(value: string): this {
    return isPlain(value) ? this.push('"').push(value).push('"') : this.push(JSON.stringify(value));
  }

  /** Appends bytes `[start, end)` of a buffer, which must not change afterwards. */
  pushSlice(bytes: Buffer, start: number, end: number): this {
    if (end <= start) return this;
    this.#byteLength += end - start;
    const last = this.#parts.length - 1;
    const before = this.#parts[last];
    if (before instanceof Slice && before.bytes === bytes && before.end === start) {
      this.#parts[last] = new Slice(bytes, before.start, end);
    } else {
      this.#parts.push(new Slice(bytes, start, end));
    }
    return this;
  }

  /**
   * The whole as one buffer: the piece itself if the rope is a single slice, else a copy, made once and then kept
   * in place of the pieces.
   */
  toBuffer(): Buffer {
    const only = this.#parts.length === 1 ? this.#parts[0] : undefined;
    if (only instanceof Slice) return viewOf(only);
    const target = Buffer.allocUnsafe(this.#byteLength);
    let at = 0;
    for (const part of this.#parts) {
      at = typeof part === 'string' ? writeString(target, at, part) : writeSlice(target, at, part);
    }
    this.#parts = [new Slice(target, 0, target.length)];
    return target;
  }
}

/** Whether the string's JSON text is just the string in quotes. Names are; JSON.stringify costs more than the look. */
function isPlain(value: string): boolean {
  if (value.length > SHORT) return false;
  for (let i = 0; i < value.length; i++) {
    const code = value.charCodeAt(i);
    if (code < 0x20 || code > 0x7e || code === 0x22 || code === 0x5c) return false;
  }
  return true;
}

function viewOf(slice: Slice): Buffer {
  const { bytes, start, end } = slice;
  return start === 0 && end === bytes.length ? bytes : bytes.subarray(start, end);
}

function writeString(target: Buffer, at: number, text: string): number {
  if (text.length > SHORT) return at + target.write(text, at);
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code >= 0x80) return at + target.write(text, at);
    target[at + i] = code;
  }
  return at + text.length;
}

function writeSlice(target: Buffer, at: number, slice: Slice): number {
  const { bytes, start, end } = slice;
  if (end - start > SHORT) return at + bytes.copy(target, at, start, end);
  for (let i = start; i < end; i++) target[at++] = bytes[i] as number;
  return at;
}
