import { type DestinationStream, destination, type Logger, pino } from 'pino';

/** Lines are gathered up to this size before they are written, or until the next tick of the flush timer. */
const BUFFER_BYTES = 4_096;
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
  /** Writes what is gathered; for the end of the process. */
  flush(): void;
}

/** The log on standard output, as JSON lines. */
export function createLogger(level: string): GatewayLogger {
  const stream = destination({ dest: 1, sync: false, minLength: BUFFER_BYTES });
  const log = pino({ level, base: null, redact: REDACTED }, stream as DestinationStream);
  const timer = setInterval(() => stream.flush(), FLUSH_MS).unref();
  return {
    log,
    flush: () => {
      clearInterval(timer);
      stream.flushSync();
    },
  };
}
