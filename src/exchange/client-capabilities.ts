import { LRUCache } from 'lru-cache';
import { type Extent, exceeded, scanJson } from '../jsonrpc/index.js';
import { canonicalJson, keyText } from './utils/hash.js';

/** What a client declared that it can do. */
export interface ClientCapabilities {
  /** JSON text as the client wrote it. */
  readonly text: string;
  readonly value: Readonly<Record<string, unknown>>;
  /** Equal for declarations that mean the same, in any order of keys. */
  readonly key: string;
}

const REMEMBERED = 1_000;
const REMEMBERED_BYTES = 8 * 1024 * 1024;
/** Bytes that a declaration takes when it is parsed, for each character of its text. */
const PARSED_WEIGHT = 12;
const declared = new LRUCache<string, ClientCapabilities>({
  max: REMEMBERED,
  maxSize: REMEMBERED_BYTES,
  sizeCalculation: (_capabilities, text) => (text.length + 1) * PARSED_WEIGHT,
});
/** Deeper values are not brought into a canonical form, which takes recursion. */
const READ_DEEPLY: Extent = { bytes: Number.POSITIVE_INFINITY, levels: 64, members: 100_000 };

/**
 * Parses a declaration. The result is remembered, since clients send the same text with every request.
 * @param text JSON text of an object
 */
export function readCapabilities(text: string): ClientCapabilities {
  const known = declared.get(text);
  if (known !== undefined) return known;
  const value = JSON.parse(text) as Record<string, unknown>;
  const bytes = Buffer.from(text);
  const isDeep = exceeded(bytes, scanJson(bytes, 0), READ_DEEPLY) !== undefined;
  const capabilities = { text, value, key: keyText(isDeep ? text : canonicalJson(value)) };
  declared.set(text, capabilities);
  return capabilities;
}

export const NO_CAPABILITIES: ClientCapabilities = readCapabilities('{}');
