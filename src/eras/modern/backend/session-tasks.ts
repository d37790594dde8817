import { LRUCache } from 'lru-cache';
import type { BackendLabel } from '../../../exchange/backend-label.js';
import { type Caller, identityOf } from '../../../exchange/caller.js';
import type { DeclaredError } from '../../../exchange/declare-errors.js';
import { EXCHANGE_ERRORS, type ExchangeError, exchangeError } from '../../../exchange/errors.js';
import type { Exchange } from '../../../exchange/exchange.js';
import { faultsTo } from '../../../exchange/failures.js';
import { gatewayError, type Outcome, ownResult, type ResultOutcome } from '../../../exchange/outcome.js';
import { isFinal, readTask, type TaskState, taskNotFound } from '../../../exchange/tasks.js';
import { getMember, type ResultFrame, scanJson, stringOf } from '../../../jsonrpc/index.js';
import { decodeResult } from '../wire/results.js';
import { MODERN_BACKEND_ERRORS } from './errors.js';
import { ImmediateResults, type ResultPlace } from './immediate-results.js';
import type { ModernRequests } from './requests.js';
import { type FinishedTask, TaskFollower } from './task-follower.js';
import { type KnownTask, TaskNames, type TaskNamesOptions } from './task-names.js';
import { callOutcome, completedTask, requestedTtl } from './task-outcomes.js';
import { TaskRequests } from './task-requests.js';
import type { AskableClient, TaskAccess } from './task-server-requests.js';

/** Limit of the tasks that are remembered as cancelled, and as polled. */
const MAX_REMEMBERED = 10_000;

export interface SessionTasksOptions extends TaskNamesOptions {
  readonly backend: BackendLabel;
  readonly requests: ModernRequests;
  /** Adds to the result of a task what is known of the tool that was called. */
  readonly describeResult: (
    caller: Caller,
    tool: string | undefined,
    result: ResultOutcome,
  ) => Promise<ResultOutcome>;
  readonly onFault: (error: unknown) => void;
}

type BackendTaskName = KnownTask & { kind: 'task' };
type KeptResultName = KnownTask & { kind: 'kept' };

/**
 * Tasks of a modern backend for legacy clients, which have `tasks/result` to wait for the result (2025-11-25,
 * basic/utilities/tasks). No state is kept for a task: its sealed name, the client's task id, contains the backend's id.
 */
export class SessionTasks {
  readonly #backend: BackendLabel;
  readonly #requests: TaskRequests;
  readonly #describeResult: SessionTasksOptions['describeResult'];
  readonly #names: TaskNames;
  readonly #kept: ImmediateResults;
  readonly #follower: TaskFollower;
  readonly #ignoreFailure: (error: unknown) => undefined;
  /** Tasks whose cancellation the client has requested, whether or not the backend has cancelled them. */
  readonly #cancelled = new LRUCache<string, true>({ max: MAX_REMEMBERED });
  /** Tasks that were `input_required` when a client polled them. */
  readonly #polled = new LRUCache<string, true>({ max: MAX_REMEMBERED });

  constructor(options: SessionTasksOptions) {
    const { backend, requests, describeResult, onFault } = options;
    this.#names = new TaskNames(options);
    this.#backend = backend;
    this.#requests = new TaskRequests(requests, backend);
    this.#describeResult = describeResult;
    this.#kept = new ImmediateResults(options, options.ticker);
    this.#follower = new TaskFollower({ nextId: () => requests.nextId(), onFault });
    this.#ignoreFailure = faultsTo(onFault);
  }

  /**
   * Reserves a place for the result of a call that a client requests as a task, in case the backend answers at once.
   * @throws ExchangeError if the limit is reached
   */
  reserve({ request, caller }: Exchange): ResultPlace {
    return this.#kept.admit(caller.principal, requestedTtl(request.params));
  }

  /** The handle of a task that the backend has made of a call. */
  handleOfTask(exchange: Exchange, { bytes, result }: ResultFrame): Outcome {
    const task = readTask(bytes.subarray(result.start, result.end));
    if (task === undefined)
      throw this.#invalid(MODERN_BACKEND_ERRORS.ERAGATE_TASK_INVALID, 'answered with what is no task');
    const { caller, request } = exchange;
    const name = this.#names.seal(identityOf(caller), { kind: 'task', id: task.taskId, tool: request.name });
    return { ...this.#taskOutcome(bytes, result, name), isTask: true };
  }

  /** The handle for the result of a call that the backend has answered at once: that of a completed task. */
  handleOfResult(exchange: Exchange, result: ResultOutcome, place: ResultPlace): Outcome {
    const task = completedTask(place.ttlMs);
    const number = place.keep(task, result);
    const name = this.#names.seal(identityOf(exchange.caller), { kind: 'kept', number });
    return { ...keptOutcome(task, result, name), isTask: true };
  }

  /**
   * Waits for the end of a task for a client that has not requested one, and returns the outcome of the call. The task is
   * cancelled with the call.
   */
  async waitForEnd(exchange: Exchange, { bytes, result }: ResultFrame): Promise<Outcome> {
    const task = readTask(bytes.subarray(result.start, result.end));
    if (task === undefined)
      throw this.#invalid(MODERN_BACKEND_ERRORS.ERAGATE_TASK_INVALID, 'answered with what is no task');
    const access = this.#access(exchange.caller, task.taskId, exchange.signal);
    try {
      return await this.#outcome(
        exchange,
        await this.#follower.follow(exchange, access),
        exchange.request.name,
      );
    } catch (error) {
      this.#requests.cancel(exchange.caller, task.taskId).catch(this.#ignoreFailure);
      throw error;
    }
  }

  #invalid(declared: DeclaredError<'route'>, what: string): ExchangeError {
    const { route, name } = this.#backend;
    return exchangeError(declared, { route }, { detail: `${name} ${what}` });
  }

  /** The outcome of a `tasks/…` request. */
  async answer(exchange: Exchange): Promise<Outcome> {
    const { request, caller } = exchange;
    const { method, params } = request;
    const answer = Object.hasOwn(this.#methods, method) ? this.#methods[method] : undefined;
    if (answer === undefined) return gatewayError(EXCHANGE_ERRORS.ERAGATE_METHOD_NOT_FOUND, { method });
    const known = this.#names.open(params, identityOf(caller));
    return known === undefined ? taskNotFound() : answer(exchange, known);
  }

  readonly #methods: Readonly<
    Record<string, ((exchange: Exchange, known: KnownTask) => Promise<Outcome>) | undefined>
  > = {
    'tasks/get': async ({ caller, signal }, known) => {
      if (known.kind === 'kept') return this.#keptTask(caller, known);
      return this.#poll(caller, known, signal);
    },
    'tasks/result': async (exchange, known) => {
      const { caller } = exchange;
      if (known.kind === 'kept') {
        const kept = this.#kept.get(known.number, caller.principal);
        return kept === undefined ? taskNotFound() : { ...kept.outcome, edits: new Map(kept.outcome.edits) };
      }
      if (this.#isCancelled(caller, known.id)) return wasCancelled();
      const finished = await this.#follower.follow(exchange, this.#access(caller, known.id, exchange.signal));
      return this.#outcome(exchange, finished, known.tool);
    },
    'tasks/cancel': async ({ caller, signal }, known) => {
      if (known.kind === 'kept') {
        const kept = this.#keptTask(caller, known);
        return kept.type === 'error' ? kept : alreadyFinal('completed');
      }
      const before = await this.#requests.get(caller, known.id, signal);
      const state = readTask(before.bytes.subarray(before.result.start, before.result.end));
      if (this.#isCancelled(caller, known.id)) return alreadyFinal('cancelled');
      if (state !== undefined && isFinal(state.status)) return alreadyFinal(state.status);
      await this.#requests.cancel(caller, known.id, signal);
      // The response must have the status (2025-11-25, "Task Cancellation"), even if the backend is not that far yet.
      this.#cancelled.set(keyOf(caller, known.id), true);
      return this.#poll(caller, known, signal);
    },
  };

  async #poll(caller: Caller, known: BackendTaskName, signal: AbortSignal): Promise<Outcome> {
    const frame = await this.#requests.get(caller, known.id, signal);
    const { bytes, result } = frame;
    const outcome = this.#taskOutcome(bytes, result, known.name);
    if (this.#isCancelled(caller, known.id)) outcome.edits.set('status', '"cancelled"');
    else if (stringOf(bytes, getMember(bytes, result, 'status')) === 'input_required')
      this.#askPoller(caller, known, frame);
    return outcome;
  }

  /**
   * Sends the server requests of a task on the standalone GET stream of a client that polls for the second time. Such
   * clients do not send `tasks/result`, on whose stream they would get them.
   */
  #askPoller(caller: Caller, known: BackendTaskName, frame: ResultFrame): void {
    const { session } = caller;
    const key = keyOf(caller, known.id);
    if (session?.listening !== true || !this.#polled.has(key)) {
      this.#polled.set(key, true);
      return;
    }
    const { channel } = session;
    const client: AskableClient = {
      get reachable() {
        return session.listening;
      },
      ask: (request) => channel.ask({ ...request, task: known.name }),
    };
    this.#follower.askPoller(client, this.#access(caller, known.id), frame);
  }

  #keptTask(caller: Caller, known: KeptResultName): Outcome {
    const kept = this.#kept.get(known.number, caller.principal);
    return kept === undefined ? taskNotFound() : keptOutcome(kept.task, kept.outcome, known.name);
  }

  #taskOutcome(bytes: Buffer, node: ResultFrame['result'], name: string): ResultOutcome {
    const outcome = ownResult(bytes, node);
    decodeResult(bytes, node, outcome.edits);
    // In a task, `ttlMs` is not a cache hint.
    outcome.edits.delete('ttlMs');
    outcome.edits.set('taskId', JSON.stringify(name));
    return outcome;
  }

  async #outcome(
    { caller }: Exchange,
    { frame, state }: FinishedTask,
    tool: string | undefined,
  ): Promise<Outcome> {
    if (state.status === 'cancelled' || this.#isCancelled(caller, state.taskId)) return wasCancelled();
    const outcome = callOutcome(frame, state as TaskState);
    if (outcome === undefined)
      throw this.#invalid(MODERN_BACKEND_ERRORS.ERAGATE_TASK_WITHOUT_RESULT, 'gave no result of its task');
    return outcome.type === 'error' ? outcome : this.#describeResult(caller, tool, outcome);
  }

  #isCancelled(caller: Caller, taskId: string): boolean {
    return this.#cancelled.has(keyOf(caller, taskId));
  }

  #access(caller: Caller, taskId: string, signal?: AbortSignal): TaskAccess {
    return {
      key: keyOf(caller, taskId),
      get: () => this.#requests.get(caller, taskId, signal),
      update: (inputResponses) => this.#requests.update(caller, taskId, inputResponses),
    };
  }
}

const keyOf = (caller: Caller, taskId: string): string => `${identityOf(caller)} ${taskId}`;

function keptOutcome(task: string, { bytes, node }: ResultOutcome, name: string): ResultOutcome {
  const text = Buffer.from(task);
  const outcome = ownResult(text, scanJson(text, 1));
  outcome.edits.set('taskId', JSON.stringify(name));
  if (getMember(bytes, node, 'isError')?.kind === 'true')
    outcome.edits.set('result', bytes.toString('utf8', node.start, node.end));
  return outcome;
}

function wasCancelled(): Outcome {
  return gatewayError(EXCHANGE_ERRORS.ERAGATE_TASK_CANCELLED);
}

function alreadyFinal(status: string): Outcome {
  return gatewayError(EXCHANGE_ERRORS.ERAGATE_TASK_OVER, { status });
}
