import { type DestinationStream, destination, type Logger, pino } from 'pino';

/** Lines are gathered up to this size before they are written, or until the next tick of the flush timer. */
const BUFFER_BYTES = 16_000;
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
  const stream = destination({ dest: 1, sync: false, minLength: BUFFER_BYTES });
  const log = pino({ level, base: null, redact: REDACTED }, stream as DestinationStream);
  const exchanges = pino({ level, base: null }, stream as DestinationStream);
  const timer = setInterval(() => stream.flush(), FLUSH_MS).unref();
  return {
    log,
    exchanges,
    flush: () => {
      clearInterval(timer);
      stream.flushSync();
    },
  };
}
