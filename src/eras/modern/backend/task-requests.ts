import type { BackendLabel } from '../../../exchange/backend-label.js';
import type { Caller } from '../../../exchange/caller.js';
import type { ResultFrame, Rope } from '../../../jsonrpc/index.js';
import { passedOnFailure } from './refusals.js';
import type { ModernRequests } from './requests.js';
import { withTasksExtension } from './task-outcomes.js';

/** Longest time for a response about a task, in milliseconds. */
const LIMIT_MS = 30_000;

/** Sends the requests of the tasks extension to a modern backend, on behalf of clients that do not have it. */
export class TaskRequests {
  readonly #requests: ModernRequests;
  readonly #backend: BackendLabel;
  readonly #limitMs: number;

  constructor(requests: ModernRequests, backend: BackendLabel, limitMs = LIMIT_MS) {
    this.#requests = requests;
    this.#backend = backend;
    this.#limitMs = limitMs;
  }

  /** @throws ExchangeError if the backend cannot be asked, or does not have the task; the reason of the signal */
  get(caller: Caller, taskId: string, signal?: AbortSignal): Promise<ResultFrame> {
    return this.#send(caller, 'tasks/get', { taskId }, signal);
  }

  /**
   * @param inputResponses JSON text
   * @throws ExchangeError
   */
  async update(caller: Caller, taskId: string, inputResponses: Rope): Promise<void> {
    await this.#send(caller, 'tasks/update', { taskId, inputResponses });
  }

  /** @throws ExchangeError */
  async cancel(caller: Caller, taskId: string, signal?: AbortSignal): Promise<void> {
    await this.#send(caller, 'tasks/cancel', { taskId }, signal);
  }

  async #send(
    caller: Caller,
    method: string,
    params: Record<string, unknown>,
    signal?: AbortSignal,
  ): Promise<ResultFrame> {
    const sender = withTasksExtension(caller);
    const reply = await this.#requests.request(sender, method, params, { limitMs: this.#limitMs, signal });
    if (reply.kind !== 'response' || reply.frame.type === 'error')
      throw passedOnFailure(this.#backend, reply);
    return reply.frame;
  }
}
