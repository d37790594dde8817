import { randomBytes } from 'node:crypto';
import type { Caller } from '../../../exchange/caller.js';
import type { Principal } from '../../../exchange/credentials.js';
import { ownerOf } from '../../../exchange/credentials.js';
import { CODE, ExchangeError } from '../../../exchange/errors.js';
import type { Exchange } from '../../../exchange/exchange.js';
import { isSameVariant } from '../../../exchange/forwarded-headers.js';
import { type Outcome, ownError, ownResult } from '../../../exchange/outcome.js';
import { type TaskKeeper, type TaskLimits, taskNotFound, tasksUndeclared } from '../../../exchange/tasks.js';
import { abortable } from '../../../exchange/utils/abortable.js';
import { Quota } from '../../../exchange/utils/quota.js';
import type { Sealer } from '../../../exchange/utils/sealer.js';
import type { Ticker, Ticking } from '../../../exchange/utils/ticker.js';
import { NOWHERE } from '../../../exchange/utils/unordered-set.js';
import { getMember, nameMap, scanJson } from '../../../jsonrpc/index.js';
import { KeptTask } from './kept-task.js';

export interface KeptTasksOptions extends TaskLimits {
  /** Path of the route that the tasks are on. */
  readonly route: string;
  readonly sealer: Sealer;
  readonly ticker: Ticker;
}

/** Limit of all outcomes in bytes. Those that a client has fetched are evicted first, then the oldest. */
const MAX_BYTES = 64 * 1024 * 1024;

type TaskMethod = (task: KeptTask, exchange: Exchange) => Promise<Outcome>;

/**
 * Tasks of legacy backends that the gateway keeps for modern clients, which have the tasks extension. The client's task id is
 * a sealed name, which is valid on this route, for its principal, and in this process: it holds the backend session.
 */
export class KeptTasks implements Ticking {
  place = NOWHERE;
  readonly #options: KeptTasksOptions;
  readonly #instance = randomBytes(6).toString('base64url');
  /** By number, oldest first. */
  readonly #tasks = new Map<string, KeptTask>();
  readonly #quota: Quota;

  constructor(options: KeptTasksOptions) {
    this.#options = options;
    this.#quota = new Quota(options, (whose) => `tasks${whose}`);
  }

  keeperFor(caller: Caller): TaskKeeper {
    return { admit: () => this.#admit(caller) };
  }

  /**
   * The outcome of a request about a kept task.
   * @param authenticate verifies at the backend that a renewed credential belongs to the owner that it names; rejects
   *   with an ExchangeError if it does not
   * @returns undefined for any other request
   */
  answer(exchange: Exchange, authenticate: (caller: Caller) => Promise<void>): Promise<Outcome> | undefined {
    const { method, name } = exchange.request;
    const answer = METHODS.get(method);
    const content = answer === undefined ? undefined : this.#open(name ?? '');
    if (answer === undefined || content === undefined) return undefined;
    if (exchange.taskKeeper === undefined) return Promise.resolve(tasksUndeclared());
    const { caller } = exchange;
    const task = this.#find(content, caller);
    if (task === undefined) return Promise.resolve(taskNotFound());
    const proof = task.caller.principal === caller.principal ? undefined : () => authenticate(caller);
    return this.#answer(answer, task, exchange, proof);
  }

  /** Drops expired tasks. */
  tick(now: number): void {
    for (const [number, task] of this.#tasks) if (now >= task.expiresAt) void this.#drop(number, task);
    if (this.#tasks.size === 0) this.#options.ticker.remove(this);
  }

  /** Drops all tasks; those that still run are cancelled. */
  async close(): Promise<void> {
    await Promise.all([...this.#tasks].map(([number, task]) => this.#drop(number, task)));
  }

  async #answer(
    answer: TaskMethod,
    task: KeptTask,
    exchange: Exchange,
    proof: (() => Promise<void>) | undefined,
  ): Promise<Outcome> {
    try {
      if (proof !== undefined) await abortable(exchange.signal, proof());
      return await abortable(exchange.signal, answer(task, exchange));
    } catch (error) {
      if (!(error instanceof ExchangeError)) throw error;
      return error.outcome;
    } finally {
      this.#trim();
    }
  }

  #admit(caller: Caller): KeptTask {
    const { principal } = caller;
    const full = this.#quota.full(principal);
    if (full !== undefined) this.#evictDelivered(full === 'own' ? principal : undefined);
    this.#quota.take(principal);
    const number = randomBytes(12).toString('base64url');
    const { sealer, route, ttlMs, ticker } = this.#options;
    const id = sealer.seal(purposeOf(route), JSON.stringify([this.#instance, number]));
    const onGivenBack = (): void => {
      if (this.#tasks.delete(number)) this.#quota.give(principal);
    };
    const task = new KeptTask({ id, caller, maxTtlMs: ttlMs, onGivenBack });
    this.#tasks.set(number, task);
    ticker.add(this);
    return task;
  }

  #open(id: string): string | undefined {
    return this.#options.sealer.open(purposeOf(this.#options.route), id);
  }

  /** A task of the caller: of its principal, or of one whose credential names the same owner, which is not verified here. */
  #find(content: string, { principal, forwarded }: Caller): KeptTask | undefined {
    const [instance, number] = JSON.parse(content) as [string, string];
    const task = instance === this.#instance ? this.#tasks.get(number) : undefined;
    if (task === undefined || performance.now() >= task.expiresAt) return undefined;
    if (!isSameVariant(task.caller.forwarded, forwarded)) return undefined;
    if (task.caller.principal === principal) return task;
    const owner = ownerOf(forwarded.authorization);
    return owner !== undefined && owner === ownerOf(task.caller.forwarded.authorization) ? task : undefined;
  }

  /** Drops the oldest task whose end its client has fetched, to make room for a new one. */
  #evictDelivered(principal: Principal | undefined): void {
    for (const [number, task] of this.#tasks) {
      if (!task.delivered || (principal !== undefined && task.caller.principal !== principal)) continue;
      void this.#drop(number, task);
      return;
    }
  }

  /** Drops tasks until their outcomes are within the limit. */
  #trim(): void {
    let bytes = 0;
    for (const task of this.#tasks.values()) bytes += task.size;
    for (const delivered of [true, false]) {
      for (const [number, task] of this.#tasks) {
        if (bytes <= MAX_BYTES) return;
        if (task.size === 0 || task.delivered !== delivered) continue;
        bytes -= task.size;
        void this.#drop(number, task);
      }
    }
  }

  /** Forgets a task; resolves when its backend has been notified, and never rejects. */
  #drop(number: string, task: KeptTask): Promise<void> {
    if (!this.#tasks.delete(number)) return Promise.resolve();
    this.#quota.give(task.caller.principal);
    return task.end();
  }
}

/** Binds a name to its route. */
const purposeOf = (route: string): string => `task ${route}`;

const EMPTY = Buffer.from('{}');

/** By method of the extension. */
const METHODS: ReadonlyMap<string, TaskMethod> = nameMap({
  'tasks/get': (task, { caller }) => task.look(caller),
  'tasks/update': async (task, { request }) => {
    const { bytes, node } = request.params;
    const responses = node === undefined ? undefined : getMember(bytes, node, 'inputResponses');
    if (responses?.kind !== 'object')
      return ownError({ code: CODE.invalidParams, message: 'params.inputResponses must be an object' });
    task.update(bytes, responses);
    return acknowledged();
  },
  'tasks/cancel': async (task, { caller }) => {
    await task.cancel(caller);
    return acknowledged();
  },
});

function acknowledged(): Outcome {
  return ownResult(EMPTY, scanJson(EMPTY, 1));
}
