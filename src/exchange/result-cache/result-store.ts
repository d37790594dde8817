import { LRUCache } from 'lru-cache';
import type { ResultOutcome } from '../outcome.js';
import type { CachedResult } from './cached-result.js';

/** What changes can invalidate. */
export interface Subject {
  readonly method: string;
  /** Of a resource. */
  readonly uri: string | undefined;
}

export interface StoredResult extends Subject {
  /** The cache that stored it. */
  readonly owner: object;
  readonly outcome: ResultOutcome;
  readonly kept: CachedResult;
}

/** Memory of an entry, as a multiple of its bytes: it also holds nodes, and the texts for each form. */
const WEIGHT = 3;
const OVERHEAD_BYTES = 1_024;
const MAX_ENTRIES = 50_000;

/** The results of several caches under one limit of memory. */
export type ResultStore = LRUCache<string, StoredResult>;

export function openResultStore(maxBytes: number, maxEntries = MAX_ENTRIES): ResultStore {
  return new LRUCache({
    max: maxEntries,
    maxSize: maxBytes,
    sizeCalculation: ({ outcome }, key) => outcome.bytes.length * WEIGHT + key.length + OVERHEAD_BYTES,
  });
}
