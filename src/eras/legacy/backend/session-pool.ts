import type { Principal } from '../../../exchange/credentials.js';
import { EXCHANGE_ERRORS, exchangeError } from '../../../exchange/errors.js';
import { waitFor } from '../../../exchange/utils/abortable.js';
import { PrincipalCounts, shareOf } from '../../../exchange/utils/share.js';
import type { BackendSession } from './session.js';
import {
  EntryLease,
  type Lease,
  type LeaseOwner,
  type PoolCaller,
  PoolEntry,
  type Use,
} from './session-lease.js';

export interface PoolOptions {
  /** Limit of the sessions with the backend; parked ones do not count. */
  readonly max: number;
  /** A session unused for so long is ended. */
  readonly idleMs: number;
  /** Limit of the exclusive sessions of one key that are being opened: each may be a process that takes all of a core. */
  readonly maxOpening?: number;
}

/** A call that waits for an exclusive session: for the first that is opened or becomes free. */
interface ExclusiveWaiter {
  readonly caller: PoolCaller;
  readonly open: OpenSession;
  readonly take: (entry: PoolEntry) => void;
  readonly fail: (error: unknown) => void;
}

/** What ends the wait of an entry for room. */
interface PendingAcquire {
  /** Opens the entry: with a session that it takes over, or with a handshake of its own. */
  readonly proceed: (session: BackendSession | undefined) => void;
  readonly reject: (error: Error) => void;
}

export type OpenSession = () => Promise<BackendSession>;

/**
 * The backend sessions of clients that have none of their own. A shared session carries any number of calls at once; an
 * exclusive one carries one call at a time, so that every request of the backend belongs to that call. Sessions are never
 * shared between keys. At the limit the session that is idle for longest is ended; if all are in use, callers wait in a
 * queue, the callers of one shared session as one entry of it.
 */
export class SessionPool {
  readonly #options: PoolOptions;
  readonly #entries = new Set<PoolEntry>();
  readonly #shared = new Map<string, PoolEntry>();
  /** In the order of arrival. */
  readonly #queue = new Map<PoolEntry, PendingAcquire>();
  /** By key, in the order of arrival. */
  readonly #waiters = new Map<string, Set<ExclusiveWaiter>>();
  #count = 0;
  /** The sessions of {@link SessionPool.size}, by principal. */
  readonly #counts = new PrincipalCounts();
  /** Sessions that are being ended at the backend. */
  readonly #ending = new Set<Promise<void>>();
  #sweeper: NodeJS.Timeout | undefined;
  #closed = false;
  readonly #owner: LeaseOwner = {
    park: (entry) => this.#park(entry),
    unpark: (entry) => this.#unpark(entry),
    unused: (entry) => this.#unused(entry),
  };

  constructor(options: PoolOptions) {
    this.#options = options;
  }

  /** Sessions open or being opened. */
  get size(): number {
    return this.#count;
  }

  /** Sessions that wait for room to be opened. */
  get queued(): number {
    return this.#queue.size;
  }

  /** As {@link SessionPool.acquireShared}, if there is nothing to wait for. */
  tryAcquireShared(key: string): Lease | undefined {
    const entry = this.#shared.get(key);
    if (entry?.session === undefined || entry.session.lost) return undefined;
    return new EntryLease(entry, this.#owner);
  }

  /** As {@link SessionPool.acquireExclusive}, if there is nothing to wait for. */
  tryAcquireExclusive(key: string): Lease | undefined {
    const entry = this.#idleExclusive(key);
    return entry === undefined ? undefined : new EntryLease(entry, this.#owner);
  }

  /**
   * Acquires the shared session of a key. The first call opens it; others wait for the same handshake.
   * @throws what `open` throws, or the reason of the signal
   */
  async acquireShared(
    key: string,
    caller: PoolCaller,
    open: OpenSession,
    signal?: AbortSignal,
  ): Promise<Lease> {
    let entry = this.#shared.get(key);
    if (entry?.session?.lost === true) {
      this.#drop(entry);
      entry = undefined;
    }
    if (entry === undefined) {
      entry = this.#start(key, 'shared', caller, open);
      this.#shared.set(key, entry);
    }
    return this.#lease(entry, signal);
  }

  /** Acquires a session of a key that no other call uses: the first that is opened for it or becomes free. */
  async acquireExclusive(
    key: string,
    caller: PoolCaller,
    open: OpenSession,
    signal?: AbortSignal,
  ): Promise<Lease> {
    const idle = this.#idleExclusive(key);
    if (idle !== undefined) return new EntryLease(idle, this.#owner);
    if (this.#closed) throw closing();
    const waiters = this.#waiters.get(key) ?? new Set<ExclusiveWaiter>();
    this.#waiters.set(key, waiters);
    let waiter: ExclusiveWaiter | undefined;
    const lease = new Promise<Lease>((resolve, reject) => {
      waiter = {
        caller,
        open,
        take: (entry) => resolve(new EntryLease(entry, this.#owner)),
        fail: reject,
      };
      waiters.add(waiter);
    });
    this.#openFor(key);
    try {
      return await waitFor(lease, signal);
    } catch (error) {
      // A session that was handed over as the signal was aborted goes back; an error is the one that is thrown.
      lease.then(
        (late) => late.release(),
        () => {},
      );
      this.#forget(key, waiter as ExclusiveWaiter);
      throw error;
    }
  }

  /** Opens as many sessions of a key as calls wait for, up to the limit of those being opened. */
  #openFor(key: string): void {
    const { maxOpening = Number.POSITIVE_INFINITY } = this.#options;
    const waiters = [...(this.#waiters.get(key) ?? [])];
    const opening = this.#openingOf(key).length;
    for (const { caller, open } of waiters.slice(opening, maxOpening)) {
      const entry = this.#start(key, 'exclusive', caller, open);
      entry.opening.then(
        () => this.#openFor(key),
        (error) => {
          if (!entry.surplus) this.#settleFirst(key, (waiter) => waiter.fail(error));
          this.#openFor(key);
        },
      );
    }
  }

  /** Entries of a key that have no session yet. */
  #openingOf(key: string): PoolEntry[] {
    return [...this.#entries].filter(
      (entry) => entry.use === 'exclusive' && entry.key === key && entry.session === undefined,
    );
  }

  /** Settles the call that waits for longest: first the call, since removing it may let others in. */
  #settleFirst(key: string, settle: (waiter: ExclusiveWaiter) => void): void {
    const [waiter] = this.#waiters.get(key) ?? [];
    if (waiter === undefined) return;
    settle(waiter);
    this.#forget(key, waiter);
  }

  /** Removes a waiter, and an entry that waits for room if no call is left that it would be for. */
  #forget(key: string, waiter: ExclusiveWaiter): void {
    const waiters = this.#waiters.get(key);
    if (waiters?.delete(waiter) !== true) return;
    if (waiters.size === 0) this.#waiters.delete(key);
    const opening = this.#openingOf(key);
    if (opening.length <= waiters.size) return;
    const queued = opening.findLast(({ state }) => state === 'queued');
    if (queued === undefined) return;
    queued.surplus = true;
    this.#drop(queued);
  }

  /** Acquires a session for one call, which is ended after it. */
  async acquireOnce(caller: PoolCaller, open: OpenSession, signal?: AbortSignal): Promise<Lease> {
    return this.#lease(this.#start('', 'once', caller, open), signal);
  }

  /** Ends every session, and rejects all pending acquires. */
  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#sweeper);
    for (const entry of this.#queue.keys()) this.#remove(entry);
    for (const entry of this.#entries) this.#retire(entry);
    await Promise.all(this.#ending);
  }

  #start(key: string, use: Use, caller: PoolCaller, open: OpenSession): PoolEntry {
    if (this.#closed) throw closing();
    const entry = new PoolEntry(key, use, caller, (created) => this.#open(created, open));
    this.#entries.add(entry);
    // Each pending acquire rejects by itself; there may be none left.
    entry.opening.catch(() => {});
    this.#sweeper ??= setInterval(() => this.#sweep(), Math.min(this.#options.idleMs, 5_000)).unref();
    return entry;
  }

  async #open(entry: PoolEntry, open: OpenSession): Promise<BackendSession> {
    try {
      const session = (await this.#waitForRoom(entry)) ?? (await open());
      entry.session = session;
      if (entry.leases === 0) this.#unused(entry);
      return session;
    } catch (error) {
      this.#drop(entry);
      throw error;
    }
  }

  /** Waits for room to open the entry; resolves with the session that the entry takes over, if it takes over one. */
  #waitForRoom(entry: PoolEntry): Promise<BackendSession | undefined> | undefined {
    const isFirst = [...this.#queue.keys()].every((other) => this.#isAtShare(other.principal));
    if (!isFirst || !this.#makeRoom(entry.principal)) {
      return new Promise((proceed, reject) => this.#queue.set(entry, { proceed, reject }));
    }
    this.#countIn(entry);
    entry.state = 'open';
    return undefined;
  }

  /** @throws the reason of the signal, if it is aborted before the session is open */
  async #lease(entry: PoolEntry, signal: AbortSignal | undefined): Promise<Lease> {
    const lease = new EntryLease(entry, this.#owner);
    if (entry.session !== undefined) return lease;
    try {
      await waitFor(entry.opening, signal);
      return lease;
    } catch (error) {
      lease.release();
      throw error;
    }
  }

  /** Keeps a session that no call uses for the next one, or ends it. */
  #unused(entry: PoolEntry): void {
    const { session } = entry;
    if (entry.state === 'queued') this.#drop(entry);
    else if (session === undefined || entry.state === 'removed') return;
    // Calls that were unparked may have raised the count above the limit.
    else if (entry.use === 'once' || this.#count > this.#options.max) this.#retire(entry);
    else if (entry.use === 'exclusive' && !session.lost && this.#waiters.has(entry.key))
      this.#settleFirst(entry.key, (waiter) => waiter.take(entry));
    else {
      session.touch();
      this.#admit();
    }
  }

  #park(entry: PoolEntry): void {
    if (entry.parked || entry.state !== 'open') return;
    entry.parked = true;
    this.#countOut(entry);
    this.#admit();
  }

  #unpark(entry: PoolEntry): void {
    if (!entry.parked || entry.state !== 'open') return;
    entry.parked = false;
    this.#countIn(entry);
  }

  #countIn({ principal }: PoolEntry): void {
    this.#count++;
    this.#counts.add(principal);
  }

  #countOut({ principal }: PoolEntry): void {
    this.#count--;
    this.#counts.add(principal, -1);
  }

  #isAtShare(principal: Principal): boolean {
    return this.#counts.of(principal) >= shareOf(this.#options.max, principal);
  }

  /** Opens queued entries in order while there is room, but for those of a principal that has its share. */
  #admit(): void {
    const waiting = new Set<Principal>();
    for (const [entry, { proceed }] of this.#queue) {
      if (waiting.has(entry.principal) && entry.use !== 'exclusive') continue;
      const idle = entry.use === 'exclusive' ? this.#idleExclusive(entry.key) : undefined;
      if (idle !== undefined) this.#remove(idle);
      else if (!this.#makeRoom(entry.principal)) {
        if (this.#count >= this.#options.max && !this.#isAtShare(entry.principal)) return;
        waiting.add(entry.principal);
        continue;
      }
      this.#queue.delete(entry);
      this.#countIn(entry);
      entry.state = 'open';
      proceed(idle?.session);
    }
  }

  /**
   * Makes room for one more session of a principal by ending the one that is idle for longest, of its own if it has its
   * share; false if all are in use.
   */
  #makeRoom(principal: Principal): boolean {
    const ofOwn = this.#isAtShare(principal);
    if (!ofOwn && this.#count < this.#options.max) return true;
    let oldest: PoolEntry | undefined;
    for (const entry of this.#entries) {
      if (entry.leases > 0 || entry.session === undefined) continue;
      if (ofOwn && entry.principal !== principal) continue;
      if (oldest === undefined || entry.session.lastUsedAt < (oldest.session?.lastUsedAt ?? 0))
        oldest = entry;
    }
    if (oldest === undefined) return false;
    this.#remove(oldest);
    this.#end(oldest);
    return true;
  }

  #idleExclusive(key: string): PoolEntry | undefined {
    for (const entry of this.#entries) {
      if (entry.use !== 'exclusive' || entry.key !== key || entry.leases > 0) continue;
      if (entry.session !== undefined && !entry.session.lost) return entry;
    }
    return undefined;
  }

  #remove(entry: PoolEntry): void {
    if (entry.state === 'removed') return;
    if (entry.state === 'open' && !entry.parked) this.#countOut(entry);
    this.#queue.get(entry)?.reject(closing());
    this.#queue.delete(entry);
    entry.state = 'removed';
    this.#entries.delete(entry);
    if (this.#shared.get(entry.key) === entry) this.#shared.delete(entry.key);
  }

  #drop(entry: PoolEntry): void {
    this.#remove(entry);
    this.#admit();
  }

  #retire(entry: PoolEntry): void {
    this.#drop(entry);
    this.#end(entry);
  }

  #end({ session, opening, forwarded }: PoolEntry): void {
    const opened = session === undefined ? opening.catch(() => undefined) : Promise.resolve(session);
    const ended = opened.then((late) => late?.end(forwarded)).finally(() => this.#ending.delete(ended));
    this.#ending.add(ended);
  }

  #sweep(): void {
    const before = performance.now() - this.#options.idleMs;
    for (const entry of this.#entries) {
      const { session, leases } = entry;
      if (leases > 0 || session === undefined) continue;
      if (session.lost) this.#drop(entry);
      else if (session.lastUsedAt < before) this.#retire(entry);
    }
  }
}

function closing(): Error {
  return exchangeError(EXCHANGE_ERRORS.ERAGATE_SHUTTING_DOWN);
}
