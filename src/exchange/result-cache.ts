import { LRUCache } from 'lru-cache';
import { type Change, covers, LIST_CHANGES, RESOURCE_UPDATED } from './changes.js';
import type { Exchange, Params } from './exchange.js';
import type { Outcome, ResultOutcome } from './outcome.js';
import { rewriteParams } from './rewrite.js';
import type { EraName } from './types.js';

/** How long a result may be kept, as the outbound side knows it. */
export interface Freshness {
  readonly ttlMs: number;
  /** What clients may be told of it; less where the gateway hears of changes and they do not. */
  readonly hintMs: number;
  /** The same for every caller. */
  readonly shared: boolean;
}

/** A result that is kept, with the texts in which it has gone out: they are written once for each form. */
export class Kept {
  readonly freshness: Freshness;
  readonly #storedAt = performance.now();
  readonly #texts = new Map<string, Buffer>();

  constructor(freshness: Freshness) {
    this.freshness = freshness;
  }

  /** Age in milliseconds. */
  get age(): number {
    return performance.now() - this.#storedAt;
  }

  /** Milliseconds for which a client may still keep the result. */
  get hintMs(): number {
    return Math.max(0, Math.floor(this.freshness.hintMs - this.age));
  }

  /** The result in the form of that name, made by `render` where it is not there yet. */
  text(form: string, render: () => Buffer): Buffer {
    let text = this.#texts.get(form);
    if (text === undefined) {
      text = render();
      this.#texts.set(form, text);
    }
    return text;
  }
}

export interface ResultCacheOptions {
  readonly maxEntries: number;
  readonly maxBytes: number;
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

interface Entry {
  readonly outcome: ResultOutcome;
  readonly kept: Kept;
  readonly method: string;
  /** Of a resource. */
  readonly uri: string | undefined;
}

/** Methods whose results may be kept (server/utilities/caching), and the change that makes each of them old. */
const KEPT_UNTIL: Readonly<Record<string, string>> = {
  'tools/list': LIST_CHANGES.toolsListChanged,
  'prompts/list': LIST_CHANGES.promptsListChanged,
  'resources/list': LIST_CHANGES.resourcesListChanged,
  'resources/templates/list': LIST_CHANGES.resourcesListChanged,
  'resources/read': RESOURCE_UPDATED,
};

/** Methods whose results may be kept. */
export const CACHEABLE: ReadonlySet<string> = new Set(Object.keys(KEPT_UNTIL));

/** Requests with longer params are not kept. */
const MAX_PARAMS_BYTES = 2_048;
/** An entry weighs more than its bytes: nodes, and the texts that it has gone out in. */
const WEIGHT = 3;
const OVERHEAD_BYTES = 1_024;
/** No hint is taken for longer than this. */
const LONGEST_MS = 24 * 3_600_000;

/**
 * Results that the backend need not be asked for again, by what they depend on: method, params, era and revision of the
 * caller, and, unless they are the same for all, its principal, capabilities and name. Equal requests in flight are one.
 */
export class ResultCache {
  readonly counts: CacheCounts = { hits: 0, misses: 0, joined: 0, stale: 0, invalidations: 0 };
  readonly #options: ResultCacheOptions;
  readonly #entries: LRUCache<string, Entry>;
  readonly #inFlight = new Map<string, Promise<Outcome | undefined>>();
  /** Grows with every change that is heard of: what was asked for before it is not kept. */
  #changes = 0;

  constructor(options: ResultCacheOptions) {
    this.#options = options;
    this.#entries = new LRUCache({
      max: options.maxEntries,
      maxSize: options.maxBytes,
      sizeCalculation: ({ outcome }) => outcome.bytes.length * WEIGHT + OVERHEAD_BYTES,
    });
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Answers a request from what is kept, or by `ask`, whose answer is kept if it may be. */
  async through(exchange: Exchange, backendEra: EraName, ask: () => Promise<Outcome>): Promise<Outcome> {
    const key = cacheKey(exchange, backendEra);
    if (key === undefined) return ask();
    const known = this.#find(key);
    if (known !== undefined && known.kept.age < known.kept.freshness.ttlMs) {
      this.counts.hits++;
      exchange.notes.cache = 'hit';
      return known.outcome;
    }
    const leader = this.#inFlight.get(key.own);
    if (leader !== undefined) {
      const outcome = await leader.catch(() => undefined);
      if (outcome?.type === 'result' && outcome.personal !== true) {
        this.counts.joined++;
        exchange.notes.cache = 'joined';
        return withoutKept(outcome);
      }
    }
    this.counts.misses++;
    const changes = this.#changes;
    let personal = false;
    let notForOthers = (): void => {};
    const asked = new Promise<undefined>((resolve) => {
      notForOthers = () => resolve(undefined);
    });
    // Whose client is asked gets a result of its own, and nobody else waits for that client's person.
    exchange.onAsk = () => {
      personal = true;
      notForOthers();
    };
    const result = ask();
    const flight = Promise.race([result, asked]);
    flight.catch(() => {});
    this.#inFlight.set(key.own, flight);
    try {
      const outcome = await result;
      return outcome.type === 'result' && !personal && changes === this.#changes
        ? this.#keep(key, exchange, outcome)
        : outcome;
    } finally {
      exchange.onAsk = undefined;
      if (this.#inFlight.get(key.own) === flight) this.#inFlight.delete(key.own);
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

  /** Forgets what a change has made old. */
  invalidate({ method, uri }: Change): void {
    this.#changes++;
    for (const [key, entry] of this.#entries.entries()) {
      if (KEPT_UNTIL[entry.method] !== method) continue;
      if (method === RESOURCE_UPDATED && uri !== undefined && !concerns(uri, entry.uri)) continue;
      this.#entries.delete(key);
      this.counts.invalidations++;
    }
  }

  #find({ own, shared }: CacheKey): Entry | undefined {
    return this.#entries.get(own) ?? this.#entries.get(shared);
  }

  #keep(key: CacheKey, exchange: Exchange, outcome: ResultOutcome): ResultOutcome {
    const { freshness } = outcome;
    if (freshness === undefined || freshness.ttlMs <= 0) return outcome;
    const kept = new Kept({ ...freshness, ttlMs: Math.min(freshness.ttlMs, LONGEST_MS) });
    const keptOutcome = { ...outcome, kept };
    const { method, name } = exchange.request;
    this.#entries.set(freshness.shared ? key.shared : key.own, {
      outcome: keptOutcome,
      kept,
      method,
      uri: name,
    });
    // What a backend has just said to a client of its own era goes out as it said it, its hints included.
    return outcome.dress === 'none' ? keptOutcome : { ...outcome, edits: new Map(outcome.edits) };
  }
}

/** An outcome for one more request: the edits are made once for each. */
function withoutKept(outcome: ResultOutcome): ResultOutcome {
  return outcome.kept === undefined ? { ...outcome, edits: new Map(outcome.edits) } : outcome;
}

/** A resource is old as well when a part of it, or what it is a part of, has changed. */
function concerns(changed: string, kept: string | undefined): boolean {
  return kept !== undefined && (covers(kept, changed) || covers(changed, kept));
}

interface CacheKey {
  /** For this caller alone. */
  readonly own: string;
  /** For all callers of the same kind. */
  readonly shared: string;
}

/** @returns undefined for what is never kept: other methods, retries, and requests that want to hear how they go on */
function cacheKey(
  { request, caller, progressToken }: Exchange,
  backendEra: EraName | undefined,
): CacheKey | undefined {
  const { method, params } = request;
  if (!CACHEABLE.has(method) || progressToken !== undefined || caller.logLevel !== undefined)
    return undefined;
  // A client with a session of its own at the backend may be told other things than the next one.
  if (caller.era === 'legacy' && backendEra === 'legacy') return undefined;
  const size = params.node === undefined ? 0 : params.node.end - params.node.start;
  if (size > MAX_PARAMS_BYTES + (params.meta === undefined ? 0 : params.meta.end - params.meta.start))
    return undefined;
  const text = paramsText(params);
  if (text === undefined) return undefined;
  const shared = `${caller.era} ${caller.revision} ${method} ${text}`;
  return {
    own: `${shared} ${caller.principal} ${caller.capabilities.key} ${caller.clientInfo ?? ''}`,
    shared,
  };
}

const ROUND_MEMBERS = /"(?:inputResponses|requestState)"/;
const NO_META: ReadonlyMap<string, undefined> = new Map([['_meta', undefined]]);

/** The params without `_meta`; undefined for the retry of a request that was answered with questions. */
function paramsText(params: Params): string | undefined {
  const text = rewriteParams({ ...params, meta: undefined }, undefined, NO_META)
    .toBuffer()
    .toString('latin1');
  return ROUND_MEMBERS.test(text) ? undefined : text;
}
