import { TransportError } from '../errors.js';
import type { ServerCommand } from './child.js';
import { ChildLog, type ProcessLog, skippedOutputRate } from './child-log.js';
import { ProcessConnection } from './process-connection.js';
import type { CountedProcess, ProcessLimit } from './process-limit.js';
import { RestartBackoff } from './restart-backoff.js';
import type { Routing, RoutingContext } from './routing.js';
import { STDIO_TIMINGS, type StdioTimings } from './timings.js';

export interface ProcessPoolOptions {
  readonly command: ServerCommand;
  /** Longest line of standard output in bytes. */
  readonly resultBytes: number;
  readonly limit: ProcessLimit;
  /** Longest time of a call in milliseconds; default no limit. */
  readonly totalMs?: number | undefined;
  readonly log: ProcessLog;
  /** See {@link Transport.reportDeviation}. */
  readonly onDeviation?: ((what: string) => void) | undefined;
  /** Default {@link STDIO_TIMINGS}. */
  readonly timings?: Partial<StdioTimings> | undefined;
}

/** Starts and ends the processes of one backend, within the limit and with pauses after failures. */
export class ProcessPool {
  readonly #options: ProcessPoolOptions;
  readonly #timings: StdioTimings;
  readonly #restarts: RestartBackoff;
  readonly #skippedRate = skippedOutputRate();
  readonly #running = new Map<ProcessConnection, CountedProcess>();
  readonly #ending = new Set<Promise<void>>();
  #closed = false;

  constructor(options: ProcessPoolOptions) {
    this.#options = options;
    this.#timings = { ...STDIO_TIMINGS, ...options.timings };
    this.#restarts = new RestartBackoff(this.#timings.restart);
  }

  /**
   * Starts a process.
   * @param onLost the process is gone or unusable, without having been stopped
   * @throws TransportError `unreachable` where none may be started now
   */
  start<R extends Routing>(
    routing: (context: RoutingContext) => R,
    onLost: () => void,
  ): ProcessConnection<R> {
    const { command, limit, log, resultBytes, onDeviation, totalMs } = this.#options;
    if (this.#closed) throw new TransportError('unreachable', 'the gateway is shutting down');
    const { refusal } = this.#restarts;
    if (refusal !== undefined) throw new TransportError('unreachable', refusal);
    if (!limit.makeRoom()) {
      throw new TransportError('unreachable', `limit of ${limit.max} processes reached (limits.processes)`);
    }
    const startedAt = performance.now();
    const connection: ProcessConnection<R> = new ProcessConnection({
      command,
      routing,
      lineBytes: resultBytes,
      totalMs: totalMs ?? Number.POSITIVE_INFINITY,
      timings: this.#timings,
      log: new ChildLog(log, this.#skippedRate),
      onDeviation: (what) => onDeviation?.(what),
      onUseful: () => this.#restarts.recordSuccess(),
      onLost: ({ reason, failedStart }) => {
        if (failedStart) this.#restarts.recordFailure(reason, startedAt);
        onLost();
        this.#end(connection, reason);
      },
      onHandshakeRefused: (reason) => {
        onLost();
        this.#end(connection, reason);
      },
    });
    const counted: CountedProcess = {
      get unusedSince() {
        return connection.unusedSince;
      },
      evict: () => {
        onLost();
        this.#end(connection, 'it was idle, and another one was to be started');
      },
    };
    limit.add(counted);
    this.#running.set(connection, counted);
    return connection;
  }

  /** Ends a process. It counts against the limit until it is gone. */
  end(connection: ProcessConnection, reason: string): void {
    if (this.#running.has(connection)) this.#end(connection, reason);
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const connection of this.#running.keys()) this.#end(connection, 'the gateway is shutting down');
    await Promise.all(this.#ending);
  }

  #end(connection: ProcessConnection, reason: string): void {
    const counted = this.#running.get(connection);
    if (counted === undefined) return;
    this.#running.delete(connection);
    const ended = connection.stop(reason).finally(() => {
      this.#options.limit.remove(counted);
      this.#ending.delete(ended);
    });
    this.#ending.add(ended);
  }
}
