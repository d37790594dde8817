import type { Caller } from '../../../exchange/caller.js';
import type { ClientAnswer, ServerMessage, ServerRequest } from '../../../exchange/channel.js';
import { ServerRequestRefused, ServerRequestWithdrawn } from '../../../exchange/errors.js';
import { type Outcome, ownResult, type ResultOutcome } from '../../../exchange/outcome.js';
import type { BackendTask, KeptHandle, TaskPlace } from '../../../exchange/tasks.js';
import { type JsonNode, Rope, scanJson, writeObject } from '../../../jsonrpc/index.js';
import { encodeError } from '../wire/errors.js';
import { encodeResult } from '../wire/results.js';
import { lackingCapabilities, serverRequestKind } from '../wire/server-requests.js';
import { OpenServerRequests } from './open-server-requests.js';

export interface KeptTaskOptions {
  /** The sealed name, which is the client's task id. */
  readonly id: string;
  readonly caller: Caller;
  /** Longest time to keep the task, in milliseconds from its creation on. */
  readonly maxTtlMs: number;
  /** Called when the place is given back without a task. */
  readonly onGivenBack: () => void;
  readonly times?: KeptTaskTimes;
}

export interface KeptTaskTimes {
  /** How long `tasks/get` waits for the server requests of a task that is `input_required`. */
  readonly serverRequestsMs: number;
  /** How long it then waits for more of them, so that they are sent together. */
  readonly gatherMs: number;
}

const DEFAULT_TIMES: KeptTaskTimes = { serverRequestsMs: 1_000, gatherMs: 25 };

/** A task that a client polls: keeps the server requests of the task, and its outcome, until the client fetches them. */
export class KeptTask implements TaskPlace {
  readonly #options: KeptTaskOptions;
  readonly #serverRequests = new OpenServerRequests();
  #task: BackendTask | undefined;
  #keptAt = 0;
  #onServerRequest: (() => void) | undefined;
  /** On the monotonic clock. */
  expiresAt = Number.POSITIVE_INFINITY;
  #delivered = false;

  constructor(options: KeptTaskOptions) {
    this.#options = options;
  }

  get id(): string {
    return this.#options.id;
  }

  get caller(): Caller {
    return this.#options.caller;
  }

  /** Size of the kept outcome in bytes. */
  get size(): number {
    const outcome = this.#task?.outcome;
    return outcome?.type === 'result' ? outcome.bytes.length : 0;
  }

  /** Whether the client has fetched the end of the task. */
  get delivered(): boolean {
    return this.#delivered;
  }

  get over(): boolean {
    return this.#task !== undefined && (this.#task.outcome !== undefined || isCancelled(this.#task));
  }

  keep(task: BackendTask): KeptHandle {
    this.#task = task;
    this.#keptAt = performance.now();
    this.#setExpiry(task);
    return { taskId: this.id, ttlMs: this.#ttlOf(task) };
  }

  giveBack(): void {
    if (this.#task === undefined) this.#options.onGivenBack();
  }

  notify(message: ServerMessage): boolean {
    if (message.method === 'notifications/cancelled') this.#serverRequests.withdraw(message);
    return true;
  }

  onDrain(resume: () => void): void {
    resume();
  }

  ask(request: ServerRequest): Promise<ClientAnswer> {
    const kind = serverRequestKind(request.method);
    if (kind === undefined)
      return Promise.reject(new ServerRequestRefused(`Method not found: ${request.method}`));
    if (lackingCapabilities(request, this.caller.capabilities.value) !== undefined)
      return Promise.reject(
        new ServerRequestRefused(`the client did not declare what ${request.method} needs`),
      );
    const { full } = this.#serverRequests;
    if (full !== undefined) return Promise.reject(full);
    const answer = this.#serverRequests.add(kind, request);
    this.#onServerRequest?.();
    return answer;
  }

  /**
   * Updates the state of the task and describes it.
   * @throws ExchangeError when its backend cannot be asked
   */
  async look(caller: Caller): Promise<Outcome> {
    const task = this.#task as BackendTask;
    await task.look(caller);
    this.#setExpiry(task);
    if (task.state.status === 'input_required' && task.outcome === undefined)
      await this.#awaitServerRequests();
    this.#delivered ||= this.over;
    return this.#describe(task);
  }

  /** Passes on the client's answers; answers to other keys are ignored (extension, "Task Update"). */
  update(bytes: Buffer, responses: JsonNode): void {
    this.#serverRequests.answer(bytes, responses);
  }

  async cancel(caller: Caller): Promise<void> {
    await this.#task?.cancel(caller);
  }

  /** Ends the task: cancels it if it still runs, and frees what is held for it. */
  async end(): Promise<void> {
    this.#serverRequests.settleAll(() => new ServerRequestWithdrawn());
    await this.#task?.end();
  }

  /** A server may change the time to live of a task. */
  #setExpiry(task: BackendTask): void {
    this.expiresAt = this.#keptAt + this.#ttlOf(task);
  }

  #ttlOf({ state }: BackendTask): number {
    return Math.min(state.ttlMs ?? Number.POSITIVE_INFINITY, this.#options.maxTtlMs);
  }

  async #awaitServerRequests(): Promise<void> {
    if (this.#serverRequests.size > 0) return;
    const { serverRequestsMs, gatherMs } = this.#options.times ?? DEFAULT_TIMES;
    const came = await new Promise<boolean>((resolve) => {
      const timer = setTimeout(() => resolve(false), serverRequestsMs);
      this.#onServerRequest = () => {
        clearTimeout(timer);
        resolve(true);
      };
    });
    this.#onServerRequest = undefined;
    if (came) await new Promise((resolve) => setTimeout(resolve, gatherMs));
  }

  /** The task as the result of `tasks/get` (extension, "Task Polling"). */
  #describe(task: BackendTask): ResultOutcome {
    const { state, outcome } = task;
    const result = ownResult(state.text, scanJson(state.text, 1));
    const { edits } = result;
    edits.set('taskId', JSON.stringify(this.id));
    edits.set('ttlMs', String(this.#ttlOf(task)));
    if (outcome?.type === 'result') {
      edits.set('status', '"completed"');
      edits.set('result', inlineResult(outcome));
    } else if (outcome?.type === 'error') {
      const { code, data } = encodeError(outcome, { uri: undefined, knownMethod: true });
      const error = new Rope().push(`{"code":${code},"message":`).pushString(outcome.message);
      if (data !== undefined) error.push(',"data":').push(data);
      edits.set('status', '"failed"');
      edits.set('error', error.push('}'));
    } else if (this.#serverRequests.size > 0) {
      edits.set('status', '"input_required"');
      edits.set('inputRequests', this.#serverRequests.inputRequests());
    } else if (!isCancelled(task)) edits.set('status', '"working"');
    return result;
  }
}

/** A cancelled task is over without an outcome; in any other final state the outcome is still to come. */
function isCancelled({ state }: BackendTask): boolean {
  return state.status === 'cancelled';
}

/** The result of the call, encoded as if the client had waited for it. */
function inlineResult(outcome: ResultOutcome): Rope {
  const own = { ...outcome, edits: new Map(outcome.edits), serverInfo: undefined };
  encodeResult('tools/call', own, { ttlMs: 0, scope: 'private' });
  const out = new Rope();
  writeObject(out, own.bytes, own.node, own.edits);
  return out;
}
