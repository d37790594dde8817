import type { Principal } from '../../../exchange/credentials.js';
import type { ForwardedHeaders } from '../../../exchange/forwarded-headers.js';
import type { BackendSession } from './session.js';

/** How a session is used: by any number of calls, by one call at a time, or by one call alone. */
export type Use = 'shared' | 'exclusive' | 'once';

/** The right of a call to use a session, until it is released. */
export interface Lease {
  readonly session: BackendSession;
  readonly use: Use;
  /** Frees room for another session while the call waits for a person or for changes. */
  park(): void;
  /** Counts the session again: the call goes on. */
  unpark(): void;
  /** Ends the lease; further calls do nothing. */
  release(): void;
}

/** The caller that a session is opened for. */
export interface PoolCaller {
  readonly principal: Principal;
  readonly forwarded: ForwardedHeaders;
}

/** A session of the pool, from the first call that wants it. */
export class PoolEntry {
  readonly key: string;
  readonly use: Use;
  readonly principal: Principal;
  /** Of the call that opened it. */
  readonly forwarded: ForwardedHeaders;
  readonly opening: Promise<BackendSession>;
  /** Undefined until the handshake is done. */
  session: BackendSession | undefined;
  /** Leases of the session, including those of calls that wait for the handshake. */
  leases = 0;
  /** The call with the session waits for a person or for changes; the session does not count toward the limit. */
  parked = false;
  state: 'queued' | 'open' | 'removed' = 'queued';
  /** Dropped before it was opened, since no call waits for it any more. */
  surplus = false;

  constructor(
    key: string,
    use: Use,
    { principal, forwarded }: PoolCaller,
    open: (entry: PoolEntry) => Promise<BackendSession>,
  ) {
    this.key = key;
    this.use = use;
    this.principal = principal;
    this.forwarded = forwarded;
    this.opening = open(this);
  }
}

/** What the pool does for a lease. */
export interface LeaseOwner {
  park(entry: PoolEntry): void;
  unpark(entry: PoolEntry): void;
  /** The last lease of the entry was released. */
  unused(entry: PoolEntry): void;
}

export class EntryLease implements Lease {
  readonly use: Use;
  readonly #entry: PoolEntry;
  readonly #owner: LeaseOwner;
  #released = false;
  #parked = false;

  constructor(entry: PoolEntry, owner: LeaseOwner) {
    this.use = entry.use;
    this.#entry = entry;
    this.#owner = owner;
    entry.leases++;
  }

  get session(): BackendSession {
    return this.#entry.session as BackendSession;
  }

  park(): void {
    if (this.#released || this.#parked) return;
    this.#parked = true;
    this.#owner.park(this.#entry);
  }

  unpark(): void {
    if (this.#released || !this.#parked) return;
    this.#parked = false;
    this.#owner.unpark(this.#entry);
  }

  release(): void {
    if (this.#released) return;
    this.unpark();
    this.#released = true;
    const entry = this.#entry;
    entry.leases--;
    if (entry.leases === 0) this.#owner.unused(entry);
  }
}
