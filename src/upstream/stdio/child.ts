import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import type { Readable } from 'node:stream';
import { deferred } from '../../exchange/utils/deferred.js';
import type { Rope } from '../../jsonrpc/index.js';
import { childEnvironment } from './environment.js';
import { LineReader, type OversizedLine } from './line-reader.js';
import { endGroup, signalGroup, watchGroup } from './process-groups.js';
import { StdinWriter } from './stdin-writer.js';
import type { StdioTimings } from './timings.js';
import { within } from './wait.js';

/** The program of a server. */
export interface ServerCommand {
  readonly command: string;
  readonly args: readonly string[];
  /** Added to what every program needs. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string | undefined;
}

export interface ChildOptions {
  readonly command: ServerCommand;
  /** Greatest length of a line of standard output. */
  readonly lineBytes: number;
  readonly timings: StdioTimings;
}

/** How a process ended. */
export interface ChildEnd {
  /** A clause about "it". */
  readonly reason: string;
  /** False where the process could not be started. */
  readonly started: boolean;
}

export interface ChildHandlers {
  /** A line of standard output, never an empty one. */
  onLine(line: Buffer): void;
  onOversized(line: OversizedLine): void;
  /** A line of standard error. */
  onErrorLine(line: string): void;
  /** Nothing can be written any more, and nothing comes. Fires once, as the last. */
  onGone(end: ChildEnd): void;
}

/** Lines of standard error are cut to this many bytes. */
const ERROR_LINE_BYTES = 4 * 1024;

/** A server process that reads and writes lines. It leads a process group, and is started without a shell. */
export class Child {
  readonly #handlers: ChildHandlers;
  readonly #timings: StdioTimings;
  readonly #child: ChildProcess | undefined;
  #stdin: StdinWriter | undefined;
  #lines: LineReader | undefined;
  #paused = false;
  #gone = false;
  #stopping: Promise<void> | undefined;
  /** Why it exited. */
  #exitReason: string | undefined;
  #groupEnded: Promise<void> | undefined;
  readonly #exited = deferred<void>();
  readonly #finished = deferred<void>();

  constructor({ command, lineBytes, timings }: ChildOptions, handlers: ChildHandlers) {
    this.#handlers = handlers;
    this.#timings = timings;
    this.#child = this.#start(command, lineBytes);
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Whether nothing can be written any more, and nothing comes. */
  get gone(): boolean {
    return this.#gone;
  }

  /** See {@link StdinWriter.write}. */
  write(body: Rope, onWritten?: () => void): () => boolean {
    // After the exit nothing is read, though the last output may still come.
    if (this.#gone || this.#exitReason !== undefined || this.#stdin === undefined) return () => true;
    return this.#stdin.write(body, onWritten);
  }

  /** Stops reading standard output. */
  pause(): void {
    this.#paused = true;
    this.#lines?.pause();
    this.#child?.stdout?.pause();
  }

  resume(): void {
    this.#paused = false;
    this.#lines?.resume();
    // A line that was buffered may have caused the next pause.
    if (this.#paused) return;
    this.#child?.stdout?.resume();
    if (this.#exitReason !== undefined) this.#finishAfterLastOutput();
  }

  /** Ends the process and its descendants within a few seconds; never throws. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  #start({ command, args, env, cwd }: ServerCommand, lineBytes: number): ChildProcess | undefined {
    let child: ChildProcess;
    try {
      child = spawn(command, args, {
        cwd,
        env: childEnvironment(process.env, env),
        stdio: ['pipe', 'pipe', 'pipe'],
        detached: process.platform !== 'win32',
        windowsHide: true,
        shell: false,
      });
    } catch (error) {
      queueMicrotask(() => this.#failStart(error as NodeJS.ErrnoException, cwd));
      return undefined;
    }
    const { pid, stdin, stdout, stderr } = child;
    child.once('error', (error) => {
      if (pid === undefined) this.#failStart(error, cwd);
    });
    if (pid === undefined || stdin === null || stdout === null || stderr === null) return child;
    watchGroup(pid);
    for (const stream of [stdin, stdout, stderr]) stream.on('error', () => {});
    this.#stdin = new StdinWriter(stdin);
    stdin.once('close', () => this.#onStreamClosed('it closed its standard input'));
    this.#lines = this.#readOutput(stdout, lineBytes);
    this.#readErrors(stderr);
    child.once('exit', (code, signal) => {
      this.#exitReason = signal === null ? `it exited with code ${code}` : `it was ended by ${signal}`;
      this.#exited.resolve();
      this.#finishAfterLastOutput();
      void this.#endGroup(pid);
    });
    child.once('close', () => this.#finishExited());
    return child;
  }

  #readOutput(stdout: Readable, lineBytes: number): LineReader {
    const lines = new LineReader(lineBytes, {
      onLine: (line) => this.#gone || this.#handlers.onLine(line),
      onOversized: (line) => this.#gone || this.#handlers.onOversized(line),
    });
    stdout.on('data', (chunk: Buffer) => lines.push(chunk));
    stdout.once('end', () => {
      lines.end();
      this.#onStreamClosed('it closed its standard output');
    });
    return lines;
  }

  #readErrors(stderr: Readable): void {
    const lines = new LineReader(ERROR_LINE_BYTES, {
      onLine: (line) => this.#handlers.onErrorLine(line.toString()),
      onOversized: ({ head }) => this.#handlers.onErrorLine(`${head.toString()}…`),
    });
    stderr.on('data', (chunk: Buffer) => lines.push(chunk));
    stderr.once('end', () => lines.end());
  }

  #failStart(error: NodeJS.ErrnoException, cwd: string | undefined): void {
    this.#exited.resolve();
    // The system reports ENOENT for a missing folder and a missing program alike.
    const why =
      cwd === undefined || existsSync(cwd) ? (error.code ?? error.message) : 'its folder is not there';
    this.#finish({ reason: `it cannot be started (${why})`, started: false });
  }

  /** Ends a process that runs, but can no longer be written to or read from. */
  #onStreamClosed(reason: string): void {
    if (this.#stopping !== undefined) return;
    setTimeout(() => {
      if (this.#gone || this.#exitReason !== undefined) return;
      this.#finish({ reason, started: true });
      void this.stop();
    }, this.#timings.lastOutputMs).unref();
  }

  /** Does not wait for the streams to close: descendants may hold them open for ever. */
  #finishAfterLastOutput(): void {
    setTimeout(() => {
      if (!this.#paused) this.#finishExited();
    }, this.#timings.lastOutputMs).unref();
  }

  #finishExited(): void {
    this.#finish({ reason: this.#exitReason ?? 'it is gone', started: true });
  }

  #finish(end: ChildEnd): void {
    if (this.#gone) return;
    this.#gone = true;
    this.#stdin?.drop();
    this.#finished.resolve();
    this.#handlers.onGone(end);
  }

  async #stop(): Promise<void> {
    const pid = this.#child?.pid;
    if (pid === undefined) return;
    const { inputEndMs, terminateMs, killMs, lastOutputMs } = this.#timings;
    this.resume();
    this.#stdin?.close();
    if (!(await within(inputEndMs, this.#exited.promise))) {
      signalGroup(pid, 'SIGTERM');
      if (!(await within(terminateMs, this.#exited.promise))) signalGroup(pid, 'SIGKILL');
      await within(killMs, this.#exited.promise);
    }
    await Promise.all([this.#endGroup(pid), within(lastOutputMs, this.#finished.promise)]);
    this.#finishExited();
  }

  #endGroup(pid: number): Promise<void> {
    this.#groupEnded ??= endGroup(pid, this.#timings.terminateMs);
    return this.#groupEnded;
  }
}
