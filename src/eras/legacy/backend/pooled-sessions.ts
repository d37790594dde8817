import type { Caller } from '../../../exchange/caller.js';
import { type Change, changeOf, isChange } from '../../../exchange/changes/change.js';
import type { ChangeFilter } from '../../../exchange/changes/change-filter.js';
import { Hubs } from '../../../exchange/changes/hubs.js';
import type { Subscriber, Subscription } from '../../../exchange/changes/subscription.js';
import type { ClientAnswer } from '../../../exchange/channel.js';
import type { ClientCapabilities } from '../../../exchange/client-capabilities.js';
import type { Principal } from '../../../exchange/credentials.js';
import { CODE } from '../../../exchange/errors.js';
import { ignoreFailure } from '../../../exchange/failures.js';
import type { ForwardedHeaders } from '../../../exchange/forwarded-headers.js';
import { PROGRESS, progressTokenOf } from '../../../exchange/progress.js';
import { waitFor } from '../../../exchange/utils/abortable.js';
import { keyText } from '../../../exchange/utils/hash.js';
import type { NotificationFrame, RequestFrame } from '../../../jsonrpc/index.js';
import type { Backpressure } from '../../../upstream/backpressure.js';
import { type DeclaredCapabilities, declaredCapabilities } from '../wire/client-capabilities.js';
import { NEWEST_LEGACY } from '../wire/revisions.js';
import { LegacyChangeSource } from './change-source.js';
import type { HandshakeParams } from './handshake.js';
import { keyOf, type Roots } from './roots.js';
import type { BackendSession } from './session.js';
import type { SessionListener } from './session-events.js';
import type { Lease } from './session-lease.js';
import { type PoolOptions, SessionPool } from './session-pool.js';
import type { SetUp } from './session-setup.js';

export interface PooledSessionsOptions extends PoolOptions {
  /** `call` gives each call a session of its own. */
  readonly isolation: 'principal' | 'call';
  readonly roots: Roots;
  readonly setUp: SetUp;
  /** JSON text of the Implementation that stands in for a client that does not name itself. */
  readonly ownInfo: string;
  readonly open: (params: HandshakeParams) => Promise<BackendSession>;
  /** Observes every change, whether or not a client listens. */
  readonly onChange: (change: Change) => void;
  readonly onFault: (error: unknown) => void;
}

interface OpenOptions {
  /** Opens the standalone GET stream as well. */
  readonly hears: boolean;
}

/** As whom a session is opened. */
interface Identity {
  readonly key: string;
  readonly capabilities: string;
  readonly clientInfo: string;
  readonly asks: boolean;
  readonly principal: Principal;
  /** What the caller said of itself. */
  readonly told: string | undefined;
}

/** Requests that servers answer without a question; any number of them may share a session. */
const NEVER_ASKING: ReadonlySet<string> = new Set([
  'tools/list',
  'prompts/list',
  'resources/list',
  'resources/templates/list',
  'completion/complete',
]);
const EMPTY_RESULT = Buffer.from('{}');
const LOG = 'notifications/message';

/** The backend sessions of clients that have none themselves: who gets which, and what is heard on them. */
export class PooledSessions {
  readonly #options: PooledSessionsOptions;
  readonly #pool: SessionPool;
  readonly #hubs: Hubs;
  /** The last one of those who declare the same: mostly the next one as well, and a key that is not written anew. */
  readonly #identities = new WeakMap<ClientCapabilities, Identity>();

  /** What is declared to the backend, by what the client declared; equal declarations are mostly one object. */
  readonly #declared = new WeakMap<ClientCapabilities, DeclaredCapabilities>();

  /** What sessions that calls have to themselves were asked to tell of. */
  readonly #watched = new WeakMap<BackendSession, Set<string>>();

  constructor(options: PooledSessionsOptions) {
    this.#options = options;
    this.#pool = new SessionPool(options);
    this.#hubs = new Hubs(options);
  }

  /** What {@link PooledSessions.lease} gives, where there is nothing to wait for. */
  ready(caller: Caller, method: string): Lease | undefined {
    if (this.#options.isolation === 'call') return undefined;
    const { key, asks } = this.#identityOf(caller);
    if (!asks || NEVER_ASKING.has(method)) return this.#pool.tryAcquireShared(key);
    // Where clients listen, the session may have to be subscribed to resources first.
    return this.#hubs.peek(key) === undefined ? this.#pool.tryAcquireExclusive(key) : undefined;
  }

  /**
   * A session for a caller: to itself while it does something during which the server may ask it something.
   * @param method what it is for; undefined where it is to be seen what the backend can do
   */
  lease(caller: Caller, method?: string, signal?: AbortSignal): Promise<Lease> {
    const { isolation } = this.#options;
    const { key, asks, open } = this.#sessionOf(caller);
    if (isolation === 'call') {
      const hears = asks || method === undefined;
      return this.#pool.acquireOnce(caller.forwarded, () => open({ hears }), signal);
    }
    return asks && method !== undefined && !NEVER_ASKING.has(method)
      ? this.#pool
          .acquireExclusive(key, caller.forwarded, () => open({ hears: true }), signal)
          .then((lease) => this.#watchToo(lease, key, caller, signal))
      : this.#pool.acquireShared(key, caller.forwarded, () => open({ hears: true }), signal);
  }

  /** @throws ExchangeError when the backend cannot be asked */
  subscribe(caller: Caller, filter: ChangeFilter, subscriber: Subscriber): Promise<Subscription> {
    const { key, open } = this.#sessionOf(caller);
    const { setUp } = this.#options;
    const lease = (): Promise<Lease> =>
      this.#pool.acquireShared(key, caller.forwarded, () => open({ hears: true }));
    const hub = this.#hubs.get(
      key,
      caller,
      (listener, latest) => new LegacyChangeSource(lease, setUp, () => latest().forwarded, listener),
    );
    return hub.subscribe(filter, subscriber);
  }

  /** A change was told of during a call, on its answer stream or on that of a session that it has to itself. */
  changed(caller: Caller, frame: NotificationFrame): void {
    const change = changeOf(frame);
    const hub = this.#hubs.peek(this.#identityOf(caller).key);
    if (hub === undefined) this.#options.onChange(change);
    else hub.publish(change);
  }

  /**
   * Where each session has a server of its own, only the one on which a call changes a resource knows of it, and tells of
   * it only if it was asked to: it is, as the one that is listened to was.
   */
  async #watchToo(
    lease: Lease,
    key: string,
    caller: Caller,
    signal: AbortSignal | undefined,
  ): Promise<Lease> {
    const { session } = lease;
    const wanted =
      session.backend.transport.ownsSessions === true ? this.#hubs.peek(key)?.resources : undefined;
    if (wanted === undefined || wanted.size === 0) return lease;
    const watched = this.#watched.get(session) ?? new Set();
    this.#watched.set(session, watched);
    const missing = [...wanted].filter((uri) => !watched.has(uri));
    for (const uri of missing) watched.add(uri);
    // What it refuses, or that it is gone, the call will find out by itself.
    const asked = this.#options.setUp.askForEach(missing, session, 'resources/subscribe', caller.forwarded);
    const settled = asked.catch(ignoreFailure);
    try {
      await waitFor(settled, signal);
      return lease;
    } catch (error) {
      lease.release();
      throw error;
    }
  }

  async close(): Promise<void> {
    this.#hubs.close();
    await this.#pool.close();
  }

  #sessionOf(caller: Caller): {
    key: string;
    asks: boolean;
    open: (options: OpenOptions) => Promise<BackendSession>;
  } {
    const { open: openSession } = this.#options;
    const { key, capabilities, clientInfo, asks } = this.#identityOf(caller);
    const { forwarded } = caller;
    const open = async ({ hears }: OpenOptions): Promise<BackendSession> => {
      const session = await openSession({
        revision: NEWEST_LEGACY,
        capabilities,
        clientInfo,
        forwarded,
      });
      if (hears) session.openGetStream(this.#listener(session, caller, { asks }), forwarded);
      return session;
    };
    return { key, asks, open };
  }

  /** As whom the gateway opens a session for a caller: who is the same to the backend may share one. */
  #identityOf({ principal, neutralCapabilities, clientInfo }: Caller): Identity {
    const last = this.#identities.get(neutralCapabilities);
    if (last?.principal === principal && last.told === clientInfo) return last;
    const { ownInfo } = this.#options;
    const { text, allowServerRequests: asks } = this.#declaredFor(neutralCapabilities);
    const info = clientInfo ?? ownInfo;
    const key = `${principal} ${keyText(text)} ${keyText(info)}`;
    const identity = { key, capabilities: text, clientInfo: info, asks, principal, told: clientInfo };
    this.#identities.set(neutralCapabilities, identity);
    return identity;
  }

  #declaredFor(capabilities: ClientCapabilities): DeclaredCapabilities {
    let declared = this.#declared.get(capabilities);
    if (declared === undefined) {
      declared = declaredCapabilities(capabilities, { roots: this.#options.roots.policy !== 'off' });
      this.#declared.set(capabilities, declared);
    }
    return declared;
  }

  #listener(session: BackendSession, caller: Caller, { asks }: { asks: boolean }): PooledListener {
    const { roots, onChange } = this.#options;
    const key = keyOf(caller);
    const lastKnown = asks && roots.policy !== 'off' ? () => roots.lastKnown(key) : undefined;
    return new PooledListener(session, caller.forwarded, lastKnown, (frame) => {
      const { watchers } = session;
      if (watchers.length > 0) for (const watcher of watchers) watcher.onChange(frame);
      else if (isOfCall(session) || session.backend.transport.ownsSessions === true)
        this.changed(caller, frame);
      else onChange(changeOf(frame));
    });
  }
}

/** How long after its answer something may come that a call has brought about. */
const AFTERMATH_MS = 2_000;

/**
 * Whether what comes on a session that nobody watches is of a call that has, or had, the session to itself: servers tell
 * the session on which a tool was called of what the tool has changed, and no other.
 */
function isOfCall({ holder, lastUsedAt }: BackendSession): boolean {
  return holder !== undefined || performance.now() - lastUsedAt < AFTERMATH_MS;
}

/** What comes on a pooled session outside the answer stream of a call. */
class PooledListener implements SessionListener {
  readonly #session: BackendSession;
  readonly #forwarded: ForwardedHeaders;
  readonly #roots: (() => ClientAnswer) | undefined;
  readonly #onChange: (frame: NotificationFrame) => void;

  /** @param roots what to answer to `roots/list` where nobody can be asked; undefined where roots are not declared */
  constructor(
    session: BackendSession,
    forwarded: ForwardedHeaders,
    roots: (() => ClientAnswer) | undefined,
    onChange: (frame: NotificationFrame) => void,
  ) {
    this.#session = session;
    this.#forwarded = forwarded;
    this.#roots = roots;
    this.#onChange = onChange;
  }

  onNotification(frame: NotificationFrame): Backpressure | undefined {
    if (frame.method === PROGRESS)
      return this.#session.callOf(progressTokenOf(frame))?.listener.onNotification(frame);
    if (!isChange(frame.method)) {
      const { holder, onlyCall } = this.#session;
      return (frame.method === LOG ? (holder ?? onlyCall) : holder)?.onNotification(frame);
    }
    this.#onChange(frame);
    return undefined;
  }

  onRequest(frame: RequestFrame): void {
    const { holder } = this.#session;
    if (holder !== undefined) holder.onRequest(frame);
    else if (frame.method === 'ping')
      this.#session.answer(frame.id, { result: EMPTY_RESULT }, this.#forwarded);
    else if (frame.method === 'roots/list' && this.#roots !== undefined) {
      this.#session.answer(frame.id, this.#roots(), this.#forwarded);
    } else {
      const message = 'no client request is there to attach this to';
      this.#session.refuse(frame.id, message, this.#forwarded, CODE.internal);
    }
  }
}
