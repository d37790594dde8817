import { LRUCache } from 'lru-cache';
import type { Principal } from '../../../exchange/credentials.js';
import type { PendingRequest } from './pending-requests.js';

/** How long the response to a retry is kept, in milliseconds: a client notices within it that its connection broke. */
const KEPT_MS = 60_000;
/** Sum of what is kept on one route; the oldest responses are evicted. */
const MAX_BYTES = 16 * 1024 * 1024;
/** Memory of a response beside its bytes. */
const OVERHEAD_BYTES = 1024;

/** A retry that has its response. */
export interface SettledRound {
  readonly principal: Principal;
  /** Digest of the answers that it came with. */
  readonly answers: string;
  /** Bytes that the response holds. */
  readonly bytes: number;
  /** Writes the same response to a copy of the retry. */
  readonly write: (pending: PendingRequest) => void;
}

/**
 * The responses to retries, for clients that did not receive them: a client whose connection broke sends the same retry
 * again, gets the same response, and nothing runs twice.
 */
export class SettledRounds {
  readonly #rounds: LRUCache<string, SettledRound>;

  constructor({ keptMs = KEPT_MS, maxBytes = MAX_BYTES }: { keptMs?: number; maxBytes?: number } = {}) {
    this.#rounds = new LRUCache({
      maxSize: maxBytes,
      sizeCalculation: ({ bytes }) => bytes + OVERHEAD_BYTES,
      ttl: keptMs,
    });
  }

  add(call: string, round: number, settled: SettledRound): void {
    this.#rounds.set(`${call} ${round}`, settled);
  }

  find(call: string, round: number): SettledRound | undefined {
    return this.#rounds.get(`${call} ${round}`);
  }
}
