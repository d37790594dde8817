import type { Caller } from '../../../exchange/caller.js';
import { type Change, changeOf } from '../../../exchange/changes/change.js';
import type { ChangeFilter } from '../../../exchange/changes/change-filter.js';
import { Hubs } from '../../../exchange/changes/hubs.js';
import type { Subscriber, Subscription } from '../../../exchange/changes/subscription.js';
import { ignoreFailure } from '../../../exchange/failures.js';
import { waitFor } from '../../../exchange/utils/abortable.js';
import type { NotificationFrame } from '../../../jsonrpc/index.js';
import { NEWEST_LEGACY } from '../wire/revisions.js';
import { LegacyChangeSource } from './change-source.js';
import type { HandshakeParams } from './handshake.js';
import { PooledSessionListener } from './pooled-session-listener.js';
import { keyOf, type Roots } from './roots.js';
import type { BackendSession } from './session.js';
import { SessionIdentities, type SessionIdentity } from './session-identity.js';
import type { Lease } from './session-lease.js';
import { type PoolOptions, SessionPool } from './session-pool.js';
import { configureEach } from './session-setup.js';

export interface PooledSessionsOptions extends PoolOptions {
  /** `call` opens a session for each call. */
  readonly isolation: 'principal' | 'call';
  readonly roots: Roots;
  /** JSON text of the Implementation object for clients that name none. */
  readonly ownInfo: string;
  readonly open: (params: HandshakeParams) => Promise<BackendSession>;
  /** Called for each change, whether or not a client listens. */
  readonly onChange: (change: Change) => void;
  readonly onFault: (error: unknown) => void;
}

export interface LeaseOptions {
  /** Of the call; undefined to find out what the backend declares. */
  readonly method: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

interface OpenOptions {
  /** Opens the standalone GET stream as well. */
  readonly withGetStream: boolean;
}

/** Requests during which no server sends requests to the client, so that any number of them may share a session. */
const WITHOUT_SERVER_REQUESTS: ReadonlySet<string> = new Set([
  'tools/list',
  'prompts/list',
  'resources/list',
  'resources/templates/list',
  'completion/complete',
]);

/** The backend sessions of clients without a session, and the subscriptions of these clients. */
export class PooledSessions {
  readonly #options: PooledSessionsOptions;
  readonly #pool: SessionPool;
  readonly #hubs: Hubs;
  readonly #identities: SessionIdentities;
  /** Resources that exclusive sessions are subscribed to. */
  readonly #subscribed = new WeakMap<BackendSession, Set<string>>();

  constructor(options: PooledSessionsOptions) {
    const { roots, ownInfo } = options;
    this.#options = options;
    this.#pool = new SessionPool(options);
    this.#hubs = new Hubs(options);
    this.#identities = new SessionIdentities({ roots: roots.policy !== 'off', ownInfo });
  }

  /** As {@link PooledSessions.acquire}, if there is nothing to wait for. */
  tryAcquire(caller: Caller, method: string): Lease | undefined {
    if (this.#options.isolation === 'call') return undefined;
    const { key, allowServerRequests } = this.#identities.of(caller);
    if (!allowServerRequests || WITHOUT_SERVER_REQUESTS.has(method)) return this.#pool.tryAcquireShared(key);
    // If clients listen, the session may have to be subscribed to resources first.
    return this.#hubs.peek(key) === undefined ? this.#pool.tryAcquireExclusive(key) : undefined;
  }

  /** Acquires a session for a call: an exclusive one if the server may send requests to the client during the call. */
  acquire(caller: Caller, { method, signal }: LeaseOptions): Promise<Lease> {
    const identity = this.#identities.of(caller);
    const { key, allowServerRequests } = identity;
    const open = (): Promise<BackendSession> => this.#open(caller, identity, { withGetStream: true });
    if (this.#options.isolation === 'call') {
      const withGetStream = allowServerRequests || method === undefined;
      const openOnce = (): Promise<BackendSession> => this.#open(caller, identity, { withGetStream });
      return this.#pool.acquireOnce(caller, openOnce, signal);
    }
    return allowServerRequests && method !== undefined && !WITHOUT_SERVER_REQUESTS.has(method)
      ? this.#pool
          .acquireExclusive(key, caller, open, signal)
          .then((lease) => this.#withSubscriptions(lease, key, caller, signal))
      : this.#pool.acquireShared(key, caller, open, signal);
  }

  /** @throws ExchangeError if the backend cannot be asked */
  subscribe(caller: Caller, filter: ChangeFilter, subscriber: Subscriber): Promise<Subscription> {
    const identity = this.#identities.of(caller);
    const acquire = (): Promise<Lease> =>
      this.#pool.acquireShared(identity.key, caller, () =>
        this.#open(caller, identity, { withGetStream: true }),
      );
    const hub = this.#hubs.get(
      identity.key,
      caller,
      (listener, latest) => new LegacyChangeSource(acquire, () => latest().forwarded, listener),
    );
    return hub.subscribe(filter, subscriber);
  }

  /** Publishes a change that was notified during a call, to clients with the same rights as the caller. */
  publish(caller: Caller, frame: NotificationFrame): void {
    const change = changeOf(frame);
    const hub = this.#hubs.peek(this.#identities.of(caller).key);
    if (hub === undefined) this.#options.onChange(change);
    else hub.publish(change);
  }

  async close(): Promise<void> {
    this.#hubs.close();
    await this.#pool.close();
  }

  /**
   * Subscribes an exclusive session to the resources that clients watch, where each session has a server process of its
   * own: only the process that a call changes a resource on can notify the change.
   */
  async #withSubscriptions(
    lease: Lease,
    key: string,
    caller: Caller,
    signal: AbortSignal | undefined,
  ): Promise<Lease> {
    const { session } = lease;
    const wanted =
      session.backend.transport.ownsSessions === true ? this.#hubs.peek(key)?.resources : undefined;
    if (wanted === undefined || wanted.size === 0) return lease;
    const subscribed = this.#subscribed.get(session) ?? new Set();
    this.#subscribed.set(session, subscribed);
    const missing = [...wanted].filter((uri) => !subscribed.has(uri));
    for (const uri of missing) subscribed.add(uri);
    // If the session is lost, the call will find out.
    const settled = configureEach(session, 'resources/subscribe', missing, caller.forwarded).catch(
      ignoreFailure,
    );
    try {
      await waitFor(settled, signal);
      return lease;
    } catch (error) {
      lease.release();
      throw error;
    }
  }

  async #open(
    caller: Caller,
    identity: SessionIdentity,
    { withGetStream }: OpenOptions,
  ): Promise<BackendSession> {
    const { capabilities, clientInfo } = identity;
    const { forwarded } = caller;
    const params = { revision: NEWEST_LEGACY, capabilities, clientInfo, forwarded };
    const session = await this.#options.open(params);
    if (withGetStream) session.openGetStream(this.#listener(session, caller, identity), forwarded);
    return session;
  }

  #listener(
    session: BackendSession,
    caller: Caller,
    { allowServerRequests }: SessionIdentity,
  ): PooledSessionListener {
    const { roots } = this.#options;
    const key = keyOf(caller);
    const declared = allowServerRequests && roots.policy !== 'off';
    return new PooledSessionListener(session, {
      forwarded: caller.forwarded,
      roots: declared ? () => roots.lastKnown(key) : undefined,
      onChange: (frame) => this.#onChange(session, caller, frame),
    });
  }

  #onChange(session: BackendSession, caller: Caller, frame: NotificationFrame): void {
    const { observers, backend } = session;
    if (observers.length > 0) for (const observer of observers) observer.onChange(frame);
    else if (isOfCall(session) || backend.transport.ownsSessions === true) this.publish(caller, frame);
    else this.#options.onChange(changeOf(frame));
  }
}

/**
 * Whether a change belongs to a call that uses, or just used, the session alone: servers notify what a tool has changed on
 * the session of its call only.
 */
function isOfCall({ exclusiveCall, lastUsedAt, backend }: BackendSession): boolean {
  return exclusiveCall !== undefined || performance.now() - lastUsedAt < backend.times.afterCallMs;
}
