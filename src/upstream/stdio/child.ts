import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import type { Rope } from '../../jsonrpc/index.js';
import { childEnvironment } from './environment.js';
import { LineReader, type OversizedLine } from './line-reader.js';
import { forgetGroup, signalGroup, watchGroup } from './process-groups.js';

/** What to start. */
export interface Command {
  readonly command: string;
  readonly args: readonly string[];
  /** Beside what every program needs. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string | undefined;
}

export interface ChildHandlers {
  /** A line of standard output, never an empty one. */
  onLine(line: Buffer): void;
  onOversized(line: OversizedLine): void;
  /** A line of standard error. */
  onErrorLine(line: string): void;
  /**
   * Nothing will come any more. Told once.
   * @param reason in words that go with "it"
   * @param started false where there never was a process
   */
  onGone(reason: string, started: boolean): void;
}

/** A message on its way to standard input. */
interface Outgoing {
  readonly body: Rope;
  readonly onWritten: (() => void) | undefined;
  /** The process closed its end before it got the message. */
  failed: boolean;
}

/** Closing its input is how a server is asked to end (basic/transports/stdio, "Shutdown"); then signals follow. */
const END_MS = 1_000;
const TERMINATE_MS = 1_000;
/** After SIGKILL nothing is waited for but the system. */
const KILL_MS = 1_000;
/** How long after its end a process may still hand over what it has written. */
const LAST_OUTPUT_MS = 250;
/** Lines of standard error are cut to this many bytes. */
const ERROR_LINE_BYTES = 4 * 1024;

/** A server as a process of its own, spoken to by lines. It leads a process group, and is started without a shell. */
export class Child {
  readonly #handlers: ChildHandlers;
  readonly #child: ChildProcess | undefined;
  readonly #queue: Outgoing[] = [];
  #blocked = false;
  #held = false;
  #lines: LineReader | undefined;
  #gone = false;
  #stopping: Promise<void> | undefined;
  #reason: string | undefined;
  #swept: Promise<void> | undefined;
  readonly #exited: Promise<void>;
  #onExited!: () => void;
  readonly #finished: Promise<void>;
  #onFinished!: () => void;

  /** @param lineBytes greatest length of a line of standard output */
  constructor(command: Command, lineBytes: number, handlers: ChildHandlers) {
    this.#handlers = handlers;
    this.#exited = new Promise((resolve) => {
      this.#onExited = resolve;
    });
    this.#finished = new Promise((resolve) => {
      this.#onFinished = resolve;
    });
    this.#child = this.#start(command, lineBytes);
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Nothing can be written any more, and nothing comes. */
  get gone(): boolean {
    return this.#gone;
  }

  /**
   * Writes a message and the end of its line, after those before it. The line breaks in it must be gone.
   * @param onWritten called once the process can read it
   * @returns takes the message back if it has not been begun, and says whether it did
   */
  write(body: Rope, onWritten?: () => void): () => boolean {
    const outgoing: Outgoing = { body, onWritten, failed: false };
    // One that has exited reads nothing more, though its last words may still come.
    if (this.#gone || this.#reason !== undefined) return () => true;
    this.#queue.push(outgoing);
    this.#flush();
    return () => {
      const at = this.#queue.indexOf(outgoing);
      if (at !== -1) this.#queue.splice(at, 1);
      return at !== -1 || outgoing.failed;
    };
  }

  /** Stops or goes on reading what the process writes. */
  hold(held: boolean): void {
    this.#held = held;
    if (held) {
      this.#lines?.pause();
      this.#child?.stdout?.pause();
      return;
    }
    this.#lines?.resume();
    // What was read before may have brought on the next pause.
    if (this.#held) return;
    this.#child?.stdout?.resume();
    if (this.#reason !== undefined) this.#endSoon();
  }

  /** Ends the process and all that it has started, within a few seconds; never throws. */
  stop(): Promise<void> {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  #start({ command, args, env, cwd }: Command, lineBytes: number): ChildProcess | undefined {
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
      queueMicrotask(() => this.#notStarted(error as NodeJS.ErrnoException, cwd));
      return undefined;
    }
    const { pid, stdin, stdout, stderr } = child;
    child.once('error', (error) => {
      if (pid === undefined) this.#notStarted(error, cwd);
    });
    if (pid === undefined || stdin === null || stdout === null || stderr === null) return child;
    watchGroup(pid);
    const lines = new LineReader(lineBytes, {
      onLine: (line) => this.#gone || this.#handlers.onLine(line),
      onOversized: (line) => this.#gone || this.#handlers.onOversized(line),
    });
    this.#lines = lines;
    stdout.on('data', (chunk: Buffer) => lines.push(chunk));
    stdout.once('end', () => {
      lines.end();
      this.#closedOutput();
    });
    const errorLines = new LineReader(ERROR_LINE_BYTES, {
      onLine: (line) => this.#handlers.onErrorLine(line.toString()),
      onOversized: ({ head }) => this.#handlers.onErrorLine(`${head.toString()}…`),
    });
    stderr.on('data', (chunk: Buffer) => errorLines.push(chunk));
    stderr.once('end', () => errorLines.end());
    for (const stream of [stdin, stdout, stderr]) stream.on('error', () => {});
    stdin.on('drain', () => {
      this.#blocked = false;
      this.#flush();
    });
    // A process that does not read any more is of no use, and those that wait for it are told so.
    stdin.once('close', () => {
      if (this.#stopping === undefined)
        setTimeout(() => this.#unusable('it closed its standard input'), LAST_OUTPUT_MS).unref();
    });
    child.once('exit', (code, signal) => {
      this.#reason = signal === null ? `it exited with code ${code}` : `it was ended by ${signal}`;
      this.#onExited();
      this.#endSoon();
      void this.#sweep(pid);
    });
    child.once('close', () => this.#end());
    return child;
  }

  #flush(): void {
    const stdin = this.#child?.stdin;
    if (this.#gone || stdin === null || stdin === undefined) return;
    while (!this.#blocked) {
      const next = this.#queue.shift();
      if (next === undefined) return;
      const { body, onWritten } = next;
      stdin.cork();
      for (const chunk of body.chunks) stdin.write(chunk);
      this.#blocked = !stdin.write('\n', (error) => {
        if (error) next.failed = true;
        else onWritten?.();
      });
      stdin.uncork();
    }
  }

  #notStarted(error: NodeJS.ErrnoException, cwd: string | undefined): void {
    this.#onExited();
    // The system says of either that it is not there.
    const why =
      cwd === undefined || existsSync(cwd) ? (error.code ?? error.message) : 'its folder is not there';
    this.#finish(`it cannot be started (${why})`, false);
  }

  #closedOutput(): void {
    if (this.#stopping !== undefined) return;
    setTimeout(() => this.#unusable('it closed its standard output'), LAST_OUTPUT_MS).unref();
  }

  /** It runs, and cannot be spoken to. */
  #unusable(reason: string): void {
    if (this.#gone || this.#reason !== undefined) return;
    this.#finish(reason, true);
    void this.stop();
  }

  /** Whatever it has started may hold the streams open for ever; what it has written itself is read to its end. */
  #endSoon(): void {
    setTimeout(() => {
      if (!this.#held) this.#end();
    }, LAST_OUTPUT_MS).unref();
  }

  #end(): void {
    this.#finish(this.#reason ?? 'it is gone', true);
  }

  #finish(reason: string, started: boolean): void {
    if (this.#gone) return;
    this.#gone = true;
    this.#queue.length = 0;
    this.#onFinished();
    this.#handlers.onGone(reason, started);
  }

  async #stop(): Promise<void> {
    const pid = this.#child?.pid;
    if (pid === undefined) return;
    this.hold(false);
    this.#child?.stdin?.end();
    if (!(await within(END_MS, this.#exited))) {
      signalGroup(pid, 'SIGTERM');
      if (!(await within(TERMINATE_MS, this.#exited))) signalGroup(pid, 'SIGKILL');
      await within(KILL_MS, this.#exited);
    }
    await Promise.all([this.#sweep(pid), within(LAST_OUTPUT_MS, this.#finished)]);
    this.#end();
  }

  /** Ends what a process that has ended itself has left behind. */
  #sweep(pid: number): Promise<void> {
    this.#swept ??= sweep(pid);
    return this.#swept;
  }
}

async function sweep(pid: number): Promise<void> {
  if (signalGroup(pid, 'SIGTERM')) {
    await until(TERMINATE_MS, () => !signalGroup(pid, 0));
    signalGroup(pid, 'SIGKILL');
  }
  forgetGroup(pid);
}

const LOOK_EVERY_MS = 25;

async function until(limitMs: number, done: () => boolean): Promise<void> {
  const deadline = performance.now() + limitMs;
  while (!done() && performance.now() < deadline) {
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
  }
}

async function within(limitMs: number, event: Promise<void>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(resolve, limitMs, false);
  });
  return Promise.race([event.then(() => true), late]).finally(() => clearTimeout(timer));
}
