import { LRUCache } from 'lru-cache';
import { type Change, covers, RESOURCE_UPDATED } from '../changes/change.js';
import type { Exchange } from '../exchange.js';
import type { Outcome, ResultOutcome } from '../outcome.js';
import type { EraName } from '../revision.js';
import { abortable } from '../utils/abortable.js';
import { deferred } from '../utils/deferred.js';
import { type CacheKey, cacheKey, KEPT_UNTIL } from './cache-key.js';
import { Kept } from './kept-result.js';

export interface ResultCacheOptions {
  /** Where results are kept, those of other caches too. */
  readonly store: ResultStore;
  /** Tells the results of this cache from those of others in the store. */
  readonly name: string;
  /** How long after its time a result may still stand in for one that the backend cannot give; 0 for never. */
  readonly staleIfErrorMs: number;
}

export interface CacheCounts {
  hits: number;
  misses: number;
  /** Requests that shared the answer of an equal one in flight. */
  joined: number;
  stale: number;
  invalidations: number;
}

/** What a request asks for, as far as changes can make it old. */
interface Subject {
  readonly method: string;
  /** Of a resource. */
  readonly uri: string | undefined;
}

interface Entry extends Subject {
  readonly owner: ResultCache;
  readonly outcome: ResultOutcome;
  readonly kept: Kept;
}

/** An entry weighs more than its bytes: nodes, and the texts that it has gone out in. */
const WEIGHT = 3;
const OVERHEAD_BYTES = 1_024;
const MAX_ENTRIES = 50_000;

/** The results of several caches under one bound of memory. */
export type ResultStore = LRUCache<string, Entry>;

export function openResultStore(maxBytes: number, maxEntries = MAX_ENTRIES): ResultStore {
  return new LRUCache({
    max: maxEntries,
    maxSize: maxBytes,
    sizeCalculation: ({ outcome }, key) => outcome.bytes.length * WEIGHT + key.length + OVERHEAD_BYTES,
  });
}

/** No hint is taken for longer than this. */
const LONGEST_MS = 24 * 3_600_000;

/** How a request in flight ended for those who wait for the same. */
type Landing =
  | { readonly outcome: Outcome }
  | { readonly error: unknown }
  /** Nobody waits for it any more; the next one asks. */
  | 'abandoned'
  /** What comes of it is for one caller alone. */
  | 'private';

/** A request in flight whose answer is that of every equal one. */
class Flight implements Subject {
  readonly method: string;
  readonly uri: string | undefined;
  /** Something changed since it was sent. */
  outdated = false;
  readonly #landing = deferred<Landing>();

  constructor({ method, name }: Exchange['request']) {
    this.method = method;
    this.uri = name;
  }

  get landed(): Promise<Landing> {
    return this.#landing.promise;
  }

  land(landing: Landing): void {
    this.#landing.resolve(landing);
  }
}

/**
 * Results that the backend need not be asked for again, by what they depend on: method, params, era, revision and
 * capabilities of the caller, and, unless they are the same for all, its principal and name. Equal requests in flight
 * are one.
 */
export class ResultCache {
  readonly counts: CacheCounts = { hits: 0, misses: 0, joined: 0, stale: 0, invalidations: 0 };
  readonly #options: ResultCacheOptions;
  readonly #entries: ResultStore;
  readonly #flights = new Map<string, Flight>();

  constructor(options: ResultCacheOptions) {
    this.#options = options;
    this.#entries = options.store;
  }

  /** Results that are kept, those of other caches in the store too. */
  get size(): number {
    return this.#entries.size;
  }

  /** Answers a request from what is kept, or by `ask`, whose answer is kept if it may be. */
  async through(exchange: Exchange, backendEra: EraName, ask: () => Promise<Outcome>): Promise<Outcome> {
    const key = cacheKey(exchange, backendEra);
    if (key === undefined) return ask();
    for (;;) {
      const known = this.#find(key);
      if (known?.kept.fresh === true) {
        this.counts.hits++;
        exchange.notes.cache = 'hit';
        return known.outcome;
      }
      const flight = this.#flights.get(key.own);
      if (flight === undefined) return this.#lead(key, exchange, ask);
      const landing = await abortable(exchange.signal, flight.landed);
      if (landing === 'private') {
        this.counts.misses++;
        return ask();
      }
      if (landing === 'abandoned') continue;
      this.counts.joined++;
      exchange.notes.cache = 'joined';
      if ('error' in landing) throw landing.error;
      return copyOf(landing.outcome);
    }
  }

  /** A result that is past its time, for want of a better one. */
  stale(exchange: Exchange): ResultOutcome | undefined {
    const { staleIfErrorMs } = this.#options;
    const key = staleIfErrorMs > 0 ? cacheKey(exchange, undefined) : undefined;
    const known = key === undefined ? undefined : this.#find(key);
    if (known === undefined || known.kept.age > known.kept.freshness.ttlMs + staleIfErrorMs) return undefined;
    this.counts.stale++;
    exchange.notes.cache = 'stale';
    return known.outcome;
  }

  /** Forgets what a change has made old, and keeps nothing of what was asked for before it. */
  invalidate(change: Change): void {
    for (const [key, flight] of this.#flights) {
      if (!outdates(change, flight)) continue;
      flight.outdated = true;
      this.#flights.delete(key);
    }
    for (const [key, entry] of this.#entries.entries()) {
      if (entry.owner !== this || !outdates(change, entry)) continue;
      this.#entries.delete(key);
      this.counts.invalidations++;
    }
  }

  /** Asks on behalf of all who come with the same request meanwhile. */
  async #lead(key: CacheKey, exchange: Exchange, ask: () => Promise<Outcome>): Promise<Outcome> {
    const flight = new Flight(exchange.request);
    const land = (landing: Landing): void => {
      if (this.#flights.get(key.own) === flight) this.#flights.delete(key.own);
      flight.land(landing);
    };
    this.#flights.set(key.own, flight);
    this.counts.misses++;
    let personal = false;
    // A client that is asked something gets a result of its own, and no other waits for its person.
    const observing = exchange.attach({
      onServerRequest: () => {
        personal = true;
        land('private');
      },
    });
    try {
      const outcome = await ask();
      if (outcome.type === 'error') land({ outcome });
      else if (personal || outcome.personal === true) land('private');
      else {
        const kept = flight.outdated ? outcome : this.#keep(key, exchange, outcome);
        land({ outcome: copyOf(kept) });
        return kept;
      }
      return outcome;
    } catch (error) {
      land(exchange.cancelled === undefined ? { error } : 'abandoned');
      throw error;
    } finally {
      observing[Symbol.dispose]();
    }
  }

  #find({ own, shared }: CacheKey): Entry | undefined {
    return this.#get(own) ?? (shared === undefined ? undefined : this.#get(shared));
  }

  #get(key: string): Entry | undefined {
    return this.#entries.get(this.#nameOf(key));
  }

  #nameOf(key: string): string {
    return `${this.#options.name}\n${key}`;
  }

  #keep(key: CacheKey, exchange: Exchange, outcome: ResultOutcome): ResultOutcome {
    const { freshness } = outcome;
    if (freshness === undefined || freshness.ttlMs <= 0) return outcome;
    const kept = new Kept({ ...freshness, ttlMs: Math.min(freshness.ttlMs, LONGEST_MS) });
    const keptOutcome = { ...outcome, kept };
    const { method, name } = exchange.request;
    const place = freshness.shared ? (key.shared ?? key.own) : key.own;
    this.#entries.set(this.#nameOf(place), {
      owner: this,
      outcome: keptOutcome,
      kept,
      method,
      uri: name,
    });
    // What a backend has just said to a client of its own era goes out as it said it, its hints included.
    return outcome.form === 'neutral' ? keptOutcome : { ...outcome, edits: new Map(outcome.edits) };
  }
}

/** An outcome for one more request: where it is not kept, each makes its own edits. */
function copyOf(outcome: Outcome): Outcome {
  if (outcome.type === 'error' || outcome.kept !== undefined) return outcome;
  return { ...outcome, edits: new Map(outcome.edits) };
}

function outdates({ method, uri }: Change, subject: Subject): boolean {
  if (KEPT_UNTIL.get(subject.method) !== method) return false;
  return method !== RESOURCE_UPDATED || uri === undefined || concerns(uri, subject.uri);
}

/** A resource is old as well when a part of it, or what it is a part of, has changed. */
function concerns(changed: string, kept: string | undefined): boolean {
  return kept !== undefined && (covers(kept, changed) || covers(changed, kept));
}
