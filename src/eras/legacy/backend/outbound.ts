import { availableParallelism } from 'node:os';
import { type Caller, identityOf } from '../../../exchange/caller.js';
import { type Change, changeOf, LIST_CHANGES } from '../../../exchange/changes/change.js';
import type { ChangeFilter } from '../../../exchange/changes/change-filter.js';
import type { Subscriber, Subscription } from '../../../exchange/changes/subscription.js';
import { principalOf } from '../../../exchange/credentials.js';
import type { Exchange } from '../../../exchange/exchange.js';
import type { Outbound, ServerDescription } from '../../../exchange/outbound.js';
import type { Outcome } from '../../../exchange/outcome.js';
import { waitFor } from '../../../exchange/utils/abortable.js';
import { CircuitBreakers } from '../../../exchange/utils/circuit-breaker.js';
import { keyText } from '../../../exchange/utils/hash.js';
import type { BackendSideOptions } from '../../era.js';
import { BoundCalls } from './bound-calls.js';
import { type HandshakeParams, HandshakeRefused, openSession } from './handshake.js';
import { LegacyBackend } from './legacy-backend.js';
import { PooledCalls } from './pooled-calls.js';
import { PooledSessions } from './pooled-sessions.js';
import { refusedHandshake } from './replies.js';
import { Roots } from './roots.js';
import { describe } from './server-description.js';
import type { BackendSession } from './session.js';
import { LegacyTasks } from './tasks.js';
import type { TimeLimits } from './time-limits.js';

/** Processes that are started at once for the calls of one key: more of them only slow each other down. */
const MAX_STARTING = Math.max(4, availableParallelism());

/** The backend side of the legacy era: handshakes, sessions, and the calls on them. */
export class LegacyOutbound implements Outbound {
  readonly era = 'legacy';
  readonly #onChange: (change: Change) => void;
  readonly #backend: LegacyBackend;
  readonly #sessions: PooledSessions;
  readonly #pooled: PooledCalls;
  readonly #bound: BoundCalls;
  readonly #tasks: LegacyTasks;
  readonly #breakers: CircuitBreakers;

  constructor(options: BackendSideOptions, times: Partial<TimeLimits> = {}) {
    const { sessions, questions, tasks, ownInfo, ttlMs } = options;
    this.#onChange = options.onChange;
    this.#backend = new LegacyBackend({ ...options, lost: sessions.lost, times });
    this.#breakers = new CircuitBreakers(options.handshakeMs);
    const roots = new Roots(questions.roots);
    this.#tasks = new LegacyTasks(roots, tasks.optional);
    const open = (params: HandshakeParams): Promise<BackendSession> => this.#open(params);
    this.#sessions = new PooledSessions({
      ...sessions,
      ...(options.transport.ownsSessions === true ? { maxOpening: MAX_STARTING } : {}),
      ownInfo,
      roots,
      open,
      onChange: (change) => this.#changed(change),
      onFault: options.onFault,
    });
    this.#pooled = new PooledCalls({ sessions: this.#sessions, roots, tasks: this.#tasks, ttlMs });
    this.#bound = new BoundCalls({
      backend: this.#backend,
      roots,
      ttlMs,
      ownInfo,
      open,
      onChange: (frame) => this.#changed(changeOf(frame)),
    });
  }

  call(exchange: Exchange): Promise<Outcome> {
    const { session, era } = exchange.caller;
    // Tasks that the gateway keeps are served by the client side, which did not find this one.
    if (era !== 'legacy' && exchange.request.method.startsWith('tasks/')) return this.#unknownTask(exchange);
    return session === undefined ? this.#pooled.call(exchange) : this.#bound.call(exchange, session);
  }

  async describe(caller: Caller, signal?: AbortSignal): Promise<ServerDescription> {
    if (caller.session !== undefined) return this.#bound.describe(caller, caller.session, signal);
    const lease = await this.#sessions.acquire(caller, { method: undefined, signal });
    try {
      await waitFor(lease.session.getStreamSettled(), signal);
      return describe(lease.session, 'modern');
    } finally {
      lease.release();
    }
  }

  async authenticate(caller: Caller): Promise<void> {
    if (caller.session === undefined) await this.describe(caller);
    else await this.#bound.authenticate(caller, caller.session);
  }

  subscribe(caller: Caller, filter: ChangeFilter, subscriber: Subscriber): Promise<Subscription> {
    return this.#sessions.subscribe(caller, filter, subscriber);
  }

  async close(): Promise<void> {
    await this.#sessions.close();
  }

  #changed(change: Change): void {
    if (change.method === LIST_CHANGES.toolsListChanged) this.#tasks.forgetTools();
    this.#onChange(change);
  }

  async #unknownTask(exchange: Exchange): Promise<Outcome> {
    const { caller, signal } = exchange;
    const lease = await this.#sessions.acquire(caller, { method: undefined, signal });
    try {
      return this.#tasks.unknown(exchange, lease.session);
    } finally {
      lease.release();
    }
  }

  async #open(params: HandshakeParams): Promise<BackendSession> {
    try {
      return await this.#breakers.wait(breakerKey(params), () => openSession(this.#backend, params));
    } catch (error) {
      if (!(error instanceof HandshakeRefused)) throw error;
      throw refusedHandshake(this.#backend, error);
    }
  }
}

/** Equal for handshakes that a backend cannot tell apart. */
function breakerKey({ capabilities, clientInfo, forwarded }: HandshakeParams): string {
  const principal = principalOf(forwarded.authorization);
  return [identityOf({ principal, forwarded }), keyText(capabilities), keyText(clientInfo)].join(' ');
}
