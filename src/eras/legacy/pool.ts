import { overloaded } from '../../exchange/errors.js';
import type { ForwardedHeaders } from '../../exchange/types.js';
import type { BackendSession } from './backend-session.js';

export interface PoolOptions {
  /** Most sessions with the backend at a time. */
  readonly max: number;
  /** A session unused for so long is ended. */
  readonly idleMs: number;
}

interface Entry {
  readonly key: string;
  readonly forwarded: ForwardedHeaders;
  session: BackendSession | undefined;
  opening: Promise<BackendSession>;
  /** Holders of the session: calls in flight and feeds that listen. */
  holders: number;
  readonly exclusive: boolean;
  gone: boolean;
}

/** A place on a session; given back exactly once. */
export interface Lease {
  readonly session: BackendSession;
  release(): void;
}

export type Opener = () => Promise<BackendSession>;

/**
 * The sessions that the gateway holds on behalf of clients that have none of their own. A shared session carries any
 * number of calls at once; an exclusive one carries one call at a time, so that whatever the backend asks belongs to
 * that call. Sessions are never shared between keys. At the limit the session idle for longest makes room; where all
 * are in use, callers wait in line.
 */
export class SessionPool {
  readonly #options: PoolOptions;
  readonly #shared = new Map<string, Entry>();
  readonly #exclusive = new Map<string, Set<Entry>>();
  readonly #waiting: (() => void)[] = [];
  #count = 0;
  #sweeper: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(options: PoolOptions) {
    this.#options = options;
  }

  /** Sessions open or being opened. */
  get size(): number {
    return this.#count;
  }

  /** Callers in line. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** The session of a key, opened by whoever comes first; the others wait for the same handshake. */
  async acquireShared(key: string, forwarded: ForwardedHeaders, open: Opener): Promise<Lease> {
    for (let tries = 0; ; tries++) {
      const entry = this.#shared.get(key);
      if (entry === undefined) {
        if (!this.#makeRoom()) {
          await this.#wait(tries > 0);
          continue;
        }
        const opened = this.#start(key, forwarded, open, false);
        this.#shared.set(key, opened);
        return this.#lease(opened);
      }
      if (entry.session?.lost === true) {
        this.#drop(entry);
        continue;
      }
      return this.#lease(entry);
    }
  }

  /** A session of a key that no other call has. */
  async acquireExclusive(key: string, forwarded: ForwardedHeaders, open: Opener): Promise<Lease> {
    for (let tries = 0; ; tries++) {
      const entries = this.#exclusive.get(key);
      for (const entry of entries ?? []) {
        if (entry.holders > 0) continue;
        if (entry.session === undefined || entry.session.lost) {
          this.#drop(entry);
          continue;
        }
        return this.#lease(entry);
      }
      if (!this.#makeRoom()) {
        await this.#wait(tries > 0);
        continue;
      }
      const opened = this.#start(key, forwarded, open, true);
      const set = this.#exclusive.get(key) ?? new Set();
      this.#exclusive.set(key, set.add(opened));
      return this.#lease(opened);
    }
  }

  /** A session for one call, ended after it. */
  async acquireOnce(forwarded: ForwardedHeaders, open: Opener): Promise<Lease> {
    for (let tries = 0; !this.#makeRoom(); tries++) await this.#wait(tries > 0);
    const entry = this.#start('', forwarded, open, true);
    const lease = await this.#lease(entry);
    return {
      session: lease.session,
      release: () => {
        lease.release();
        this.#retire(entry);
      },
    };
  }

  /** Ends every session. */
  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#sweeper);
    for (const proceed of this.#waiting.splice(0)) proceed();
    await Promise.all([...this.#entries()].map((entry) => this.#retire(entry)));
  }

  #start(key: string, forwarded: ForwardedHeaders, open: Opener, exclusive: boolean): Entry {
    if (this.#closed) throw overloaded('the gateway is shutting down');
    this.#count++;
    const entry: Entry = {
      key,
      forwarded,
      session: undefined,
      holders: 0,
      exclusive,
      gone: false,
      opening: undefined as unknown as Promise<BackendSession>,
    };
    entry.opening = open().then(
      (session) => {
        entry.session = session;
        return session;
      },
      (error) => {
        this.#drop(entry);
        throw error;
      },
    );
    this.#sweeper ??= setInterval(() => this.#sweep(), Math.min(this.#options.idleMs, 5_000)).unref();
    return entry;
  }

  async #lease(entry: Entry): Promise<Lease> {
    entry.holders++;
    let released = false;
    const release = (): void => {
      if (released) return;
      released = true;
      entry.holders--;
      if (entry.session !== undefined) entry.session.lastUsedAt = performance.now();
      if (entry.holders === 0) this.#next();
    };
    try {
      return { session: entry.session ?? (await entry.opening), release };
    } catch (error) {
      release();
      throw error;
    }
  }

  #makeRoom(): boolean {
    if (this.#count < this.#options.max) return true;
    let oldest: Entry | undefined;
    for (const entry of this.#entries()) {
      if (entry.holders > 0 || entry.session === undefined) continue;
      if (oldest === undefined || entry.session.lastUsedAt < (oldest.session?.lastUsedAt ?? 0))
        oldest = entry;
    }
    if (oldest === undefined) return false;
    void this.#retire(oldest);
    return true;
  }

  /** Waits for room. Who was called and found it taken again keeps the first place. */
  #wait(again: boolean): Promise<void> {
    return new Promise((proceed) => {
      if (again) this.#waiting.unshift(proceed);
      else this.#waiting.push(proceed);
    });
  }

  #next(): void {
    this.#waiting.shift()?.();
  }

  *#entries(): Generator<Entry> {
    yield* this.#shared.values();
    for (const set of this.#exclusive.values()) yield* set;
  }

  #drop(entry: Entry): void {
    if (entry.gone) return;
    entry.gone = true;
    const set = this.#exclusive.get(entry.key);
    if (this.#shared.get(entry.key) === entry) this.#shared.delete(entry.key);
    else if (set?.delete(entry) === true && set.size === 0) this.#exclusive.delete(entry.key);
    this.#count--;
    this.#next();
  }

  async #retire(entry: Entry): Promise<void> {
    this.#drop(entry);
    const session = entry.session ?? (await entry.opening.catch(() => undefined));
    await session?.end(entry.forwarded);
  }

  #sweep(): void {
    const before = performance.now() - this.#options.idleMs;
    for (const entry of [...this.#entries()]) {
      if (entry.holders === 0 && entry.session !== undefined && entry.session.lastUsedAt < before) {
        void this.#retire(entry);
      }
    }
  }
}
