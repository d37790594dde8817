import { LRUCache } from 'lru-cache';
import { abortable } from '../../../exchange/abortable.js';
import type { Exchange } from '../../../exchange/exchange.js';
import { isFailure } from '../../../exchange/failures.js';
import { isFinal, readTask, type TaskState } from '../../../exchange/tasks.js';
import type { Channel } from '../../../exchange/types.js';
import { getMember, type ResultFrame, Rope } from '../../../jsonrpc/index.js';
import { InputFailed, type InputRequest, readInputRequests } from '../wire/input-requests.js';
import { askInput } from './ask-input.js';

const USUAL_POLL_MS = 1_000;
const SHORTEST_POLL_MS = 50;
const LONGEST_POLL_MS = 10_000;

/** JoinedServerRequests that are remembered to be answered: a server may go on listing them for a while. */
const REMEMBERED = 10_000;

/** Whoever can be asked what a task wants to know. */
export type Asker = Pick<Channel, 'ask' | 'reachable'>;

/** The way to one task of a modern backend, on behalf of whoever follows it. */
export interface TaskAccess {
  /** Tells the task from all others, of whatever principal. */
  readonly key: string;
  /** @throws ExchangeError when the backend cannot be asked, or has no such task */
  get(): Promise<ResultFrame>;
  /** @param inputResponses JSON text */
  update(inputResponses: Rope): Promise<void>;
}

/** How a task ended: the answer to `tasks/get` that says so. */
export interface FinishedTask {
  readonly frame: ResultFrame;
  readonly state: TaskState;
}

/** The questions of one task that somebody at the client is being asked, or was: by whom. */
interface Asked {
  followers: number;
  readonly keys: Map<string, JoinedServerRequests>;
}

/**
 * Follows tasks of a modern backend to their ends, for clients whose one request waits for it, and puts their questions
 * to these clients (extension, "Task Polling", "Task Update Requests").
 */
export class TaskFollower {
  readonly #nextId: () => number;
  readonly #onFault: (error: unknown) => void;
  /** By task, while it is followed: several requests may wait for one. */
  readonly #asked = new Map<string, Asked>();
  readonly #answered = new LRUCache<string, true>({ max: REMEMBERED });

  /** @param nextId makes ids for questions, unique among all that the gateway asks */
  constructor(nextId: () => number, onFault: (error: unknown) => void) {
    this.#nextId = nextId;
    this.#onFault = onFault;
  }

  /**
   * @throws ExchangeError when the exchange is cancelled first, or the backend cannot be asked
   * @throws InputFailed when a question cannot be answered
   */
  async follow(exchange: Exchange, access: TaskAccess): Promise<FinishedTask> {
    const { questions, leave } = this.#join(exchange, access);
    try {
      return await this.#toEnd(exchange, access, questions);
    } finally {
      leave();
    }
  }

  /**
   * Puts the questions of a task to a client that does not wait for its result, if nobody is asked them yet. What comes of
   * that the client sees when it looks again.
   * @param frame the answer to `tasks/get` that tells of them
   */
  askAside(asker: Asker, access: TaskAccess, { bytes, result }: ResultFrame): void {
    if (this.#asked.has(access.key)) return;
    const { questions, leave } = this.#join(asker, access);
    try {
      questions.ask(readInputRequests(bytes, getMember(bytes, result, 'inputRequests'), this.#nextId));
    } catch (error) {
      if (!(error instanceof InputFailed)) throw error;
    }
    void questions.allSettled().then((failure) => {
      leave();
      if (failure !== undefined && !isFailure(failure) && !(failure instanceof InputFailed))
        this.#onFault(failure);
    });
  }

  #join(asker: Asker, access: TaskAccess): { questions: JoinedServerRequests; leave: () => void } {
    const asked = this.#asked.get(access.key) ?? { followers: 0, keys: new Map() };
    this.#asked.set(access.key, asked);
    asked.followers++;
    const questions = new JoinedServerRequests(asker, access, asked.keys, this.#answered);
    const leave = (): void => {
      questions.leave();
      if (--asked.followers === 0) this.#asked.delete(access.key);
    };
    return { questions, leave };
  }

  async #toEnd(
    exchange: Exchange,
    access: TaskAccess,
    questions: JoinedServerRequests,
  ): Promise<FinishedTask> {
    for (;;) {
      const frame = await abortable(exchange.signal, access.get());
      const { bytes, result } = frame;
      const state = readTask(bytes.subarray(result.start, result.end));
      if (state === undefined) throw new InputFailed('the backend told of no task');
      if (isFinal(state.status)) return { frame, state };
      if (state.status === 'input_required')
        questions.ask(readInputRequests(bytes, getMember(bytes, result, 'inputRequests'), this.#nextId));
      await abortable(exchange.signal, questions.settledOr(pauseOf(state)));
    }
  }
}

function pauseOf({ pollIntervalMs = USUAL_POLL_MS }: TaskState): number {
  return Math.min(Math.max(pollIntervalMs, SHORTEST_POLL_MS), LONGEST_POLL_MS);
}

/** The questions of a task that are put to one client. */
class JoinedServerRequests {
  readonly #asker: Asker;
  readonly #access: TaskAccess;
  /** Shared with others who follow the task. */
  readonly #keys: Map<string, JoinedServerRequests>;
  readonly #answered: LRUCache<string, true>;
  readonly #open = new Set<string>();
  readonly #asking: Promise<void>[] = [];
  #failure: unknown;
  #onSettled: (() => void) | undefined;

  constructor(
    asker: Asker,
    access: TaskAccess,
    keys: Map<string, JoinedServerRequests>,
    answered: LRUCache<string, true>,
  ) {
    this.#asker = asker;
    this.#access = access;
    this.#keys = keys;
    this.#answered = answered;
  }

  /** Whether a question is taken care of: it was answered, or whoever was asked may still answer. */
  sees(key: string): boolean {
    return !this.#open.has(key) || this.#asker.reachable !== false;
  }

  /**
   * Asks what nobody was asked yet, or only somebody who seems to have gone: the server repeats itself until it has the
   * answer.
   */
  ask(requests: readonly InputRequest[]): void {
    for (const request of requests) {
      const owner = this.#keys.get(request.key);
      if (owner === this || owner?.sees(request.key) === true) continue;
      if (this.#answered.has(this.#nameOf(request.key))) continue;
      this.#keys.set(request.key, this);
      this.#open.add(request.key);
      this.#asking.push(this.#askOne(request));
    }
  }

  /**
   * Resolves after a while, or once there is something new.
   * @throws what a question failed with
   */
  async settledOr(ms: number): Promise<void> {
    if (this.#failure === undefined) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, ms);
        this.#onSettled = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** Resolves once all that was asked has been answered, or cannot be: with the first error. */
  async allSettled(): Promise<unknown> {
    await Promise.all(this.#asking);
    return this.#failure;
  }

  /** What was not answered may be asked by others. */
  leave(): void {
    for (const key of this.#open) if (this.#keys.get(key) === this) this.#keys.delete(key);
    this.#onSettled?.();
  }

  #nameOf(key: string): string {
    return `${this.#access.key} ${key}`;
  }

  async #askOne(request: InputRequest): Promise<void> {
    const { key } = request;
    try {
      const { result } = await askInput(this.#asker, request);
      const responses = new Rope()
        .push(`{${JSON.stringify(key)}:`)
        .push(result)
        .push('}');
      await this.#access.update(responses);
      this.#open.delete(key);
      this.#answered.set(this.#nameOf(key), true);
    } catch (error) {
      this.#failure ??= error;
    }
    this.#onSettled?.();
  }
}
