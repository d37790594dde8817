import { stripVTControlCharacters } from 'node:util';
import { LogRate } from './log-rate.js';

/** The logger that records about processes are written to. */
export interface ProcessLog {
  debug(record: object, message: string): void;
  warn(record: object, message: string): void;
}

/** A JSON-RPC message within other text. Its contents are the caller's and are not logged. */
const MESSAGE = /\{\s*"(jsonrpc|id|result|error|method|params)"\s*:.*/s;
/** Longest text in a log record. */
const SHOWN_CHARS = 200;
/** Lines of standard error that are kept for the record of an unexpected end. */
const LAST_LINES = 10;
/** Lines of standard error of one process that are logged in each window; the others are counted. */
const MAX_LINES = 100;
/** Processes of one backend whose skipped output is logged in each window. */
const MAX_NOISY = 5;

/** Words in lines of standard error that report a problem. Most servers write everything there, each message included. */
const PROBLEM = /\b(error|fatal|critical|panic|exception|traceback|unhandled)\b/i;

/** Limits the records about skipped output; shared by the processes of a backend. */
export function skippedOutputRate(): LogRate {
  return new LogRate(MAX_NOISY);
}

/** Logs the life and the output of one process. */
export class ChildLog {
  readonly #log: ProcessLog;
  readonly #skippedRate: LogRate;
  readonly #lineRate = new LogRate(MAX_LINES);
  readonly #lastLines: string[] = [];
  #pid: number | undefined;
  #skipped = 0;
  #unlogged = 0;

  /** @param skippedRate see {@link skippedOutputRate} */
  constructor(log: ProcessLog, skippedRate: LogRate) {
    this.#log = log;
    this.#skippedRate = skippedRate;
  }

  started(pid: number | undefined): void {
    this.#pid = pid;
    if (pid !== undefined) this.#log.debug({ pid }, 'started a process');
  }

  errorLine(line: string): void {
    const stderr = shown(line);
    if (stderr === '') return;
    this.#lastLines.push(stderr);
    if (this.#lastLines.length > LAST_LINES) this.#lastLines.shift();
    if (!this.#lineRate.allows()) this.#unlogged++;
    else if (PROBLEM.test(stderr)) this.#log.warn({ pid: this.#pid, stderr }, 'standard error of a process');
    else this.#log.debug({ pid: this.#pid, stderr }, 'standard error of a process');
  }

  /** A line of standard output that is not a message. */
  skippedLine(line: Buffer): void {
    this.#skipped++;
    if (this.#skipped > 1 || !this.#skippedRate.allows()) return;
    const stdout = shown(line.toString('utf8', 0, 4 * SHOWN_CHARS).replace(MESSAGE, '{…'));
    this.#log.warn(
      { pid: this.#pid, stdout },
      'skipped a line of standard output that is not a message; further ones are only counted',
    );
  }

  /** A line above the limit that is no response to a request in flight. */
  oversizedLine(bytes: number): void {
    this.#skipped++;
    if (this.#skippedRate.allows())
      this.#log.warn({ pid: this.#pid, bytes }, 'skipped a line of standard output that is too long');
  }

  /** The process runs but is unusable, and is stopped. */
  unusable(reason: string): void {
    this.#log.warn({ pid: this.#pid, reason, stderr: this.#lastLines }, 'stopping an unusable process');
  }

  /** The process ended after the gateway had stopped it. */
  ended(reason: string): void {
    this.#log.debug({ pid: this.#pid, reason, ...this.#counts }, 'a process has ended');
  }

  endedUnexpectedly(reason: string): void {
    if (this.#pid === undefined) this.#log.warn({ reason }, 'a process could not be started');
    else
      this.#log.warn(
        { pid: this.#pid, reason, ...this.#counts, stderr: this.#lastLines },
        'a process ended unexpectedly',
      );
  }

  get #counts(): object {
    return {
      ...(this.#skipped > 0 && { skippedLines: this.#skipped }),
      ...(this.#unlogged > 0 && { unloggedErrorLines: this.#unlogged }),
    };
  }
}

function shown(text: string): string {
  const plain = stripVTControlCharacters(text)
    .replace(/\p{Cc}/gu, ' ')
    .trim();
  return plain.length > SHOWN_CHARS ? `${plain.slice(0, SHOWN_CHARS)}…` : plain;
}
