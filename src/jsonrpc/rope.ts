/**
 * JSON text built from slices of received buffers and strings of the gateway's own. A small text is joined in a string
 * with one character for each byte of its UTF-8 (`latin1`): this is the cheapest way to build a message, and Node writes
 * such a string together with the HTTP headers. Large slices are not copied before {@link Rope.toBuffer}; they keep
 * their buffer in memory.
 */

/** A part of a buffer, which several ropes may share. */
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

/** Largest slice in bytes that is copied into the string. */
const JOINED_SLICE = 4 * 1024;
/** Largest rope in bytes to which slices are still copied. */
const JOINED_TEXT = 64 * 1024;

/** Up to this length a loop over the characters is faster than a native call. */
const SHORT = 48;

/** One-character strings by code. */
const CHARACTERS = Array.from({ length: 256 }, (_, code) => String.fromCharCode(code));

const EMPTY: Buffer = Buffer.alloc(0);

export class Rope {
  /** The first part, once the rope holds a large slice: slices, and the texts between them. */
  #parts: (string | Slice)[] | undefined;
  /** The text after `#parts`, one character for each byte. */
  #text = '';
  /** The slice at the end. It may still grow: the bytes that follow it in its buffer are often pushed next. */
  #bytes: Buffer = EMPTY;
  #start = 0;
  #end = 0;
  #byteLength = 0;

  /** Length in bytes of UTF-8. */
  get byteLength(): number {
    return this.#byteLength;
  }

  /** The content as buffers, in order; large slices are not copied. */
  get chunks(): readonly Buffer[] {
    const chunks: Buffer[] = (this.#parts ?? []).map((part) =>
      typeof part === 'string' ? Buffer.from(part, 'latin1') : viewOf(part),
    );
    if (this.#text !== '') chunks.push(Buffer.from(this.#text, 'latin1'));
    if (this.#end > this.#start) chunks.push(this.#view());
    return chunks;
  }

  /** Appends a text that the caller knows to be ASCII, such as a literal; it is not checked. */
  pushAscii(text: string): this {
    return this.#pushText(text);
  }

  /** Appends a text, a buffer, or the present content of a rope. */
  push(part: Buffer | string | Rope): this {
    if (typeof part === 'string') return this.#pushText(isAscii(part) ? part : latin1Of(part));
    return part instanceof Rope ? this.#pushRope(part) : this.pushSlice(part, 0, part.length);
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

  /** The content as one buffer: the slice itself if the rope is a single slice, else a copy, which the rope then holds. */
  toBuffer(): Buffer {
    if (this.#parts === undefined && this.#text === '') return this.#view();
    const whole =
      this.#parts === undefined
        ? Buffer.from(this.toLatin1(), 'latin1')
        : Buffer.concat(this.chunks, this.#byteLength);
    this.#parts = undefined;
    this.#text = '';
    this.#bytes = whole;
    this.#start = 0;
    this.#end = whole.length;
    return whole;
  }

  /** The content as a string with one character for each byte, to be written with the encoding `latin1`. */
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
    // Read first: a rope may be pushed onto itself.
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

  /** Ends the slice at the end: a small one is copied into the text, a large one becomes a part. */
  #closeSlice(): void {
    const length = this.#end - this.#start;
    if (length === 0) return;
    // Mostly the closing brace after the last edit, which is not worth a native call.
    if (length === 1) this.#text += CHARACTERS[this.#bytes[this.#start] as number];
    else if (length <= JOINED_SLICE && this.#byteLength <= JOINED_TEXT) {
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
    this.#bytes = EMPTY;
    this.#start = 0;
    this.#end = 0;
  }

  #view(): Buffer {
    return viewOf({ bytes: this.#bytes, start: this.#start, end: this.#end });
  }
}

/** Whether the JSON text of a string is the string in quotes, as for most names; JSON.stringify costs more than this. */
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

/** The UTF-8 of a string, with one character for each byte. */
function latin1Of(text: string): string {
  return Buffer.from(text).toString('latin1');
}

function viewOf({ bytes, start, end }: Slice): Buffer {
  return start === 0 && end === bytes.length ? bytes : bytes.subarray(start, end);
}
