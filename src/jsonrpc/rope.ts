/**
 * JSON text put together from slices of what came in and strings of what the gateway adds. A small text is gathered in
 * a string that has one character for each byte of its UTF-8: of all ways to put a message together this costs the
 * least, and HTTP writes such a string together with the headers. Large slices are not copied until
 * {@link Rope.toBuffer}; they keep the buffer that they point into alive.
 */

/** Part of a buffer, shared between ropes. */
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

/** Slices up to this size are gathered, in ropes up to that size. */
const GATHERED_SLICE = 4 * 1024;
const GATHERED_TEXT = 64 * 1024;

/** Up to this many characters a loop here is faster than a call into the runtime. */
const SHORT = 48;

/** One-character strings by code. */
const CHARACTERS = Array.from({ length: 256 }, (_, code) => String.fromCharCode(code));

const NOTHING: Buffer = Buffer.alloc(0);

export class Rope {
  /** What comes first, if anything is too large to be gathered: slices, and texts between them. */
  #parts: (string | Slice)[] | undefined;
  /** Comes next: one character for each byte. */
  #text = '';
  /** Comes last: a slice that may still grow, since what follows it in its buffer is often pushed next. */
  #bytes: Buffer = NOTHING;
  #start = 0;
  #end = 0;
  #byteLength = 0;

  /** Length of the whole in bytes of UTF-8. */
  get byteLength(): number {
    return this.#byteLength;
  }

  /** The whole in order; large slices are not copied. */
  get pieces(): readonly Buffer[] {
    const pieces: Buffer[] = (this.#parts ?? []).map((part) =>
      typeof part === 'string' ? Buffer.from(part, 'latin1') : viewOf(part),
    );
    if (this.#text !== '') pieces.push(Buffer.from(this.#text, 'latin1'));
    if (this.#end > this.#start) pieces.push(this.#view());
    return pieces;
  }

  /** Appends a text of ASCII characters alone, such as a literal, which are not looked at one by one. */
  pushAscii(text: string): this {
    return this.#pushText(text);
  }

  /** Appends a piece; of a rope, what it holds now. */
  push(piece: Buffer | string | Rope): this {
    if (typeof piece === 'string') return this.#pushText(isAscii(piece) ? piece : bytewise(piece));
    return piece instanceof Rope ? this.#pushRope(piece) : this.pushSlice(piece, 0, piece.length);
  }

  /** Appends the JSON text of a string. */
  pushString(value: string): this {
    return isPlain(value) ? this.#pushText(`"${value}"`) : this.push(JSON.stringify(value));
  }

  /** Appends bytes `[start, end)` of a buffer, which must not change afterwards. */
  pushSlice(bytes: Buffer, start: number, end: number): this {
    if (end <= start) return this;
    if (this.#bytes !== bytes || this.#end !== start) {
      this.#closeSlice();
      this.#bytes = bytes;
      this.#start = start;
    }
    this.#end = end;
    this.#byteLength += end - start;
    return this;
  }

  /**
   * The whole as one buffer: the piece itself if the rope is a single slice, else a copy, made once and then kept
   * in place of the pieces.
   */
  toBuffer(): Buffer {
    if (this.#parts === undefined && this.#text === '') return this.#view();
    const whole =
      this.#parts === undefined
        ? Buffer.from(this.toLatin1(), 'latin1')
        : Buffer.concat(this.pieces, this.#byteLength);
    this.#parts = undefined;
    this.#text = '';
    this.#bytes = whole;
    this.#start = 0;
    this.#end = whole.length;
    return whole;
  }

  /** The whole as a string of one character for each byte, for writers that take the encoding `latin1`. */
  toLatin1(): string {
    if (this.#parts !== undefined) return this.toBuffer().toString('latin1');
    if (this.#text === '') return this.#bytes.toString('latin1', this.#start, this.#end);
    if (this.#end > this.#start) {
      const one = this.#end - this.#start === 1;
      this.#text += one
        ? CHARACTERS[this.#bytes[this.#start] as number]
        : this.#bytes.toString('latin1', this.#start, this.#end);
      this.#forgetSlice();
    }
    return this.#text;
  }

  /** @param text one character for each byte */
  #pushText(text: string): this {
    this.#closeSlice();
    this.#text += text;
    this.#byteLength += text.length;
    return this;
  }

  #pushRope(other: Rope): this {
    // Read before anything is written: a rope may be pushed onto itself.
    const text = other.#text;
    const bytes = other.#bytes;
    const start = other.#start;
    const end = other.#end;
    const count = other.#parts?.length ?? 0;
    for (let i = 0; i < count; i++) {
      const part = other.#parts?.[i] as string | Slice;
      if (typeof part === 'string') this.#pushText(part);
      else this.pushSlice(part.bytes, part.start, part.end);
    }
    if (text !== '') this.#pushText(text);
    return this.pushSlice(bytes, start, end);
  }

  /** Puts the slice that was last behind it all: into the text if it is small, else as a part of its own. */
  #closeSlice(): void {
    const length = this.#end - this.#start;
    if (length === 0) return;
    // What is left behind the last edit is mostly the closing brace, which is not worth a call into the runtime.
    if (length === 1) this.#text += CHARACTERS[this.#bytes[this.#start] as number];
    else if (length <= GATHERED_SLICE && this.#byteLength <= GATHERED_TEXT) {
      this.#text += this.#bytes.toString('latin1', this.#start, this.#end);
    } else {
      this.#parts ??= [];
      if (this.#text !== '') this.#parts.push(this.#text);
      this.#text = '';
      this.#parts.push(new Slice(this.#bytes, this.#start, this.#end));
    }
    this.#forgetSlice();
  }

  #forgetSlice(): void {
    this.#bytes = NOTHING;
    this.#start = 0;
    this.#end = 0;
  }

  #view(): Buffer {
    return viewOf({ bytes: this.#bytes, start: this.#start, end: this.#end });
  }
}

/** The JSON text of a string. */
export function quoted(value: string): string {
  return isPlain(value) ? `"${value}"` : JSON.stringify(value);
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

function isAscii(text: string): boolean {
  if (text.length > SHORT) return Buffer.byteLength(text) === text.length;
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) >= 0x80) return false;
  return true;
}

/** The UTF-8 of a string as one character for each byte. */
function bytewise(text: string): string {
  return Buffer.from(text).toString('latin1');
}

function viewOf({ bytes, start, end }: Slice): Buffer {
  return start === 0 && end === bytes.length ? bytes : bytes.subarray(start, end);
}
