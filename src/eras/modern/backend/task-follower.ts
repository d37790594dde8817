import { LRUCache } from 'lru-cache';
import type { Exchange } from '../../../exchange/exchange.js';
import { isFailure } from '../../../exchange/failures.js';
import { isFinal, readTask, type TaskState } from '../../../exchange/tasks.js';
import { abortable } from '../../../exchange/utils/abortable.js';
import { getMember, type ResultFrame } from '../../../jsonrpc/index.js';
import { InputFailed, readInputRequests } from '../wire/input-requests.js';
import { type AskableClient, type TaskAccess, TaskServerRequests } from './task-server-requests.js';

/** How often `tasks/get` is sent, in milliseconds. */
export interface PollTimes {
  /** For a task without `pollIntervalMs`. */
  readonly usualMs: number;
  readonly shortestMs: number;
  readonly longestMs: number;
}

const POLL_TIMES: PollTimes = { usualMs: 1_000, shortestMs: 50, longestMs: 10_000 };

/** Limit of the answered requests that are remembered: a server may list one for some time after its answer. */
const MAX_ANSWERED = 10_000;

/** A task in a final state, as in the response to `tasks/get`. */
export interface FinishedTask {
  readonly frame: ResultFrame;
  readonly state: TaskState;
}

/** A task that is followed by one or more requests of clients. */
interface FollowedTask {
  followers: number;
  readonly owners: Map<string, TaskServerRequests>;
}

export interface TaskFollowerOptions {
  /** Makes ids that no other request of the gateway to a client has. */
  readonly nextId: () => number;
  readonly onFault: (error: unknown) => void;
  readonly poll?: PollTimes;
}

/**
 * Polls tasks of a modern backend until they end, for clients that wait for the result, and sends the server requests of
 * the tasks to these clients (extension, "Task Polling", "Task Update Requests").
 */
export class TaskFollower {
  readonly #nextId: () => number;
  readonly #onFault: (error: unknown) => void;
  readonly #poll: PollTimes;
  /** By key of the task. */
  readonly #followed = new Map<string, FollowedTask>();
  readonly #answered = new LRUCache<string, true>({ max: MAX_ANSWERED });

  constructor({ nextId, onFault, poll = POLL_TIMES }: TaskFollowerOptions) {
    this.#nextId = nextId;
    this.#onFault = onFault;
    this.#poll = poll;
  }

  /**
   * Waits for the end of a task.
   * @throws ExchangeError if the exchange is cancelled first, or the backend cannot be asked
   * @throws InputFailed if a server request cannot be answered
   */
  async follow(exchange: Exchange, access: TaskAccess): Promise<FinishedTask> {
    const { serverRequests, leave } = this.#join(exchange, access);
    try {
      return await this.#toEnd(exchange, access, serverRequests);
    } finally {
      leave();
    }
  }

  /**
   * Sends the server requests of a task to a client that polls it, unless another request of a client follows the task.
   * The client sees the effect of its answers when it polls again.
   * @param frame the response to `tasks/get`
   */
  askPoller(client: AskableClient, access: TaskAccess, { bytes, result }: ResultFrame): void {
    if (this.#followed.has(access.key)) return;
    const { serverRequests, leave } = this.#join(client, access);
    try {
      serverRequests.ask(readInputRequests(bytes, getMember(bytes, result, 'inputRequests'), this.#nextId));
    } catch (error) {
      if (!(error instanceof InputFailed)) throw error;
    }
    void serverRequests.allSettled().then((failure) => {
      leave();
      if (failure !== undefined && !isFailure(failure) && !(failure instanceof InputFailed))
        this.#onFault(failure);
    });
  }

  #join(
    client: AskableClient,
    access: TaskAccess,
  ): { serverRequests: TaskServerRequests; leave: () => void } {
    const task = this.#followed.get(access.key) ?? { followers: 0, owners: new Map() };
    this.#followed.set(access.key, task);
    task.followers++;
    const serverRequests = new TaskServerRequests(client, access, task.owners, this.#answered);
    const leave = (): void => {
      serverRequests.leave();
      if (--task.followers === 0) this.#followed.delete(access.key);
    };
    return { serverRequests, leave };
  }

  async #toEnd(
    exchange: Exchange,
    access: TaskAccess,
    serverRequests: TaskServerRequests,
  ): Promise<FinishedTask> {
    for (;;) {
      const frame = await abortable(exchange.signal, access.get());
      const { bytes, result } = frame;
      const state = readTask(bytes.subarray(result.start, result.end));
      if (state === undefined) throw new InputFailed('the backend told of no task');
      if (isFinal(state.status)) return { frame, state };
      if (state.status === 'input_required')
        serverRequests.ask(readInputRequests(bytes, getMember(bytes, result, 'inputRequests'), this.#nextId));
      await abortable(exchange.signal, serverRequests.settledOr(this.#pauseFor(state)));
    }
  }

  #pauseFor({ pollIntervalMs }: TaskState): number {
    const { usualMs, shortestMs, longestMs } = this.#poll;
    return Math.min(Math.max(pollIntervalMs ?? usualMs, shortestMs), longestMs);
  }
}
