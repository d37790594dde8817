import type { LRUCache } from 'lru-cache';
import type { Channel } from '../../../exchange/channel.js';
import { type ResultFrame, Rope } from '../../../jsonrpc/index.js';
import type { InputRequest } from '../wire/input-requests.js';
import { askInput } from './ask-input.js';

/** A client that server requests can be sent to. */
export type AskableClient = Pick<Channel, 'ask' | 'reachable'>;

/** Access to one task of a modern backend, on behalf of one caller. */
export interface TaskAccess {
  /** Unique among the tasks of all principals. */
  readonly key: string;
  /** @throws ExchangeError if the backend cannot be asked, or does not have the task */
  get(): Promise<ResultFrame>;
  /** @param inputResponses JSON text */
  update(inputResponses: Rope): Promise<void>;
}

/** The server requests of a task that are sent to one client. Several clients may follow the task: each request goes to one. */
export class TaskServerRequests {
  readonly #client: AskableClient;
  readonly #access: TaskAccess;
  /** Which client each request was sent to, by key in `inputRequests`; shared by all followers of the task. */
  readonly #owners: Map<string, TaskServerRequests>;
  readonly #answered: LRUCache<string, true>;
  readonly #open = new Set<string>();
  readonly #asking: Promise<void>[] = [];
  #failure: unknown;
  #onSettled: (() => void) | undefined;

  constructor(
    client: AskableClient,
    access: TaskAccess,
    owners: Map<string, TaskServerRequests>,
    answered: LRUCache<string, true>,
  ) {
    this.#client = client;
    this.#access = access;
    this.#owners = owners;
    this.#answered = answered;
  }

  /** Whether a request is answered, or its client may still answer it. */
  handles(key: string): boolean {
    return !this.#open.has(key) || this.#client.reachable !== false;
  }

  /**
   * Sends requests that no client has received yet, or only one that is no longer reachable. The server lists a request
   * until it has the answer.
   */
  ask(requests: readonly InputRequest[]): void {
    for (const request of requests) {
      const owner = this.#owners.get(request.key);
      if (owner === this || owner?.handles(request.key) === true) continue;
      if (this.#answered.has(this.#nameOf(request.key))) continue;
      this.#owners.set(request.key, this);
      this.#open.add(request.key);
      this.#asking.push(this.#askOne(request));
    }
  }

  /**
   * Resolves after `ms`, or when a request has been answered or has failed.
   * @throws the error of the first request that failed
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

  /** Resolves when every request has been answered or has failed, with the first error. */
  async allSettled(): Promise<unknown> {
    await Promise.all(this.#asking);
    return this.#failure;
  }

  /** Leaves unanswered requests to the other followers. */
  leave(): void {
    for (const key of this.#open) if (this.#owners.get(key) === this) this.#owners.delete(key);
    this.#onSettled?.();
  }

  #nameOf(key: string): string {
    return `${this.#access.key} ${key}`;
  }

  async #askOne(request: InputRequest): Promise<void> {
    const { key } = request;
    try {
      const { result } = await askInput(this.#client, request);
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
