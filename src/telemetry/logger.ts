import { type DestinationStream, destination, type Logger, pino } from 'pino';

/** Lines are collected up to this many characters, or until the next flush. */
const MAX_COLLECTED_CHARS = 32_000;
const FLUSH_MS = 250;

/** Members that may hold a credential. */
const REDACTED = [
  'authorization',
  'cookie',
  '*.authorization',
  '*.cookie',
  '*.*.authorization',
  '*.*.cookie',
];

export interface GatewayLogger {
  readonly log: Logger;
  /**
   * For exchange lines only. Their members are picked one by one and cannot hold a credential, so this logger does not
   * redact: the search for credentials costs more than the line.
   */
  readonly exchanges: Logger;
  /** Writes the collected lines synchronously; called before the process ends. */
  flush(): void;
}

/** The log on standard output, as JSON lines. */
export function createLogger(level: string): GatewayLogger {
  const lines = new BatchedLines();
  const log = pino({ level, base: null, timestamp, redact: REDACTED }, lines);
  const exchanges = pino({ level, base: null, timestamp }, lines);
  const timer = setInterval(() => lines.flush(), FLUSH_MS).unref();
  return {
    log,
    exchanges,
    flush: () => {
      clearInterval(timer);
      lines.flushSync();
    },
  };
}

let timestampAt = 0;
let timestampText = '';

/** The `time` member in milliseconds. The text is made once per millisecond, since many lines share one. */
function timestamp(): string {
  const now = Date.now();
  if (now !== timestampAt) {
    timestampAt = now;
    timestampText = `,"time":${now}`;
  }
  return timestampText;
}

/**
 * Writes lines in batches. Pino's own destination can batch too, but measures the whole batch again for each new line,
 * which costs twice as much as the line.
 */
class BatchedLines implements DestinationStream {
  readonly #stream = destination({ dest: 1, sync: false });
  #lines: string[] = [];
  #length = 0;

  write(line: string): void {
    this.#lines.push(line);
    this.#length += line.length;
    if (this.#length >= MAX_COLLECTED_CHARS) this.flush();
  }

  flush(): void {
    if (this.#length === 0) return;
    const text = this.#lines.join('');
    this.#lines = [];
    this.#length = 0;
    this.#stream.write(text);
  }

  /** Returns after everything has been written. */
  flushSync(): void {
    this.flush();
    this.#stream.flushSync();
  }
}
