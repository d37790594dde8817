import { type Change, covers, RESOURCE_UPDATED } from '../changes/change.js';
import type { Exchange } from '../exchange.js';
import type { Outcome, ResultOutcome } from '../outcome.js';
import type { EraName } from '../revision.js';
import { abortable } from '../utils/abortable.js';
import { type CacheKey, cacheKey, INVALIDATED_BY } from './cache-key.js';
import { CachedResult } from './cached-result.js';
import type { ResultStore, StoredResult, Subject } from './result-store.js';
import { type SharedEnd, SharedRequest } from './shared-request.js';

export interface ResultCacheOptions {
  /** Holds the results, and those of other caches. */
  readonly store: ResultStore;
  /** Prefixes the keys of this cache in the store. */
  readonly name: string;
  /** How long a stale result is served while the backend fails, in milliseconds; 0 for never. */
  readonly staleIfErrorMs: number;
}

export interface CacheCounts {
  hits: number;
  misses: number;
  /** Requests that got the outcome of an equal one in flight. */
  joined: number;
  stale: number;
  invalidations: number;
}

/** Limits the hints of backends. */
const LONGEST_MS = 24 * 3_600_000;

/**
 * Keeps results for equal requests: of the same method, params, era, revision and capabilities, and of the same principal
 * and client unless the backend marks the result as shared. Equal requests in flight are sent once.
 */
export class ResultCache {
  readonly counts: CacheCounts = { hits: 0, misses: 0, joined: 0, stale: 0, invalidations: 0 };
  readonly #options: ResultCacheOptions;
  readonly #entries: ResultStore;
  readonly #inFlight = new Map<string, SharedRequest>();

  constructor(options: ResultCacheOptions) {
    this.#options = options;
    this.#entries = options.store;
  }

  /** The outcome of a request: a cached result, that of an equal request in flight, or that of `ask`. */
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
      const request = this.#inFlight.get(key.own);
      if (request === undefined) return this.#askForAll(key, exchange, ask);
      const end = await abortable(exchange.signal, request.ended);
      if (end === 'private') {
        this.counts.misses++;
        return ask();
      }
      if (end === 'abandoned') continue;
      this.counts.joined++;
      exchange.notes.cache = 'joined';
      if ('error' in end) throw end.error;
      return copyOf(end.outcome);
    }
  }

  /** A stale result, to serve in place of a failure; undefined if there is none, or it is too old. */
  stale(exchange: Exchange): ResultOutcome | undefined {
    const { staleIfErrorMs } = this.#options;
    const key = staleIfErrorMs > 0 ? cacheKey(exchange, undefined) : undefined;
    const known = key === undefined ? undefined : this.#find(key);
    if (known === undefined || known.kept.age > known.kept.freshness.ttlMs + staleIfErrorMs) return undefined;
    this.counts.stale++;
    exchange.notes.cache = 'stale';
    return known.outcome;
  }

  /** Drops the results that a change concerns, and does not keep those of requests in flight. */
  invalidate(change: Change): void {
    for (const [key, request] of this.#inFlight) {
      if (!outdates(change, request)) continue;
      request.markOutdated();
      this.#inFlight.delete(key);
    }
    for (const [key, entry] of this.#entries.entries()) {
      if (entry.owner !== this || !outdates(change, entry)) continue;
      this.#entries.delete(key);
      this.counts.invalidations++;
    }
  }

  /** Sends a request for all equal ones that come meanwhile. */
  async #askForAll(key: CacheKey, exchange: Exchange, ask: () => Promise<Outcome>): Promise<Outcome> {
    const request = new SharedRequest(exchange.request);
    const end = (how: SharedEnd): void => {
      if (this.#inFlight.get(key.own) === request) this.#inFlight.delete(key.own);
      request.end(how);
    };
    this.#inFlight.set(key.own, request);
    this.counts.misses++;
    let personal = false;
    // What comes of a server request is for its client, and no other has to wait for the answer of a person.
    const observing = exchange.attach({
      onServerRequest: () => {
        personal = true;
        end('private');
      },
    });
    try {
      const outcome = await ask();
      if (outcome.type === 'error') end({ outcome });
      else if (personal || outcome.personal === true) end('private');
      else {
        const kept = request.outdated ? outcome : this.#keep(key, exchange, outcome);
        end({ outcome: copyOf(kept) });
        return kept;
      }
      return outcome;
    } catch (error) {
      end(exchange.cancelled === undefined ? { error } : 'abandoned');
      throw error;
    } finally {
      observing[Symbol.dispose]();
    }
  }

  #find({ own, shared }: CacheKey): StoredResult | undefined {
    return this.#get(own) ?? (shared === undefined ? undefined : this.#get(shared));
  }

  #get(key: string): StoredResult | undefined {
    return this.#entries.get(this.#nameOf(key));
  }

  #nameOf(key: string): string {
    return `${this.#options.name}\n${key}`;
  }

  #keep(key: CacheKey, exchange: Exchange, outcome: ResultOutcome): ResultOutcome {
    const { freshness } = outcome;
    if (freshness === undefined || freshness.ttlMs <= 0) return outcome;
    const kept = new CachedResult({ ...freshness, ttlMs: Math.min(freshness.ttlMs, LONGEST_MS) });
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
    // A client of the backend's era gets the result as it is, cache hints included.
    return outcome.form === 'neutral' ? keptOutcome : { ...outcome, edits: new Map(outcome.edits) };
  }
}

/** An outcome for one more request. The edits of results that are not cached are made for each. */
function copyOf(outcome: Outcome): Outcome {
  if (outcome.type === 'error' || outcome.kept !== undefined) return outcome;
  return { ...outcome, edits: new Map(outcome.edits) };
}

function outdates({ method, uri }: Change, subject: Subject): boolean {
  if (INVALIDATED_BY.get(subject.method) !== method) return false;
  return method !== RESOURCE_UPDATED || uri === undefined || concerns(uri, subject.uri);
}

/** Whether the changed resource is the cached one, a part of it, or the whole that it is a part of. */
function concerns(changed: string, cached: string | undefined): boolean {
  return cached !== undefined && (covers(cached, changed) || covers(changed, cached));
}
