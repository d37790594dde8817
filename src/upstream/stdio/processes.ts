import { TransportError } from '../errors.js';
import type { Command } from './child.js';
import { ChildLog, noiseRate, type ProcessLog } from './child-log.js';
import { Conversation } from './conversation.js';
import type { ProcessLimit } from './process-limit.js';
import { Restarts } from './restarts.js';
import type { Routing, Talk } from './routing.js';

export interface ProcessesOptions {
  readonly command: Command;
  /** Longest line of standard output in bytes. */
  readonly resultBytes: number;
  readonly limit: ProcessLimit;
  /** How long a call may take in all, in milliseconds; endless where it is left out. */
  readonly totalMs?: number | undefined;
  readonly log: ProcessLog;
  /** See {@link Transport.reportDeviation}. */
  readonly onDeviation?: ((what: string) => void) | undefined;
}

/** The processes of one backend: how many, how soon after each other, and their end. */
export class Processes {
  readonly #options: ProcessesOptions;
  readonly #restarts = new Restarts();
  readonly #noisy = noiseRate();
  readonly #running = new Set<Conversation>();
  /** On their way to their end. */
  readonly #ending = new Set<Promise<void>>();
  #closed = false;

  constructor(options: ProcessesOptions) {
    this.#options = options;
  }

  /**
   * Starts a process.
   * @param onOver told when it is gone, though nobody wanted that
   * @throws TransportError `unreachable` where none is to be started now
   */
  start<R extends Routing>(routing: (talk: Talk) => R, onOver: () => void): Conversation<R> {
    const { command, limit, log, resultBytes, onDeviation, totalMs } = this.#options;
    if (this.#closed) throw new TransportError('unreachable', 'the gateway is shutting down');
    const { refusal } = this.#restarts;
    if (refusal !== undefined) throw new TransportError('unreachable', refusal);
    if (!limit.take()) {
      throw new TransportError('unreachable', `limit of ${limit.max} processes reached (limits.processes)`);
    }
    const startedAt = performance.now();
    const conversation: Conversation<R> = new Conversation({
      command,
      routing,
      lineBytes: resultBytes,
      totalMs: totalMs ?? Number.POSITIVE_INFINITY,
      log: new ChildLog(log, this.#noisy),
      onDeviation: (what) => onDeviation?.(what),
      onUseful: () => this.#restarts.worked(),
      onGone: (reason, failed) => {
        if (failed) this.#restarts.failed(reason, startedAt);
        onOver();
        this.#end(conversation, reason);
      },
      onRefused: (reason) => {
        onOver();
        this.#end(conversation, reason);
      },
    });
    this.#running.add(conversation);
    return conversation;
  }

  /** Ends a process; its place is free once it is gone. */
  end(conversation: Conversation, reason: string): void {
    if (this.#running.has(conversation)) this.#end(conversation, reason);
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const conversation of this.#running) this.#end(conversation, 'the gateway is shutting down');
    await Promise.all(this.#ending);
  }

  #end(conversation: Conversation, reason: string): void {
    if (!this.#running.delete(conversation)) return;
    const ended = conversation.stop(reason).finally(() => {
      this.#options.limit.release();
      this.#ending.delete(ended);
    });
    this.#ending.add(ended);
  }
}
