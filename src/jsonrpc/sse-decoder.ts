import { BufferList } from './buffer-list.js';

/** One event of a stream, as in the HTML standard, section "Interpreting an event stream", but in bytes. */
export interface SseEvent {
  /** Name of the event; '' for `message`, both where it is written and where it is left out. */
  type: string;
  /** The data lines, joined with LF. Length 0 for an empty data line, and for an event that only sets an id. */
  data: Buffer;
  /** The `id` field of this event; undefined if it has none. */
  id: string | undefined;
}

export interface SseHandlers {
  onEvent(event: SseEvent): void;
  onRetry?(ms: number): void;
  onComment?(): void;
  /** Limit in bytes for the data of one event, and for an unfinished line. */
  maxEventBytes: number;
}

/** An event exceeds `maxEventBytes`; the stream cannot be read any further. */
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

/** Bytes of an unfinished line that do not count against the limit: it also holds the name of the field. */
const FIELD_ALLOWANCE = 16;

const FIELDS = ['data', 'event', 'id', 'retry'] as const;
type Field = (typeof FIELDS)[number];

/**
 * Parses a stream of server-sent events from chunks of any size. Lines end in LF, CRLF or CR, also mixed. A line that
 * ends in CR is processed at once, without waiting for the next byte to show whether LF follows.
 *
 * The `data` of an event may share memory with the chunk that held it; callers must not write to a chunk afterwards.
 */
export class SseDecoder {
  readonly #handlers: SseHandlers;
  /** The unfinished line at the end of the last chunk. */
  readonly #line = new BufferList();
  /** The first data line of the event; more lines are joined in `#moreData`. */
  #data: Buffer | undefined;
  readonly #moreData = new BufferList();
  #type = '';
  #id: string | undefined;
  #lastEventId = '';
  #afterCr = false;
  #atStart = true;

  constructor(handlers: SseHandlers) {
    this.#handlers = handlers;
  }

  /** The id to resume the stream after: that of the last complete event with an id; '' if there was none. */
  get lastEventId(): string {
    return this.#lastEventId;
  }

  /**
   * Reads the next bytes of the stream and calls the handlers for each event that they complete.
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
      this.#checkSize(this.#line.byteLength - FIELD_ALLOWANCE);
    }
  }

  /** Ends the stream. An event without its blank line is delivered if it has data. */
  end(): void {
    if (this.#line.byteLength > 0) this.#endLine(EMPTY, 0, 0);
    if (this.#data !== undefined) this.#dispatch();
  }

  #endLine(chunk: Buffer, start: number, end: number): void {
    if (this.#line.byteLength > 0) {
      this.#line.push(chunk, start, end);
      const line = this.#line.take();
      this.#readLine(line, 0, line.length);
    } else {
      this.#readLine(chunk, start, end);
    }
  }

  #readLine(bytes: Buffer, start: number, end: number): void {
    if (this.#atStart) {
      this.#atStart = false;
      if (end - start >= 3 && bytes[start] === 0xef && bytes[start + 1] === 0xbb && bytes[start + 2] === 0xbf)
        start += 3;
    }
    if (start === end) this.#dispatch();
    else if (bytes[start] === COLON) this.#handlers.onComment?.();
    else this.#readField(bytes, start, end);
  }

  #readField(bytes: Buffer, start: number, end: number): void {
    const field = fieldAt(bytes, start, end);
    if (field === undefined) return;
    start += field.length;
    if (start < end) start++;
    if (start < end && bytes[start] === SPACE) start++;
    if (field === 'data') {
      this.#readData(bytes, start, end);
      return;
    }
    const value = bytes.toString('utf8', start, end);
    if (field === 'event') this.#type = value === 'message' ? '' : value;
    else if (field === 'id' && !value.includes('\0')) this.#id = value;
    else if (field === 'retry' && /^\d+$/.test(value)) this.#handlers.onRetry?.(Number(value));
  }

  #readData(bytes: Buffer, start: number, end: number): void {
    if (this.#data === undefined) {
      this.#data = start === end ? EMPTY : bytes.subarray(start, end);
      this.#checkSize(this.#data.length);
      return;
    }
    if (this.#moreData.byteLength === 0) this.#moreData.push(this.#data, 0, this.#data.length);
    this.#moreData.push(LINE_FEED, 0, 1);
    this.#moreData.push(bytes, start, end);
    this.#checkSize(this.#moreData.byteLength);
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
    // The standard drops an event without data; MCP servers send one to give the client an id to resume from.
    else if (id !== undefined) this.#handlers.onEvent({ type, data: EMPTY, id });
  }

  #checkSize(byteLength: number): void {
    if (byteLength > this.#handlers.maxEventBytes) throw new SseOverflowError(this.#handlers.maxEventBytes);
  }
}

/** The known field that the line sets; its name ends at a colon or at the end of the line. */
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
