import type { Caller } from '../../../exchange/caller.js';
import { type Change, changeOf, LIST_CHANGES } from '../../../exchange/changes/change.js';
import type { ChangeFilter } from '../../../exchange/changes/change-filter.js';
import type { Subscriber, Subscription } from '../../../exchange/changes/subscription.js';
import type { ClientSession, SealedBackendSession } from '../../../exchange/client-session.js';
import { badGateway } from '../../../exchange/errors.js';
import type { Exchange } from '../../../exchange/exchange.js';
import { isLogLevel } from '../../../exchange/log-levels.js';
import type { Outbound, ServerDescription } from '../../../exchange/outbound.js';
import type { Outcome } from '../../../exchange/outcome.js';
import type { EraName } from '../../../exchange/revision.js';
import { mayBeAsked } from '../../../exchange/server-requests.js';
import { abortable, waitFor } from '../../../exchange/utils/abortable.js';
import { CircuitBreaker } from '../../../exchange/utils/circuit-breaker.js';
import { type NotificationFrame, stringMember } from '../../../jsonrpc/index.js';
import type { RpcReply } from '../../../upstream/rpc-call.js';
import type { BackendSideOptions } from '../../era.js';
import { unknownInfo } from '../wire/initialize-info.js';
import { neutralServerCapabilities, withoutChangeNotifications } from '../wire/server-capabilities.js';
import { accepts } from './credential-check.js';
import { type HandshakeParams, HandshakeRefused, openSession } from './handshake.js';
import { LegacyBackend } from './legacy-backend.js';
import { LegacyCall } from './legacy-call.js';
import { LogLevels } from './log-levels.js';
import { PooledSessions } from './pooled-sessions.js';
import { outcomeOf, refusedHandshake, saidIn } from './replies.js';
import { Roots } from './roots.js';
import { BackendSession } from './session.js';
import { LegacySessionBinding } from './session-binding.js';
import type { Lease } from './session-lease.js';
import { SetUp } from './session-setup.js';
import { LegacyTasks } from './tasks.js';

/** The legacy era toward backends: handshakes, sessions, and the calls on them. */
export class LegacyOutbound implements Outbound {
  readonly era = 'legacy';
  readonly setUp = new SetUp();
  readonly onFault: (error: unknown) => void;
  readonly #options: BackendSideOptions;
  readonly #backend: LegacyBackend;
  readonly #pooled: PooledSessions;
  readonly #roots: Roots;
  readonly #tasks: LegacyTasks;
  readonly #levels = new LogLevels(this.setUp);
  readonly #breaker: CircuitBreaker;

  constructor(options: BackendSideOptions) {
    const { sessions, questions, tasks, ownInfo } = options;
    this.#options = options;
    this.onFault = options.onFault;
    this.#backend = new LegacyBackend({ ...options, lost: sessions.lost });
    this.#breaker = new CircuitBreaker(options.handshakeMs);
    this.#roots = new Roots(questions.roots);
    this.#tasks = new LegacyTasks(this.#roots, tasks.optional);
    this.#pooled = new PooledSessions({
      ...sessions,
      ownInfo,
      roots: this.#roots,
      setUp: this.setUp,
      open: (params) => this.#open(params),
      onChange: (change) => this.#changed(change),
      onFault: options.onFault,
    });
  }

  call(exchange: Exchange): Promise<Outcome> {
    const { session, era } = exchange.caller;
    const { method } = exchange.request;
    // Tasks of the caller's era are kept on its side, which knows all that there are.
    if (era !== 'legacy' && method.startsWith('tasks/')) return this.#unknownTask(exchange);
    return session === undefined ? this.#callPooled(exchange) : this.#callOwn(exchange, session);
  }

  async describe(caller: Caller, signal?: AbortSignal): Promise<ServerDescription> {
    if (caller.session !== undefined) {
      const binding = this.#binding(caller.session, caller);
      const session = await waitFor(binding.session(), signal);
      if (!this.#backend.knowsGetStream && promisesAny(session))
        await waitFor(binding.tryGetStream(), signal);
      return describe(session, 'legacy');
    }
    const lease = await this.#pooled.lease(caller, undefined, signal);
    try {
      await waitFor(lease.session.getStreamSettled(), signal);
      return describe(lease.session, 'modern');
    } finally {
      lease.release();
    }
  }

  async authenticate(caller: Caller): Promise<void> {
    const { session: client } = caller;
    if (client === undefined) {
      await this.describe(caller);
      return;
    }
    const known = client.binding instanceof LegacySessionBinding ? client.binding : undefined;
    const binding = known ?? new LegacySessionBinding(this, client, caller);
    await binding.authenticate(caller);
    if (known === undefined) this.#attach(client, binding);
  }

  subscribe(caller: Caller, filter: ChangeFilter, subscriber: Subscriber): Promise<Subscription> {
    return this.#pooled.subscribe(caller, filter, subscriber);
  }

  async close(): Promise<void> {
    await this.#pooled.close();
  }

  /** A change was told of on a stream that belongs to one client, which hears of it there. */
  readonly onChange = (frame: NotificationFrame): void => this.#changed(changeOf(frame));

  #changed(change: Change): void {
    if (change.method === LIST_CHANGES.toolsListChanged) this.#tasks.forget();
    this.#options.onChange(change);
  }

  async #unknownTask(exchange: Exchange): Promise<Outcome> {
    const lease = await this.#leaseFor(exchange, undefined);
    try {
      return this.#tasks.unknown(exchange, lease.session);
    } finally {
      lease.release();
    }
  }

  /** Opens a session for a client session; used by its affinity, also to replace a lost one. */
  open(caller: Caller): Promise<BackendSession> {
    return this.#open({
      revision: caller.revision,
      capabilities: caller.capabilities.text,
      clientInfo: caller.clientInfo ?? this.#options.ownInfo,
      forwarded: caller.forwarded,
    });
  }

  /** Takes up a session that another process of the gateway opened. */
  restore({ id, revision, cookies }: SealedBackendSession): BackendSession {
    const state = { firstRequestId: RESTORED_IDS_FROM(), cookies };
    return new BackendSession(this.#backend, unknownInfo(revision), id, state);
  }

  /** A call of a client with a session: on the one backend session that belongs to it. */
  #callOwn(exchange: Exchange, client: ClientSession): Promise<Outcome> {
    const binding = this.#binding(client, exchange.caller);
    exchange.notes.session = 'own';
    const { method } = exchange.request;
    if (!mayBeAsked(exchange.caller, method) && method !== TASK_RESULT)
      return this.#callOn(binding, exchange);
    const over = binding.expectQuestions();
    return this.#callOn(binding, exchange).finally(over);
  }

  async #callOn(binding: LegacySessionBinding, exchange: Exchange): Promise<Outcome> {
    for (let attempt = 0; ; attempt++) {
      const session = binding.ready ?? (await abortable(exchange.signal, binding.session()));
      const opening = session.getStreamSettled();
      if (opening !== undefined) await abortable(exchange.signal, opening);
      const reply = await new LegacyCall(exchange, session, this.#roots, this.onChange).run();
      const again = this.#mayRepeat(reply, session, attempt);
      if (again) {
        binding.replace(session);
        continue;
      }
      if (reply.kind === 'response' && reply.frame.type === 'result') rememberSetUp(binding, exchange);
      return outcomeOf(exchange, session, reply, this.#options.ttlMs);
    }
  }

  /** A call of a client without a session: on one that the gateway holds. */
  async #callPooled(exchange: Exchange): Promise<Outcome> {
    for (let attempt = 0; ; attempt++) {
      const { method } = exchange.request;
      const ready = this.#pooled.ready(exchange.caller, method);
      const lease = ready ?? (await this.#leaseFor(exchange, method));
      const { session } = lease;
      exchange.notes.session = session.id === undefined ? 'none' : lease.use;
      const onChange = (frame: NotificationFrame): void => this.#pooled.changed(exchange.caller, frame);
      const call = new LegacyCall(exchange, session, this.#roots, onChange);
      let kept = false;
      let attached: Disposable | undefined;
      let held: Disposable | undefined;
      try {
        if (exchange.caller.logLevel !== undefined)
          await abortable(
            exchange.signal,
            this.#levels.raise(session, exchange.caller.logLevel, exchange.caller),
          );
        if (lease.use !== 'shared') {
          const opening = session.getStreamSettled();
          if (opening !== undefined) await abortable(exchange.signal, opening);
          held = session.hold(call);
          attached = exchange.attach({
            onParked: () => lease.park(),
            onUnparked: () => lease.unpark(),
            tryCredentials: (forwarded) => accepts(session, forwarded),
          });
        }
        const tasks = this.#tasks;
        if (tasks.runs(session) && (await abortable(exchange.signal, tasks.wants(exchange, session)))) {
          const done = await tasks.carryOut(exchange, { lease, call, onChange });
          kept = done.kept;
          if (done.outcome !== undefined) return done.outcome;
          if (this.#mayRepeat(done.reply, session, attempt)) continue;
          return outcomeOf(exchange, session, done.reply, this.#options.ttlMs);
        }
        const reply = await call.run();
        if (this.#mayRepeat(reply, session, attempt)) continue;
        return outcomeOf(exchange, session, reply, this.#options.ttlMs);
      } finally {
        attached?.[Symbol.dispose]();
        if (!kept) {
          held?.[Symbol.dispose]();
          lease.release();
        }
      }
    }
  }

  #leaseFor(exchange: Exchange, method: string | undefined): Promise<Lease> {
    return this.#pooled.lease(exchange.caller, method, exchange.signal);
  }

  /**
   * Whether a request is to be sent again on a new session: once, and only after a refusal that proves that it was not
   * carried out.
   * @throws ExchangeError when the backend does not know the new session either
   */
  #mayRepeat(reply: RpcReply, session: BackendSession, attempt: number): boolean {
    if (this.#backend.losses.saysLost(reply, session.id)) {
      if (attempt === 0) {
        session.drop();
        return true;
      }
      // At 200 it was the tool that spoke of a session of its own; else the refusal may be about anything.
      if (reply.kind === 'failed' || reply.status < 400 || !speaksOfSession(reply)) return false;
      session.drop();
      const said = saidIn(reply).trim().slice(0, 200);
      throw badGateway(
        `${this.#backend.name} does not know the session that it has just opened; it answered HTTP ${reply.status}${said === '' ? '' : `: ${said}`}`,
      );
    }
    return false;
  }

  #binding(client: ClientSession, caller: Caller): LegacySessionBinding {
    if (client.binding instanceof LegacySessionBinding) {
      client.binding.touch(caller);
      return client.binding;
    }
    const binding = new LegacySessionBinding(this, client, caller);
    this.#attach(client, binding);
    return binding;
  }

  #attach(client: ClientSession, binding: LegacySessionBinding): void {
    void client.binding?.end();
    client.bind(binding);
  }

  async #open(params: HandshakeParams): Promise<BackendSession> {
    try {
      return await this.#breaker.wait(() => openSession(this.#backend, params));
    } catch (error) {
      if (!(error instanceof HandshakeRefused)) throw error;
      throw refusedHandshake(error);
    }
  }
}

/** During which a server may ask as well: what the task wants to know. */
const TASK_RESULT = 'tasks/result';
const SETS_UP: ReadonlySet<string> = new Set([
  'resources/subscribe',
  'resources/unsubscribe',
  'logging/setLevel',
]);

function rememberSetUp(binding: LegacySessionBinding, { request }: Exchange): void {
  if (!SETS_UP.has(request.method)) return;
  const { bytes, node } = request.params;
  const level = stringMember(bytes, node, 'level');
  const uri = stringMember(bytes, node, 'uri');
  binding.remember(request.method, uri, isLogLevel(level) ? level : undefined);
}

/** Another process may still use the session: its ids and these must not meet. */
const RESTORED_IDS_FROM = (): number => 1_000_000 * (1 + Math.floor(Math.random() * 1_000_000));

/** Whether a refusal is about the session, by its status or in its words. */
function speaksOfSession(reply: Exclude<RpcReply, { readonly kind: 'failed' }>): boolean {
  return reply.status === 404 || /session|not initialized/i.test(saidIn(reply));
}

/** Whether a server promises to tell of anything. */
function promisesAny({ info }: BackendSession): boolean {
  const { lists, subscribe } = info.changes;
  return lists.size > 0 || subscribe;
}

function describe(session: BackendSession, callerEra: EraName): ServerDescription {
  const { info, unreadable, backend } = session;
  const heard =
    unreadable || backend.hasNoGetStream ? withoutChangeNotifications(info.capabilities) : info.capabilities;
  return {
    era: 'legacy',
    capabilities: callerEra === 'legacy' ? heard : neutralServerCapabilities(heard),
    serverInfo: info.serverInfo,
    instructions: info.instructions,
    ttlMs: 0,
    sessions: session.id !== undefined && info.settled,
    result: info.bytes.subarray(info.result.start, info.result.end),
  };
}
