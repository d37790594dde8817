import { LRUCache } from 'lru-cache';
import { canonicalJson } from './utils/hash.js';

/** What a client declared that it can do. */
export interface ClientCapabilities {
  /** JSON text as the client wrote it. */
  readonly text: string;
  readonly value: Readonly<Record<string, unknown>>;
  /** Equal for declarations that mean the same, in any order of keys. */
  readonly key: string;
}

const REMEMBERED = 1_000;
/** Longer declarations are parsed each time. */
const REMEMBERED_CHARS = 4_096;
const declared = new LRUCache<string, ClientCapabilities>({ max: REMEMBERED });

/**
 * Parses a declaration. The result is remembered, since clients send the same text with every request.
 * @param text JSON text of an object
 */
export function readCapabilities(text: string): ClientCapabilities {
  const known = declared.get(text);
  if (known !== undefined) return known;
  const value = JSON.parse(text) as Record<string, unknown>;
  const capabilities = { text, value, key: canonicalJson(value) };
  if (text.length <= REMEMBERED_CHARS) declared.set(text, capabilities);
  return capabilities;
}

export const NO_CAPABILITIES: ClientCapabilities = readCapabilities('{}');
