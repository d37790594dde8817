import { waitFor } from '../../../exchange/abortable.js';
import { overloaded } from '../../../exchange/errors.js';
import type { ForwardedHeaders } from '../../../exchange/types.js';
import type { BackendSession } from './session.js';

export interface PoolOptions {
  /** Most sessions with the backend at a time. */
  readonly max: number;
  /** A session unused for so long is ended. */
  readonly idleMs: number;
}

/** How a session is used: by any number of calls, by one call at a time, or by one call alone. */
export type Use = 'shared' | 'exclusive' | 'once';

/** A session, from the first call that wants it. */
class Entry {
  readonly key: string;
  readonly use: Use;
  readonly forwarded: ForwardedHeaders;
  readonly opening: Promise<BackendSession>;
  session: BackendSession | undefined;
  /** Calls that have the session, or wait for it. */
  holders = 0;
  /** The call waits, for a person or for changes; the session does not count meanwhile. */
  parked = false;
  state: 'waiting' | 'open' | 'gone' = 'waiting';

  constructor(
    key: string,
    use: Use,
    forwarded: ForwardedHeaders,
    open: (entry: Entry) => Promise<BackendSession>,
  ) {
    this.key = key;
    this.use = use;
    this.forwarded = forwarded;
    this.opening = open(this);
  }
}

/** The end of an entry's wait: with a session to take over, or with room to open one. */
interface Place {
  readonly proceed: (session: BackendSession | undefined) => void;
  readonly leave: (error: Error) => void;
}

/** What a lease does with its entry. */
interface Holding {
  park(entry: Entry): void;
  unpark(entry: Entry): void;
  unused(entry: Entry): void;
}

/** A place on a session; given back exactly once. */
export interface Lease {
  readonly session: BackendSession;
  readonly use: Use;
  /** Leaves room for another session while the call waits for a person or for changes. */
  park(): void;
  /** The call goes on, and its session counts again. */
  unpark(): void;
  release(): void;
}

class EntryLease implements Lease {
  readonly use: Use;
  readonly #entry: Entry;
  readonly #holding: Holding;
  #released = false;
  #parks = false;

  constructor(entry: Entry, holding: Holding) {
    this.use = entry.use;
    this.#entry = entry;
    this.#holding = holding;
    entry.holders++;
  }

  get session(): BackendSession {
    return this.#entry.session as BackendSession;
  }

  park(): void {
    if (this.#released || this.#parks) return;
    this.#parks = true;
    this.#holding.park(this.#entry);
  }

  unpark(): void {
    if (this.#released || !this.#parks) return;
    this.#parks = false;
    this.#holding.unpark(this.#entry);
  }

  release(): void {
    if (this.#released) return;
    this.unpark();
    this.#released = true;
    const entry = this.#entry;
    entry.holders--;
    if (entry.holders === 0) this.#holding.unused(entry);
  }
}

export type Opener = () => Promise<BackendSession>;

/**
 * The sessions that the gateway holds on behalf of clients that have none of their own. A shared session carries any
 * number of calls at once; an exclusive one carries one call at a time, so that whatever the backend asks belongs to
 * that call. Sessions are never shared between keys. At the limit the session idle for longest makes room; where all
 * are in use, callers wait in line, the callers of one shared session in one place of it.
 */
export class SessionPool {
  readonly #options: PoolOptions;
  readonly #entries = new Set<Entry>();
  readonly #shared = new Map<string, Entry>();
  /** In the order of their arrival. */
  readonly #line = new Map<Entry, Place>();
  #count = 0;
  /** Sessions whose end the backend is being told. */
  readonly #ending = new Set<Promise<void>>();
  #sweeper: NodeJS.Timeout | undefined;
  #closed = false;
  readonly #holding: Holding = {
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

  /** Sessions that wait in line to be opened. */
  get waiting(): number {
    return this.#line.size;
  }

  /** What {@link SessionPool.acquireShared} gives, where there is nothing to wait for. */
  readyShared(key: string): Lease | undefined {
    const entry = this.#shared.get(key);
    if (entry?.session === undefined || entry.session.lost) return undefined;
    return new EntryLease(entry, this.#holding);
  }

  /** What {@link SessionPool.acquireExclusive} gives, where there is nothing to wait for. */
  readyExclusive(key: string): Lease | undefined {
    const entry = this.#idleExclusive(key);
    return entry === undefined ? undefined : new EntryLease(entry, this.#holding);
  }

  /**
   * The session of a key. Only the first call opens it; others wait for the same handshake.
   * @throws what `open` throws, or the reason of the signal
   */
  async acquireShared(
    key: string,
    forwarded: ForwardedHeaders,
    open: Opener,
    signal?: AbortSignal,
  ): Promise<Lease> {
    let entry = this.#shared.get(key);
    if (entry?.session?.lost === true) {
      this.#drop(entry);
      entry = undefined;
    }
    if (entry === undefined) {
      entry = this.#start(key, 'shared', forwarded, open);
      this.#shared.set(key, entry);
    }
    return this.#lease(entry, signal);
  }

  /** A session of a key that no other call has. */
  async acquireExclusive(
    key: string,
    forwarded: ForwardedHeaders,
    open: Opener,
    signal?: AbortSignal,
  ): Promise<Lease> {
    const entry = this.#idleExclusive(key) ?? this.#start(key, 'exclusive', forwarded, open);
    return this.#lease(entry, signal);
  }

  /** A session for one call, ended after it. */
  async acquireOnce(forwarded: ForwardedHeaders, open: Opener, signal?: AbortSignal): Promise<Lease> {
    return this.#lease(this.#start('', 'once', forwarded, open), signal);
  }

  /** Ends every session; whoever waits for one is refused. */
  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#sweeper);
    for (const entry of this.#line.keys()) this.#remove(entry);
    for (const entry of this.#entries) this.#retire(entry);
    await Promise.all(this.#ending);
  }

  #start(key: string, use: Use, forwarded: ForwardedHeaders, open: Opener): Entry {
    if (this.#closed) throw closing();
    const entry = new Entry(key, use, forwarded, (opened) => this.#open(opened, open));
    this.#entries.add(entry);
    // Those who wait hear of a failure; there may be none left.
    entry.opening.catch(() => {});
    this.#sweeper ??= setInterval(() => this.#sweep(), Math.min(this.#options.idleMs, 5_000)).unref();
    return entry;
  }

  async #open(entry: Entry, open: Opener): Promise<BackendSession> {
    try {
      const session = (await this.#room(entry)) ?? (await open());
      entry.session = session;
      if (entry.holders === 0) this.#unused(entry);
      return session;
    } catch (error) {
      this.#drop(entry);
      throw error;
    }
  }

  /** Resolves when the entry may be opened, or with a session that it takes over. */
  #room(entry: Entry): Promise<BackendSession | undefined> | undefined {
    if (this.#line.size > 0 || !this.#makeRoom()) {
      return new Promise((proceed, leave) => this.#line.set(entry, { proceed, leave }));
    }
    this.#count++;
    entry.state = 'open';
    return undefined;
  }

  /** @throws the reason of the signal, when that is aborted before the session is there */
  async #lease(entry: Entry, signal: AbortSignal | undefined): Promise<Lease> {
    const lease = new EntryLease(entry, this.#holding);
    if (entry.session !== undefined) return lease;
    try {
      await waitFor(entry.opening, signal);
      return lease;
    } catch (error) {
      lease.release();
      throw error;
    }
  }

  /** Nobody has or wants the session any more, for now. */
  #unused(entry: Entry): void {
    const { session } = entry;
    if (entry.state === 'waiting') this.#drop(entry);
    else if (session === undefined || entry.state === 'gone') return;
    // Calls that go on after a wait for a person may have brought their number above the limit.
    else if (entry.use === 'once' || this.#count > this.#options.max) this.#retire(entry);
    else {
      session.lastUsedAt = performance.now();
      this.#admit();
    }
  }

  #park(entry: Entry): void {
    if (entry.parked || entry.state !== 'open') return;
    entry.parked = true;
    this.#count--;
    this.#admit();
  }

  #unpark(entry: Entry): void {
    if (!entry.parked || entry.state !== 'open') return;
    entry.parked = false;
    this.#count++;
  }

  /** Lets in whoever there is room for, in the order of the line. */
  #admit(): void {
    for (const [entry, { proceed }] of this.#line) {
      const heir = entry.use === 'exclusive' ? this.#idleExclusive(entry.key) : undefined;
      if (heir !== undefined) this.#remove(heir);
      else if (!this.#makeRoom()) return;
      this.#line.delete(entry);
      this.#count++;
      entry.state = 'open';
      proceed(heir?.session);
    }
  }

  /** Whether there is room for one more session, for which the one idle for longest may have to go. */
  #makeRoom(): boolean {
    if (this.#count < this.#options.max) return true;
    let oldest: Entry | undefined;
    for (const entry of this.#entries) {
      if (entry.holders > 0 || entry.session === undefined) continue;
      if (oldest === undefined || entry.session.lastUsedAt < (oldest.session?.lastUsedAt ?? 0))
        oldest = entry;
    }
    if (oldest === undefined) return false;
    this.#remove(oldest);
    this.#end(oldest);
    return true;
  }

  #idleExclusive(key: string): Entry | undefined {
    for (const entry of this.#entries) {
      if (entry.use !== 'exclusive' || entry.key !== key || entry.holders > 0) continue;
      if (entry.session !== undefined && !entry.session.lost) return entry;
    }
    return undefined;
  }

  #remove(entry: Entry): void {
    if (entry.state === 'gone') return;
    if (entry.state === 'open' && !entry.parked) this.#count--;
    this.#line.get(entry)?.leave(closing());
    this.#line.delete(entry);
    entry.state = 'gone';
    this.#entries.delete(entry);
    if (this.#shared.get(entry.key) === entry) this.#shared.delete(entry.key);
  }

  #drop(entry: Entry): void {
    this.#remove(entry);
    this.#admit();
  }

  #retire(entry: Entry): void {
    this.#drop(entry);
    this.#end(entry);
  }

  #end({ session, opening, forwarded }: Entry): void {
    const opened = session === undefined ? opening.catch(() => undefined) : Promise.resolve(session);
    const ended = opened.then((late) => late?.end(forwarded)).finally(() => this.#ending.delete(ended));
    this.#ending.add(ended);
  }

  #sweep(): void {
    const before = performance.now() - this.#options.idleMs;
    for (const entry of this.#entries) {
      const { session, holders } = entry;
      if (holders > 0 || session === undefined) continue;
      if (session.lost) this.#drop(entry);
      else if (session.lastUsedAt < before) this.#retire(entry);
    }
  }
}

function closing(): Error {
  return overloaded('the gateway is shutting down');
}
