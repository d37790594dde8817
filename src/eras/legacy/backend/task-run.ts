import type { Caller } from '../../../exchange/caller.js';
import { isChange } from '../../../exchange/changes/change.js';
import type { Channel, ClientAnswer, ServerMessage, ServerRequest } from '../../../exchange/channel.js';
import { badGateway, CODE, ExchangeError } from '../../../exchange/errors.js';
import { faultsTo } from '../../../exchange/failures.js';
import type { ForwardedHeaders } from '../../../exchange/forwarded-headers.js';
import { backendError, type Outcome, ownError, type ResultOutcome } from '../../../exchange/outcome.js';
import { type BackendTask, isFinal, type TaskState } from '../../../exchange/tasks.js';
import {
  getMember,
  type NotificationFrame,
  type RequestFrame,
  type ResultFrame,
  Rope,
  requestRope,
  stringOf,
} from '../../../jsonrpc/index.js';
import type { Backpressure } from '../../../upstream/backpressure.js';
import type { RpcListener, RpcReply } from '../../../upstream/rpc-call.js';
import { decodeResult } from '../wire/results.js';
import { dropRelatedTask, neutralTask } from '../wire/tasks.js';
import { whyNoAnswer } from './replies.js';
import { type Answering, answerServer } from './server-requests.js';
import type { BackendSession, SessionCall } from './session.js';

const STATUS = 'notifications/tasks/status';
/** How long a server may take to say how a task is. */
const LOOK_MS = 30_000;
/** How long a look waits for the result of a task that is over. */
const RESULT_MS = 2_000;
/** How long the end of a task that nobody wants any more may take. */
const END_MS = 2_000;

/** What a run of a task needs of the call that began it. */
export interface TaskRunOptions {
  readonly session: BackendSession;
  /** The answer to the call. */
  readonly state: TaskState;
  readonly caller: Caller;
  /** Where questions and notifications go. */
  readonly channel: Channel;
  /** A notification as the client is to have it; undefined where it is not for it. */
  readonly tell: (frame: NotificationFrame) => ServerMessage | undefined;
  /** Answers `roots/list` where the client is not to be asked. */
  readonly answerRoots: (ask: () => Promise<ClientAnswer>) => Promise<ClientAnswer>;
  readonly onChange: (frame: NotificationFrame) => void;
  /** Nothing more is wanted of the session. */
  readonly onOver: () => void;
}

/**
 * A tool call that a legacy server carries out as a task (2025-11-25, basic/utilities/tasks), looked after on the session
 * that it was made on: servers know their tasks by session, and put questions on the stream of `tasks/result`.
 */
export class TaskRun implements BackendTask, RpcListener, Answering {
  readonly #options: TaskRunOptions;
  readonly #session: BackendSession;
  readonly #ignoreFailure: (error: unknown) => undefined;
  #caller: Caller;
  #state: TaskState;
  #outcome: Outcome | undefined;
  #over = false;
  #looking: Promise<void> | undefined;
  /** The `tasks/result` that is open. */
  #result: SessionCall | undefined;
  #fetching: Promise<void> | undefined;
  #ending: Promise<void> | undefined;
  #onNews: (() => void) | undefined;

  constructor(options: TaskRunOptions) {
    this.#options = options;
    this.#session = options.session;
    this.#ignoreFailure = faultsTo(options.session.backend.onFault);
    this.#caller = options.caller;
    this.#state = options.state;
  }

  get state(): TaskState {
    return this.#state;
  }

  get outcome(): Outcome | undefined {
    return this.#outcome;
  }

  /** Calls `listener` once the server has something new to tell. */
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
    const reply = await this.#ask('tasks/cancel');
    if (reply.kind !== 'response') throw whyNoAnswer(this.#session, reply);
    // A task in its final state is not cancelled any more, which the client is to find out by looking.
    if (reply.frame.type === 'error') return;
    this.#see(reply.frame);
    if (this.#state.status === 'cancelled') this.#finish(undefined);
  }

  end(): Promise<void> {
    this.#ending ??= this.#end();
    return this.#ending;
  }

  async #end(): Promise<void> {
    if (this.#over) return;
    if (!this.#session.lost && !isFinal(this.#state.status)) {
      const body = requestRope(this.#session.takeId(), 'tasks/cancel', this.#params());
      const limits = { repeatable: true, limitMs: END_MS };
      await this.#session.post(body, this.forwarded, limits).catch(this.#session.backend.onFault);
    }
    this.#finish(undefined);
  }

  onNotification(frame: NotificationFrame): Backpressure | undefined {
    const { method, params, bytes } = frame;
    if (method === STATUS) {
      const told = params === undefined ? undefined : stringOf(bytes, getMember(bytes, params, 'taskId'));
      if (told === this.#state.taskId) this.#onNews?.();
      return undefined;
    }
    if (isChange(method)) this.#options.onChange(frame);
    const { channel, tell } = this.#options;
    const message = tell(frame);
    if (message === undefined || channel.notify(message)) return undefined;
    return (resume) => channel.onDrain(resume);
  }

  /** A question of the server, for whoever follows the task. */
  onRequest(frame: RequestFrame): void {
    void answerServer(this.#session, frame, this);
  }

  get forwarded(): ForwardedHeaders {
    return this.#caller.forwarded;
  }

  get over(): boolean {
    return this.#over;
  }

  answerTo(question: ServerRequest): Promise<ClientAnswer> {
    const { channel, answerRoots } = this.#options;
    const ask = (): Promise<ClientAnswer> => channel.ask(question);
    return question.method === 'roots/list' ? answerRoots(ask) : ask();
  }

  async #look(): Promise<void> {
    const reply = await this.#ask('tasks/get');
    if (this.#over) return;
    if (reply.kind !== 'response') throw whyNoAnswer(this.#session, reply);
    if (reply.frame.type === 'error')
      throw new ExchangeError(backendError(reply.frame, reply.status, 'neutral'));
    this.#see(reply.frame);
    const { status } = this.#state;
    if (status === 'cancelled') this.#finish(undefined);
    else if (status === 'input_required') this.#fetchAside();
    else if (isFinal(status)) await this.#fetchInTime();
  }

  /** Whoever looks is not held up by a server that does not come out with the result: it is there for the next look. */
  async #fetchInTime(): Promise<void> {
    // One that was open already may have been refused while the task still ran.
    const fetched = this.#fetch().then(() => (this.#over ? undefined : this.#fetch()));
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(() => {
        fetched.catch(this.#ignoreFailure);
        resolve();
      }, RESULT_MS).unref();
    });
    await Promise.race([fetched, late]).finally(() => clearTimeout(timer));
  }

  /** Carries what the task asks for. A failure shows when the client looks again. */
  #fetchAside(): void {
    this.#fetch().catch(this.#ignoreFailure);
  }

  #see({ bytes, result }: ResultFrame): void {
    const state = neutralTask(bytes, result, new Date());
    if (state?.taskId !== this.#state.taskId)
      throw badGateway(`${this.#session.backend.name} told of no task`);
    this.#state = state;
  }

  /**
   * Holds `tasks/result` open: it is answered at the end, and carries the questions until then. Some servers do not
   * wait, and refuse before the end.
   */
  #fetch(): Promise<void> {
    this.#fetching ??= this.#fetchResult().finally(() => {
      this.#fetching = undefined;
    });
    return this.#fetching;
  }

  async #fetchResult(): Promise<void> {
    this.#result = this.#session.request('tasks/result', () => this.#params(), this.forwarded, this);
    const reply = await this.#result.done;
    this.#result = undefined;
    if (this.#over || this.#isLost(reply)) return;
    if (reply.kind !== 'response') {
      if (isFinal(this.#state.status)) throw whyNoAnswer(this.#session, reply);
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

  /** A request about the task that is answered at once. */
  async #ask(method: 'tasks/get' | 'tasks/cancel'): Promise<RpcReply> {
    const { rpc, done } = this.#session.request(method, () => this.#params(), this.forwarded, this);
    const timer = setTimeout(() => rpc.abort(`no answer to ${method} within ${LOOK_MS} ms`), LOOK_MS).unref();
    const reply = await done.finally(() => clearTimeout(timer));
    this.#isLost(reply);
    return reply;
  }

  /** A task goes with its session. */
  #isLost(reply: RpcReply): boolean {
    const { backend, id } = this.#session;
    if (!backend.losses.saysLost(reply, id)) return false;
    this.#session.drop();
    const message = `${backend.name} has lost the session, and with it the task`;
    this.#finish(ownError({ code: CODE.internal, message }));
    return true;
  }

  #params(): Rope {
    return new Rope().push(`{"taskId":${JSON.stringify(this.#state.taskId)}}`);
  }

  #finish(outcome: Outcome | undefined): void {
    if (this.#over) return;
    this.#over = true;
    this.#outcome = outcome;
    this.#result?.rpc.abort('the task is over');
    this.#options.onOver();
    this.#onNews?.();
  }
}
