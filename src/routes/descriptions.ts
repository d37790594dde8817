import { LRUCache } from 'lru-cache';
import { type Caller, identityOf } from '../exchange/caller.js';
import type { ServerDescription } from '../exchange/outbound.js';

interface Entry {
  readonly description: ServerDescription;
  /** On the monotonic clock. */
  readonly at: number;
}

const MAX_DESCRIPTIONS = 200;
const MAX_BYTES = 32 * 1024 * 1024;

/** What a backend has said of itself, by caller. */
export class Descriptions {
  readonly #entries = new LRUCache<string, Entry>({
    max: MAX_DESCRIPTIONS,
    maxSize: MAX_BYTES,
    sizeCalculation: ({ description }, key) => weightOf(description) + key.length,
  });

  /** The description that is still fresh by its own `ttlMs`, with what is left of that. */
  fresh(caller: Caller): ServerDescription | undefined {
    const entry = this.#entryOf(caller);
    if (entry === undefined) return undefined;
    const leftMs = entry.description.ttlMs - (performance.now() - entry.at);
    return leftMs > 0 ? { ...entry.description, ttlMs: Math.floor(leftMs) } : undefined;
  }

  /** The latest description, for while the backend is down: that does not change what it is. */
  stale(caller: Caller): ServerDescription | undefined {
    const entry = this.#entryOf(caller);
    return entry === undefined ? undefined : { ...entry.description, ttlMs: 0 };
  }

  set(caller: Caller, description: ServerDescription): void {
    this.#entries.set(keyOf(caller), { description, at: performance.now() });
  }

  /** Describing attaches a client's session to its backend session, so it is done for each of them. */
  #entryOf(caller: Caller): Entry | undefined {
    return caller.session === undefined ? this.#entries.get(keyOf(caller)) : undefined;
  }
}

function keyOf(caller: Caller): string {
  return `${caller.era} ${identityOf(caller)} ${caller.capabilities.key}`;
}

/** Bytes, at most: characters of strings may take two. */
function weightOf({ capabilities, instructions, serverInfo, result }: ServerDescription): number {
  const texts = [capabilities, instructions, serverInfo].map((text) => text?.length ?? 0);
  return 2 * texts.reduce((sum, length) => sum + length) + (result?.length ?? 0);
}
