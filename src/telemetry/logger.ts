import { type DestinationStream, destination, type Logger, pino } from 'pino';

/** Lines are gathered up to this many characters before they are written, or until the next tick of the flush timer. */
const GATHERED_CHARS = 32_000;
const FLUSH_MS = 250;

/** Members that may hold a credential, wherever they are logged. */
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
   * For the lines of exchanges alone: their members are picked one by one and none can hold a credential, so that the
   * search for one, which costs more than the line itself, is left out.
   */
  readonly exchanges: Logger;
  /** Writes what is gathered; for the end of the process. */
  flush(): void;
}

/** The log on standard output, as JSON lines. */
export function createLogger(level: string): GatewayLogger {
  const lines = new LineGatherer();
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

/** The time of a line. Many lines come within one millisecond, and so long a number takes its time to write. */
function timestamp(): string {
  const now = Date.now();
  if (now !== timestampAt) {
    timestampAt = now;
    timestampText = `,"time":${now}`;
  }
  return timestampText;
}

/**
 * Hands lines on in bulk. Pino's destination gathers them as well, but measures all that it has with each line that
 * comes, which costs twice as much as the line itself.
 */
class LineGatherer implements DestinationStream {
  readonly #stream = destination({ dest: 1, sync: false });
  #lines: string[] = [];
  #length = 0;

  write(line: string): void {
    this.#lines.push(line);
    this.#length += line.length;
    if (this.#length >= GATHERED_CHARS) this.flush();
  }

  flush(): void {
    if (this.#length === 0) return;
    const text = this.#lines.join('');
    this.#lines = [];
    this.#length = 0;
    this.#stream.write(text);
  }

  /** Writes all before it returns. */
  flushSync(): void {
    this.flush();
    this.#stream.flushSync();
  }
}
