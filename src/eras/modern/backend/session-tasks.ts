import { LRUCache } from 'lru-cache';
import { badGateway, CODE } from '../../../exchange/errors.js';
import type { Exchange } from '../../../exchange/exchange.js';
import { faultsTo } from '../../../exchange/failures.js';
import { type Outcome, ownError, ownResult, type ResultOutcome } from '../../../exchange/outcome.js';
import { isFinal, readTask, type TaskState, taskNotFound } from '../../../exchange/tasks.js';
import type { Caller } from '../../../exchange/types.js';
import { getMember, type ResultFrame, type Rope, scanJson, stringOf } from '../../../jsonrpc/index.js';
import { decodeResult } from '../wire/results.js';
import { ImmediateResults, type ResultPlace } from './immediate-results.js';
import { passedOnFailure } from './refusals.js';
import type { ModernRequests } from './requests.js';
import { type Asker, type FinishedTask, type TaskAccess, TaskFollower } from './task-follower.js';
import { type KnownTask, TaskNames, type TaskNamesOptions } from './task-names.js';
import { callOutcome, completedTask, requestedTtl, withTasksExtension } from './task-outcomes.js';

/** How long a backend may take to say how a task is. */
const LOOK_MS = 30_000;
/** Tasks that clients were told are cancelled, whatever their backend makes of it. */
const REMEMBERED = 10_000;

/** What is known of the tool that a task was a call of is put to its result. */
export type ReadResult = (
  caller: Caller,
  tool: string | undefined,
  result: ResultOutcome,
) => Promise<ResultOutcome>;

/**
 * Tasks of a modern backend for clients of the legacy era, which ask about them in other words and wait for their results
 * by one request (2025-11-25, basic/utilities/tasks). What such a client knows a task by holds all that must be known
 * to find it again.
 */
export class SessionTasks {
  readonly #backendName: string;
  readonly #requests: ModernRequests;
  readonly #readResult: ReadResult;
  readonly #names: TaskNames;
  readonly #kept: ImmediateResults;
  readonly #follower: TaskFollower;
  readonly #ignoreFailure: (error: unknown) => undefined;
  readonly #cancelled = new LRUCache<string, true>({ max: REMEMBERED });
  /** Tasks that wanted to know something when a client looked at them. */
  readonly #looked = new LRUCache<string, true>({ max: REMEMBERED });

  constructor(
    options: TaskNamesOptions,
    backendName: string,
    requests: ModernRequests,
    readResult: ReadResult,
    onFault: (error: unknown) => void,
  ) {
    this.#names = new TaskNames(options);
    this.#backendName = backendName;
    this.#requests = requests;
    this.#readResult = readResult;
    this.#kept = new ImmediateResults(options, options.ticker);
    this.#follower = new TaskFollower(() => requests.nextId(), onFault);
    this.#ignoreFailure = faultsTo(onFault);
  }

  /**
   * A place for the result of a call that is to become a task, in case that it does not.
   * @throws ExchangeError when there are too many
   */
  admit({ request, caller }: Exchange): ResultPlace {
    return this.#kept.admit(caller.principal, requestedTtl(request.params));
  }

  /** The handle of a task that the backend has made of a call. */
  handle(exchange: Exchange, { bytes, result }: ResultFrame): Outcome {
    const task = readTask(bytes.subarray(result.start, result.end));
    if (task === undefined) throw badGateway(`${this.#backendName} answered with what is no task`, 200);
    const { caller, request } = exchange;
    const name = this.#names.seal(caller.principal, { kind: 'task', id: task.taskId, tool: request.name });
    return { ...this.#taskOutcome(bytes, result, name), isTask: true };
  }

  /** The handle of a call that the backend has answered at once: that of a task that is done. */
  handleOf(exchange: Exchange, result: ResultOutcome, place: ResultPlace): Outcome {
    const task = completedTask(place.ttlMs);
    const number = place.keep(task, result);
    const name = this.#names.seal(exchange.caller.principal, { kind: 'kept', number });
    return { ...keptOutcome(task, result, name), isTask: true };
  }

  /**
   * Follows a task to its end for a client that has not asked for one: its result is that of the call. The task goes
   * with the call where that is cancelled.
   */
  async carryOut(exchange: Exchange, { bytes, result }: ResultFrame): Promise<Outcome> {
    const task = readTask(bytes.subarray(result.start, result.end));
    if (task === undefined) throw badGateway(`${this.#backendName} answered with what is no task`, 200);
    const access = this.#access(exchange.caller, task.taskId);
    try {
      return await this.#outcome(
        exchange,
        await this.#follower.follow(exchange, access),
        exchange.request.name,
      );
    } catch (error) {
      this.#request(exchange.caller, 'tasks/cancel', task.taskId).catch(this.#ignoreFailure);
      throw error;
    }
  }

  /** Answers a request about a task. */
  async answer(exchange: Exchange): Promise<Outcome> {
    const { request, caller } = exchange;
    const { method, params } = request;
    const answer = Object.hasOwn(this.#methods, method) ? this.#methods[method] : undefined;
    if (answer === undefined)
      return ownError({ code: CODE.methodNotFound, message: `Method not found: ${method}` });
    const known = this.#names.open(params, caller.principal);
    return known === undefined ? taskNotFound() : answer(exchange, known);
  }

  readonly #methods: Readonly<
    Record<string, ((exchange: Exchange, known: KnownTask) => Promise<Outcome>) | undefined>
  > = {
    'tasks/get': async ({ caller }, known) => {
      if (known.kind === 'kept') return this.#keptTask(caller, known);
      return this.#look(caller, known);
    },
    'tasks/result': async (exchange, known) => {
      const { caller } = exchange;
      if (known.kind === 'kept') {
        const kept = this.#kept.get(known.number, caller.principal);
        return kept === undefined ? taskNotFound() : { ...kept.outcome, edits: new Map(kept.outcome.edits) };
      }
      if (this.#isCancelled(caller, known.id)) return wasCancelled();
      const finished = await this.#follower.follow(exchange, this.#access(caller, known.id));
      return this.#outcome(exchange, finished, known.tool);
    },
    'tasks/cancel': async ({ caller }, known) => {
      if (known.kind === 'kept') {
        const kept = this.#keptTask(caller, known);
        return kept.type === 'error' ? kept : alreadyOver('completed');
      }
      const before = await this.#request(caller, 'tasks/get', known.id);
      const state = readTask(before.bytes.subarray(before.result.start, before.result.end));
      if (this.#isCancelled(caller, known.id)) return alreadyOver('cancelled');
      if (state !== undefined && isFinal(state.status)) return alreadyOver(state.status);
      await this.#request(caller, 'tasks/cancel', known.id);
      // The answer must say so (2025-11-25, "Task Cancellation"), whenever it comes true.
      this.#cancelled.set(keyOf(caller, known.id), true);
      return this.#look(caller, known);
    },
  };

  async #look(caller: Caller, known: KnownTask & { kind: 'task' }): Promise<Outcome> {
    const frame = await this.#request(caller, 'tasks/get', known.id);
    const { bytes, result } = frame;
    const outcome = this.#taskOutcome(bytes, result, known.name);
    if (this.#isCancelled(caller, known.id)) outcome.edits.set('status', '"cancelled"');
    else if (stringOf(bytes, getMember(bytes, result, 'status')) === 'input_required')
      this.#askAside(caller, known, frame);
    return outcome;
  }

  /**
   * Some clients look until the task is over, and do not wait for the result by which they would be asked. They are asked on
   * the session's own stream, once it is seen that they look again and do not wait.
   */
  #askAside(caller: Caller, known: KnownTask & { kind: 'task' }, frame: ResultFrame): void {
    const { session } = caller;
    const key = keyOf(caller, known.id);
    if (session?.listening !== true || !this.#looked.has(key)) {
      this.#looked.set(key, true);
      return;
    }
    const { channel } = session;
    const asker: Asker = {
      get reachable() {
        return session.listening;
      },
      ask: (question) => channel.ask({ ...question, task: known.name }),
    };
    this.#follower.askAside(asker, this.#access(caller, known.id), frame);
  }

  #keptTask(caller: Caller, known: KnownTask & { kind: 'kept' }): Outcome {
    const kept = this.#kept.get(known.number, caller.principal);
    return kept === undefined ? taskNotFound() : keptOutcome(kept.task, kept.outcome, known.name);
  }

  #taskOutcome(bytes: Buffer, node: ResultFrame['result'], name: string): ResultOutcome {
    const outcome = ownResult(bytes, node);
    decodeResult(bytes, node, outcome.edits);
    // Here it is a member of the task, and not of what may be kept.
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
    if (outcome === undefined) throw badGateway(`${this.#backendName} told of no result of its task`, 200);
    return outcome.type === 'error' ? outcome : this.#readResult(caller, tool, outcome);
  }

  #isCancelled(caller: Caller, taskId: string): boolean {
    return this.#cancelled.has(keyOf(caller, taskId));
  }

  #access(caller: Caller, taskId: string): TaskAccess {
    return {
      key: keyOf(caller, taskId),
      get: () => this.#request(caller, 'tasks/get', taskId),
      update: async (inputResponses) => {
        await this.#request(caller, 'tasks/update', taskId, inputResponses);
      },
    };
  }

  async #request(
    caller: Caller,
    method: string,
    taskId: string,
    inputResponses?: Rope,
  ): Promise<ResultFrame> {
    const params = inputResponses === undefined ? { taskId } : { taskId, inputResponses };
    const reply = await this.#requests.request(withTasksExtension(caller), method, params, LOOK_MS);
    if (reply.kind !== 'answer' || reply.frame.type === 'error')
      throw passedOnFailure(this.#backendName, reply);
    return reply.frame;
  }
}

const keyOf = ({ principal }: Caller, taskId: string): string => `${principal} ${taskId}`;

function keptOutcome(task: string, { bytes, node }: ResultOutcome, name: string): ResultOutcome {
  const text = Buffer.from(task);
  const outcome = ownResult(text, scanJson(text, 1));
  outcome.edits.set('taskId', JSON.stringify(name));
  if (getMember(bytes, node, 'isError')?.kind === 'true')
    outcome.edits.set('result', bytes.toString('utf8', node.start, node.end));
  return outcome;
}

function wasCancelled(): Outcome {
  return ownError({ code: CODE.internal, message: 'The task was cancelled' });
}

function alreadyOver(status: string): Outcome {
  return ownError({ code: CODE.invalidParams, message: `Cannot cancel task: it is ${status} already` });
}
