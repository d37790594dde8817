import { ServerRequestRefused, ServerRequestWithdrawn } from '../../../exchange/errors.js';
import { type Outcome, ownResult, type ResultOutcome } from '../../../exchange/outcome.js';
import type { BackendTask, KeptHandle, TaskPlace } from '../../../exchange/tasks.js';
import type { Answer, Caller, ServerMessage, ServerRequest } from '../../../exchange/types.js';
import { type JsonNode, Rope, scanJson, writeObject } from '../../../jsonrpc/index.js';
import { encodeError } from '../wire/errors.js';
import { encodeResult } from '../wire/results.js';
import { lackingCapabilities, serverRequestKind } from '../wire/server-requests.js';
import { OpenServerRequests } from './open-server-requests.js';

/** How long a look waits for the questions of a task that says that it has some. */
const QUESTIONS_MS = 1_000;
/** JoinedServerRequests that come within this time of the first are told together. */
const GATHER_MS = 25;

/** What the keeper of a task has to say to it. */
export interface KeptTaskOptions {
  /** The name under which the client knows the task. */
  readonly id: string;
  readonly caller: Caller;
  /** Longest time that the task is kept, in milliseconds from its creation on. */
  readonly maxTtlMs: number;
  /** It was given its place for nothing. */
  readonly onGivenBack: () => void;
}

/**
 * A task of a client that asks about it from time to time: its questions wait here to be fetched, and what became of it
 * to be told.
 */
export class KeptTask implements TaskPlace {
  readonly #options: KeptTaskOptions;
  readonly #questions = new OpenServerRequests();
  #task: BackendTask | undefined;
  #keptAt = 0;
  #onServerRequest: (() => void) | undefined;
  /** On the monotonic clock. */
  expiresAt = Number.POSITIVE_INFINITY;
  /** The client was told how the task ended. */
  told = false;

  constructor(options: KeptTaskOptions) {
    this.#options = options;
  }

  get id(): string {
    return this.#options.id;
  }

  get caller(): Caller {
    return this.#options.caller;
  }

  /** Bytes that are kept of the outcome. */
  get size(): number {
    const outcome = this.#task?.outcome;
    return outcome?.type === 'result' ? outcome.bytes.length : 0;
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
    if (message.method === 'notifications/cancelled') this.#questions.withdraw(message);
    return true;
  }

  onDrain(resume: () => void): void {
    resume();
  }

  ask(question: ServerRequest): Promise<Answer> {
    const kind = serverRequestKind(question.method);
    if (kind === undefined)
      return Promise.reject(new ServerRequestRefused(`Method not found: ${question.method}`));
    if (lackingCapabilities(question, this.caller.capabilities.value) !== undefined)
      return Promise.reject(
        new ServerRequestRefused(`the client did not declare what ${question.method} needs`),
      );
    const { full } = this.#questions;
    if (full !== undefined) return Promise.reject(full);
    const answer = this.#questions.add(kind, question);
    this.#onServerRequest?.();
    return answer;
  }

  /**
   * Sees how the task goes on.
   * @throws ExchangeError when its backend cannot be asked
   */
  async look(caller: Caller): Promise<Outcome> {
    const task = this.#task as BackendTask;
    await task.look(caller);
    this.#setExpiry(task);
    if (task.state.status === 'input_required' && task.outcome === undefined) await this.#questionsOrNot();
    return this.#describe(task);
  }

  /** Takes the client's answers; those to what is not asked, or not any more, are none (extension, "Task Update"). */
  update(bytes: Buffer, responses: JsonNode): void {
    this.#questions.answer(bytes, responses);
  }

  async cancel(caller: Caller): Promise<void> {
    await this.#task?.cancel(caller);
  }

  /** Lets go of the task. */
  async end(): Promise<void> {
    this.#questions.settleAll(() => new ServerRequestWithdrawn());
    await this.#task?.end();
  }

  /** A server may think better of its time to live. */
  #setExpiry(task: BackendTask): void {
    this.expiresAt = this.#keptAt + this.#ttlOf(task);
  }

  #ttlOf({ state }: BackendTask): number {
    return Math.min(state.ttlMs ?? Number.POSITIVE_INFINITY, this.#options.maxTtlMs);
  }

  async #questionsOrNot(): Promise<void> {
    if (this.#questions.size > 0) return;
    const came = await new Promise<boolean>((resolve) => {
      const timer = setTimeout(() => resolve(false), QUESTIONS_MS);
      this.#onServerRequest = () => {
        clearTimeout(timer);
        resolve(true);
      };
    });
    this.#onServerRequest = undefined;
    if (came) await new Promise((resolve) => setTimeout(resolve, GATHER_MS));
  }

  /** The task as `tasks/get` tells of it ("Task Polling"). */
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
    } else if (this.#questions.size > 0) {
      edits.set('status', '"input_required"');
      edits.set('inputRequests', this.#questions.inputRequests());
    } else if (!isCancelled(task)) edits.set('status', '"working"');
    return result;
  }
}

/** The only end that a task can come to without an outcome; that of all others is still on its way. */
function isCancelled({ state }: BackendTask): boolean {
  return state.status === 'cancelled';
}

/** The result of the call as it would have been told if the call had waited for it. */
function inlineResult(outcome: ResultOutcome): Rope {
  const own = { ...outcome, edits: new Map(outcome.edits), serverInfo: undefined };
  encodeResult('tools/call', own, { ttlMs: 0, scope: 'private' });
  const out = new Rope();
  writeObject(out, own.bytes, own.node, own.edits);
  return out;
}
