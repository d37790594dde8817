import { stripVTControlCharacters } from 'node:util';

/** Where what is to be known of a process is told: members of a log record, and words that go with it. */
export interface ProcessLog {
  debug(record: object, message: string): void;
  warn(record: object, message: string): void;
}

/** A message that is none for what stands around it: what it says is nobody's business. */
const MESSAGE = /\{\s*"(jsonrpc|id|result|error|method|params)"\s*:.*/s;
/** What of a text is logged. */
const SHOWN_CHARS = 200;
/** The last lines of standard error, to be told when the process ends by itself. */
const LAST_LINES = 10;
/** Lines of standard error that one process has logged in any stretch of time; the others are counted. */
const MAX_LINES = 100;
const STRETCH_MS = 10_000;
/** Of processes that come and go, so many have their noise logged in such a stretch. */
const MAX_NOISY = 5;

/**
 * Words with which lines of standard error tell that something is wrong. Most servers write everything there, also what
 * they are asked and what they answer.
 */
const BAD_NEWS = /\b(error|fatal|critical|panic|exception|traceback|unhandled)\b/i;

/** Lets through so many of a kind in any stretch of time. */
export class Rate {
  readonly #max: number;
  #count = 0;
  #since = Number.NEGATIVE_INFINITY;

  constructor(max: number) {
    this.#max = max;
  }

  take(): boolean {
    const now = performance.now();
    if (now - this.#since > STRETCH_MS) {
      this.#since = now;
      this.#count = 0;
    }
    return ++this.#count <= this.#max;
  }
}

/** Of one backend: how many of its processes may tell of their noise. */
export function noiseRate(): Rate {
  return new Rate(MAX_NOISY);
}

/** The log of one process. */
export class ChildLog {
  readonly #log: ProcessLog;
  readonly #noisy: Rate;
  readonly #lines = new Rate(MAX_LINES);
  readonly #last: string[] = [];
  #pid: number | undefined;
  #noise = 0;
  #unlogged = 0;

  /** @param noisy shared by the processes of a backend */
  constructor(log: ProcessLog, noisy: Rate) {
    this.#log = log;
    this.#noisy = noisy;
  }

  started(pid: number | undefined): void {
    this.#pid = pid;
    if (pid !== undefined) this.#log.debug({ pid }, 'started a process');
  }

  errorLine(line: string): void {
    const stderr = shown(line);
    if (stderr === '') return;
    this.#last.push(stderr);
    if (this.#last.length > LAST_LINES) this.#last.shift();
    if (!this.#lines.take()) this.#unlogged++;
    else if (BAD_NEWS.test(stderr))
      this.#log.warn({ pid: this.#pid, stderr }, 'standard error of the process');
    else this.#log.debug({ pid: this.#pid, stderr }, 'standard error of the process');
  }

  /** A line of standard output that is no message. */
  noise(line: Buffer): void {
    this.#noise++;
    if (this.#noise > 1 || !this.#noisy.take()) return;
    const stdout = shown(line.toString('utf8', 0, 4 * SHOWN_CHARS).replace(MESSAGE, '{…'));
    this.#log.warn(
      { pid: this.#pid, stdout },
      'skipped a line of standard output that is no message; further ones are counted',
    );
  }

  /** A line above the limit that answers nobody. */
  oversized(bytes: number): void {
    this.#noise++;
    if (this.#noisy.take())
      this.#log.warn({ pid: this.#pid, bytes }, 'skipped a line of standard output that is too long');
  }

  /** The process runs, and is ended since it is of no use. */
  givenUp(reason: string): void {
    this.#log.warn({ pid: this.#pid, reason, stderr: this.#last }, 'the process is given up');
  }

  ended(reason: string, wanted: boolean): void {
    const counts = {
      ...(this.#noise > 0 && { skippedLines: this.#noise }),
      ...(this.#unlogged > 0 && { unloggedErrorLines: this.#unlogged }),
    };
    if (wanted) this.#log.debug({ pid: this.#pid, reason, ...counts }, 'the process has ended');
    else if (this.#pid === undefined) this.#log.warn({ reason }, 'the process could not be started');
    else
      this.#log.warn(
        { pid: this.#pid, reason, ...counts, stderr: this.#last },
        'the process ended by itself',
      );
  }
}

function shown(text: string): string {
  const plain = stripVTControlCharacters(text)
    .replace(/\p{Cc}/gu, ' ')
    .trim();
  return plain.length > SHOWN_CHARS ? `${plain.slice(0, SHOWN_CHARS)}…` : plain;
}
