import type { Caller } from '../../../exchange/caller.js';
import { isChange } from '../../../exchange/changes/change.js';
import type { Channel, ClientAnswer, ServerMessage, ServerRequest } from '../../../exchange/channel.js';
import { ExchangeError } from '../../../exchange/errors.js';
import { faultsTo } from '../../../exchange/failures.js';
import type { ForwardedHeaders } from '../../../exchange/forwarded-headers.js';
import { backendError, type Outcome, type ResultOutcome } from '../../../exchange/outcome.js';
import { type BackendTask, isFinal, type TaskState } from '../../../exchange/tasks.js';
import {
  type NotificationFrame,
  type RequestFrame,
  type ResultFrame,
  Rope,
  stringMember,
} from '../../../jsonrpc/index.js';
import { backendFailure } from '../../../upstream/backend-errors.js';
import type { Backpressure } from '../../../upstream/backpressure.js';
import type { RpcListener, RpcReply } from '../../../upstream/rpc-call.js';
import { decodeResult } from '../wire/results.js';
import { dropRelatedTask, neutralTask } from '../wire/tasks.js';
import { LEGACY_BACKEND_ERRORS } from './errors.js';
import { missingResponse } from './replies.js';
import { respondTo, type ServerRequestHandler } from './server-requests.js';
import type { BackendSession } from './session.js';
import { TaskResult } from './task-result.js';

const STATUS = 'notifications/tasks/status';

/** What the run of a task needs of the call that created it. */
export interface TaskRunOptions {
  readonly session: BackendSession;
  /** As in the result of the call. */
  readonly state: TaskState;
  readonly caller: Caller;
  /** Receives the server's requests and notifications. */
  readonly channel: Channel;
  /** Turns a notification into the client's form; undefined if it is not for the client. */
  readonly messageFor: (frame: NotificationFrame) => ServerMessage | undefined;
  /** Answers `roots/list`. @param ask asks the client */
  readonly answerRoots: (ask: () => Promise<ClientAnswer>) => Promise<ClientAnswer>;
  /** Called for each change that is notified. */
  readonly onChange: (frame: NotificationFrame) => void;
  /** Called when the session is not needed any longer. */
  readonly onOver: () => void;
}

/**
 * A task of a legacy server (2025-11-25, basic/utilities/tasks), followed on the session of the call that created it, since
 * servers keep their tasks per session.
 */
export class TaskRun implements BackendTask, RpcListener, ServerRequestHandler {
  readonly #options: TaskRunOptions;
  readonly #session: BackendSession;
  #caller: Caller;
  #state: TaskState;
  #outcome: Outcome | undefined;
  #over = false;
  #looking: Promise<void> | undefined;
  readonly #result: TaskResult;
  #ending: Promise<void> | undefined;
  #onNews: (() => void) | undefined;

  constructor(options: TaskRunOptions) {
    this.#options = options;
    this.#session = options.session;
    this.#result = new TaskResult(
      () => this.#session.request('tasks/result', () => this.#params(), this.forwarded, this),
      (reply) => this.#onResultReply(reply),
      faultsTo(options.session.backend.onFault),
    );
    this.#caller = options.caller;
    this.#state = options.state;
  }

  get state(): TaskState {
    return this.#state;
  }

  /** Pause between two polls, if the server sets none. */
  get defaultPollMs(): number {
    return this.#session.backend.times.taskPollMs;
  }

  get outcome(): Outcome | undefined {
    return this.#outcome;
  }

  /** Sets the function that is called when the state of the task may have changed. */
  onNews(listener: (() => void) | undefined): void {
    this.#onNews = listener;
  }

  look(caller: Caller): Promise<void> {
    this.#caller = caller;
    if (this.#over) return Promise.resolve();
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  async cancel(caller: Caller): Promise<void> {
    this.#caller = caller;
    if (this.#over) return;
    const reply = await this.#request('tasks/cancel');
    if (reply.kind !== 'response') throw missingResponse(this.#session, reply);
    // The task is in a final state, which the client sees in the next `tasks/get`.
    if (reply.frame.type === 'error') return;
    this.#update(reply.frame);
    if (this.#state.status === 'cancelled') this.#finish(undefined);
  }

  end(): Promise<void> {
    this.#ending ??= this.#end();
    return this.#ending;
  }

  async #end(): Promise<void> {
    if (this.#over) return;
    if (!this.#session.lost && !isFinal(this.#state.status)) {
      const { times, onFault } = this.#session.backend;
      const limits = { repeatable: true, limitMs: times.endTaskMs };
      await this.#session.postRequest('tasks/cancel', this.#params(), this.forwarded, limits).catch(onFault);
    }
    this.#finish(undefined);
  }

  onNotification(frame: NotificationFrame): Backpressure | undefined {
    const { method, params, bytes } = frame;
    if (method === STATUS) {
      if (stringMember(bytes, params, 'taskId') === this.#state.taskId) this.#onNews?.();
      return undefined;
    }
    if (isChange(method)) this.#options.onChange(frame);
    const { channel, messageFor } = this.#options;
    const message = messageFor(frame);
    if (message === undefined || channel.notify(message)) return undefined;
    return (resume) => channel.onDrain(resume);
  }

  onRequest(frame: RequestFrame): void {
    void respondTo(this.#session, frame, this);
  }

  get forwarded(): ForwardedHeaders {
    return this.#caller.forwarded;
  }

  get over(): boolean {
    return this.#over;
  }

  answerTo(request: ServerRequest): Promise<ClientAnswer> {
    const { channel, answerRoots } = this.#options;
    const ask = (): Promise<ClientAnswer> => channel.ask(request);
    return request.method === 'roots/list' ? answerRoots(ask) : ask();
  }

  async #look(): Promise<void> {
    const reply = await this.#request('tasks/get');
    if (this.#over) return;
    if (reply.kind !== 'response') throw missingResponse(this.#session, reply);
    if (reply.frame.type === 'error')
      throw new ExchangeError(backendError(reply.frame, reply.status, 'neutral'));
    this.#update(reply.frame);
    const { status } = this.#state;
    if (status === 'cancelled') this.#finish(undefined);
    else if (status === 'input_required') this.#result.open();
    else if (isFinal(status))
      await this.#result.fetchWithin(this.#session.backend.times.taskResultMs, () => this.#over);
  }

  #update({ bytes, result }: ResultFrame): void {
    const state = neutralTask(bytes, result, new Date());
    if (state?.taskId !== this.#state.taskId)
      throw backendFailure(
        this.#session.backend,
        LEGACY_BACKEND_ERRORS.ERAGATE_TASK_UNREADABLE,
        'answered with something else than the task',
      );
    this.#state = state;
  }

  #onResultReply(reply: RpcReply): void {
    if (this.#over || this.#isLost(reply)) return;
    if (reply.kind !== 'response') {
      if (isFinal(this.#state.status)) throw missingResponse(this.#session, reply);
    } else if (reply.frame.type === 'result') this.#finish(this.#resultOf(reply.frame));
    else if (isFinal(this.#state.status)) this.#finish(backendError(reply.frame, reply.status, 'neutral'));
  }

  #resultOf({ bytes, result }: ResultFrame): ResultOutcome {
    const edits = new Map<string, Rope | string | undefined>();
    decodeResult('tools/call', bytes, result, edits);
    dropRelatedTask(bytes, result, edits);
    const { serverInfo } = this.#session.info;
    return { type: 'result', bytes, node: result, edits, form: 'neutral', serverInfo, frameId: undefined };
  }

  /** Sends a request about the task that the server answers at once. */
  async #request(method: 'tasks/get' | 'tasks/cancel'): Promise<RpcReply> {
    const options = { listener: this, limitMs: this.#session.backend.times.taskRequestMs };
    const reply = await this.#session.timedRequest(method, this.#params(), this.forwarded, options);
    this.#isLost(reply);
    return reply;
  }

  /** Whether the session is lost, which ends the task as well. */
  #isLost(reply: RpcReply): boolean {
    const { backend, id } = this.#session;
    if (!backend.lostSessions.isLost(reply, id)) return false;
    this.#session.markLost();
    const { ERAGATE_TASK_LOST } = LEGACY_BACKEND_ERRORS;
    this.#finish(
      backendFailure(backend, ERAGATE_TASK_LOST, 'has lost the session, and with it the task').outcome,
    );
    return true;
  }

  #params(): Rope {
    return new Rope().push(`{"taskId":${JSON.stringify(this.#state.taskId)}}`);
  }

  #finish(outcome: Outcome | undefined): void {
    if (this.#over) return;
    this.#over = true;
    this.#outcome = outcome;
    this.#result.abort('the task is over');
    this.#options.onOver();
    this.#onNews?.();
  }
}
