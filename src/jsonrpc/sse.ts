import { Pieces } from './pieces.js';
import { Rope } from './rope.js';

/** One event of a stream, as the HTML standard's "interpretation" section has it, but in bytes. */
export interface SseEvent {
  /** Name of the event; '' for `message`, whether written out or left out. */
  type: string;
  /** The data lines, joined with LF. Length 0 for an empty data line, and for an event that only sets an id. */
  data: Buffer;
  /** The `id` field of this very event; undefined if it has none. */
  id: string | undefined;
}

export interface SseHandlers {
  onEvent(event: SseEvent): void;
  onRetry?(ms: number): void;
  onComment?(): void;
  /** Most bytes of data in one event, and of an unfinished line. */
  maxEventBytes: number;
}

/** The peer sends an event larger than was agreed; the stream cannot be read any further. */
export class SseOverflowError extends Error {
  readonly maxEventBytes: number;

  constructor(maxEventBytes: number) {
    super(`An event of the stream is larger than ${maxEventBytes} bytes`);
    this.name = 'SseOverflowError';
    this.maxEventBytes = maxEventBytes;
  }
}

const LF = 0x0a;
const CR = 0x0d;
const SPACE = 0x20;
const COLON = 0x3a;
const EMPTY = Buffer.alloc(0);
const LINE_FEED = Buffer.from('\n');

/** An unfinished line also holds the field's name; this much is not counted against the limit. */
const FIELD_ALLOWANCE = 16;

const FIELDS = ['data', 'event', 'id', 'retry'] as const;
type Field = (typeof FIELDS)[number];

/**
 * Takes a stream of server-sent events apart, however it is cut into chunks. Lines end in LF, CRLF or CR, mixed at
 * will; a line that ends in CR counts at once, not when the next byte shows that no LF follows.
 *
 * The `data` of an event may share memory with the chunk it came in; chunks must not be written to afterwards.
 */
export class SseDecoder {
  readonly #handlers: SseHandlers;
  /** What has come of the line that the last chunk ended in. */
  readonly #line = new Pieces();
  /** The data so far: one line is kept as it came, more are joined in `#moreData`. */
  #data: Buffer | undefined;
  readonly #moreData = new Pieces();
  #type = '';
  #id: string | undefined;
  #lastEventId = '';
  #afterCr = false;
  #atStart = true;

  constructor(handlers: SseHandlers) {
    this.#handlers = handlers;
  }

  /** The id to resume the stream after: that of the last event that came whole; '' if none had one. */
  get lastEventId(): string {
    return this.#lastEventId;
  }

  /**
   * Takes the next bytes of the stream and calls the handlers for what they complete.
   *
   * @throws SseOverflowError if an event exceeds `maxEventBytes`
   */
  push(chunk: Buffer): void {
    let pos = 0;
    if (this.#afterCr && chunk.length > 0) {
      this.#afterCr = false;
      if (chunk[0] === LF) pos = 1;
    }
    let nextCr = chunk.indexOf(CR, pos);
    let nextLf = chunk.indexOf(LF, pos);
    while (nextCr !== -1 || nextLf !== -1) {
      const atCr = nextCr !== -1 && (nextLf === -1 || nextCr < nextLf);
      const lineEnd = atCr ? nextCr : nextLf;
      this.#endLine(chunk, pos, lineEnd);
      pos = lineEnd + 1;
      if (atCr) {
        if (pos === chunk.length) this.#afterCr = true;
        else if (nextLf === pos) pos++;
        nextCr = chunk.indexOf(CR, pos);
      }
      if (nextLf !== -1 && nextLf < pos) nextLf = chunk.indexOf(LF, pos);
    }
    if (pos < chunk.length) {
      this.#line.push(chunk, pos, chunk.length);
      this.#limit(this.#line.byteLength - FIELD_ALLOWANCE);
    }
  }

  /** The stream has ended. An event that lacks its blank line is delivered if it has data. */
  end(): void {
    if (this.#line.byteLength > 0) this.#endLine(EMPTY, 0, 0);
    if (this.#data !== undefined) this.#dispatch();
  }

  #endLine(chunk: Buffer, start: number, end: number): void {
    if (this.#line.byteLength > 0) {
      this.#line.push(chunk, start, end);
      const line = this.#line.take();
      this.#takeLine(line, 0, line.length);
    } else {
      this.#takeLine(chunk, start, end);
    }
  }

  #takeLine(bytes: Buffer, start: number, end: number): void {
    if (this.#atStart) {
      this.#atStart = false;
      if (end - start >= 3 && bytes[start] === 0xef && bytes[start + 1] === 0xbb && bytes[start + 2] === 0xbf)
        start += 3;
    }
    if (start === end) this.#dispatch();
    else if (bytes[start] === COLON) this.#handlers.onComment?.();
    else this.#takeField(bytes, start, end);
  }

  #takeField(bytes: Buffer, start: number, end: number): void {
    const field = fieldAt(bytes, start, end);
    if (field === undefined) return;
    start += field.length;
    if (start < end) start++;
    if (start < end && bytes[start] === SPACE) start++;
    if (field === 'data') {
      this.#takeData(bytes, start, end);
      return;
    }
    const value = bytes.toString('utf8', start, end);
    if (field === 'event') this.#type = value === 'message' ? '' : value;
    else if (field === 'id' && !value.includes('\0')) this.#id = value;
    else if (field === 'retry' && /^\d+$/.test(value)) this.#handlers.onRetry?.(Number(value));
  }

  #takeData(bytes: Buffer, start: number, end: number): void {
    if (this.#data === undefined) {
      this.#data = start === end ? EMPTY : bytes.subarray(start, end);
      this.#limit(this.#data.length);
      return;
    }
    if (this.#moreData.byteLength === 0) this.#moreData.push(this.#data, 0, this.#data.length);
    this.#moreData.push(LINE_FEED, 0, 1);
    this.#moreData.push(bytes, start, end);
    this.#limit(this.#moreData.byteLength);
  }

  #dispatch(): void {
    const type = this.#type;
    const id = this.#id;
    const data = this.#moreData.byteLength > 0 ? this.#moreData.take() : this.#data;
    this.#type = '';
    this.#id = undefined;
    this.#data = undefined;
    if (id !== undefined) this.#lastEventId = id;
    if (data !== undefined) this.#handlers.onEvent({ type, data, id });
    // The standard drops an event without data; MCP servers send one to make the client know an id to resume from.
    else if (id !== undefined) this.#handlers.onEvent({ type, data: EMPTY, id });
  }

  #limit(byteLength: number): void {
    if (byteLength > this.#handlers.maxEventBytes) throw new SseOverflowError(this.#handlers.maxEventBytes);
  }
}

/** The known field that the line is named after; the name ends with the line or at a colon. */
function fieldAt(bytes: Buffer, start: number, end: number): Field | undefined {
  for (const field of FIELDS) {
    const after = start + field.length;
    if (after > end || (after < end && bytes[after] !== COLON)) continue;
    let i = 0;
    while (i < field.length && bytes[start + i] === field.charCodeAt(i)) i++;
    if (i === field.length) return field;
  }
  return undefined;
}

/** Events up to this size are flattened at once, which is cheaper than looking at them piece by piece. */
const FLAT_BYTES = 64 * 1024;

/**
 * One event with one data line. The frame's line ends, which valid JSON has only between tokens, become spaces.
 *
 * @param frame JSON text
 * @param opts `event` defaults to `message`; neither value may hold a line end
 */
export function sseEvent(frame: Rope, opts?: { event?: string; id?: string }): Rope {
  const event = new Rope();
  if (opts?.event === undefined) event.push('event: message\n');
  else event.push('event: ').push(opts.event).push('\n');
  if (opts?.id !== undefined) event.push('id: ').push(opts.id).push('\n');
  event.push('data: ');
  if (frame.byteLength > FLAT_BYTES) {
    for (const piece of frame.pieces)
      event.push(hasLineEnd(piece) ? blankLineEnds(Buffer.from(piece)) : piece);
    return event.push('\n\n');
  }
  event.push(frame).push('\n\n');
  // The head makes the rope more than one piece, so that this buffer is its own and may be changed.
  const bytes = event.toBuffer();
  const line = bytes.subarray(bytes.length - 2 - frame.byteLength, bytes.length - 2);
  if (hasLineEnd(line)) blankLineEnds(line);
  return event;
}

function hasLineEnd(bytes: Buffer): boolean {
  return bytes.indexOf(LF) !== -1 || bytes.indexOf(CR) !== -1;
}

function blankLineEnds(bytes: Buffer): Buffer {
  for (let i = 0; i < bytes.length; i++) if (bytes[i] === LF || bytes[i] === CR) bytes[i] = SPACE;
  return bytes;
}

/** A comment, which keeps a connection from looking idle. @param text must not hold a line end */
export function sseComment(text = ''): string {
  return `:${text === '' ? '' : ` ${text}`}\n\n`;
}
