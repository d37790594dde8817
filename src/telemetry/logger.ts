import { write } from 'node:fs';
import { type Logger, pino } from 'pino';
import { LogOutput, type WriteBytes } from './log-output.js';

const STDOUT = 1;
/** `level` of a line that warns, as pino writes it. */
const WARN = 40;

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
  /** Writes what is collected, within the time in milliseconds; called before the process ends. */
  close(limitMs: number): Promise<void>;
}

/** The log on standard output, as JSON lines. */
export function createLogger(level: string): GatewayLogger {
  const output = new LogOutput({ write: writeOutput(), lossLine });
  return {
    log: pino({ level, base: null, timestamp, redact: REDACTED }, output),
    exchanges: pino({ level, base: null, timestamp }, output),
    close: (limitMs) => output.close(limitMs),
  };
}

function writeOutput(): WriteBytes {
  // Its getter makes a pipe non-blocking: a write that blocks would keep the process from ending.
  void process.stdout;
  return (bytes, done) => write(STDOUT, bytes, done);
}

function lossLine(lost: number): string {
  return `{"level":${WARN}${timestamp()},"lost":${lost},"msg":"log lines were lost: standard output was full or not read"}\n`;
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
