import type { DestinationStream } from 'pino';

/** Lines are collected up to this many characters, or until the next flush. */
const MAX_COLLECTED_CHARS = 32_000;
const FLUSH_MS = 250;
/** Limit of lines that are collected and not written yet; further ones are lost. */
const MAX_PENDING_CHARS = 4 * 1024 * 1024;
/** Pause before another attempt, after the reader was too slow or the disk full. */
const RETRY_MS = 250;

/** Writes some bytes, as `fs.write` does. */
export type WriteBytes = (
  bytes: Buffer,
  done: (error: NodeJS.ErrnoException | null, written: number) => void,
) => void;

/** Errors of a reader that is slow, after which the same bytes are written again. */
const SLOW_READER: ReadonlySet<string | undefined> = new Set(['EAGAIN', 'EWOULDBLOCK', 'EINTR']);

/** Lines that are being written. */
interface Batch {
  readonly bytes: Buffer;
  written: number;
  /** Length of what comes before the lines: the end of a cut line, and the notice of losses. */
  readonly headBytes: number;
  /** The losses that the notice tells of. */
  readonly lost: number;
}

export interface LogOutputOptions {
  readonly write: WriteBytes;
  /** Makes the line that tells how many lines were lost; called once writing works again. */
  readonly lossLine: (lost: number) => string;
}

/**
 * Writes log lines in batches, and never makes the process wait. Lines are lost where the output fails (a full disk, a
 * reader that is gone) and where more are pending than the limit; their number is written once writing works again. Pino's
 * own destination writes for ever to a full disk when it flushes, and measures the whole batch again for each new line,
 * which costs twice as much as the line.
 */
export class LogOutput implements DestinationStream {
  readonly #options: LogOutputOptions;
  readonly #timer: NodeJS.Timeout;
  #lines: string[] = [];
  #length = 0;
  #batch: Batch | undefined;
  #lost = 0;
  /** Whether the output ends in the middle of a line. */
  #cut = false;
  #onIdle: (() => void) | undefined;

  constructor(options: LogOutputOptions) {
    this.#options = options;
    this.#timer = setInterval(() => this.flush(), FLUSH_MS).unref();
  }

  write(line: string): void {
    if (this.#length >= MAX_PENDING_CHARS) {
      this.#lost++;
      return;
    }
    this.#lines.push(line);
    this.#length += line.length;
    if (this.#length >= MAX_COLLECTED_CHARS) this.flush();
  }

  /** Begins to write the collected lines, unless others are being written. */
  flush(): void {
    if (this.#batch !== undefined || (this.#length === 0 && this.#lost === 0)) return;
    const lost = this.#lost;
    const notice = lost === 0 ? '' : this.#options.lossLine(lost);
    const head = Buffer.from(`${this.#cut ? '\n' : ''}${notice}`);
    this.#batch = {
      bytes: Buffer.concat([head, Buffer.from(this.#lines.join(''))]),
      written: 0,
      headBytes: head.length,
      lost,
    };
    this.#lines = [];
    this.#length = 0;
    this.#lost = 0;
    this.#write(this.#batch);
  }

  /** Resolves once every line is written or lost, at the latest after the time in milliseconds. */
  async close(limitMs: number): Promise<void> {
    clearInterval(this.#timer);
    this.flush();
    if (this.#batch === undefined) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, limitMs);
      this.#onIdle = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  #write(batch: Batch): void {
    this.#options.write(batch.bytes.subarray(batch.written), (error, written) => {
      if (error !== null) {
        // A slow reader is waited for, without keeping the process alive.
        if (SLOW_READER.has(error.code)) setTimeout(() => this.#write(batch), RETRY_MS).unref();
        else this.#end(batch);
        return;
      }
      batch.written += written;
      if (batch.written < batch.bytes.length) this.#write(batch);
      else this.#end(batch);
    });
  }

  /** The batch is written, or its rest is lost. */
  #end({ bytes, written, headBytes, lost }: Batch): void {
    this.#batch = undefined;
    if (written > 0) this.#cut = bytes[written - 1] !== LF;
    // The notice of earlier losses is written anew if it was not written whole.
    if (written < headBytes) this.#lost += lost;
    this.#lost += linesIn(bytes.subarray(Math.max(written, headBytes)));
    if (written === bytes.length && this.#length > 0) this.flush();
    if (this.#batch === undefined) this.#onIdle?.();
  }
}

const LF = 10;

function linesIn(bytes: Buffer): number {
  let count = 0;
  for (let at = bytes.indexOf(LF); at !== -1; at = bytes.indexOf(LF, at + 1)) count++;
  return count;
}
