import { LRUCache } from 'lru-cache';
import { readCapabilities } from '../../exchange/digest.js';
import type { ClientCapabilities, Revision } from '../../exchange/types.js';
import { Rope, scanJson, writeObject } from '../../jsonrpc/index.js';

const REMEMBERED = 1_000;
const remembered = new LRUCache<string, ClientCapabilities>({ max: REMEMBERED });

/** What a modern server is not told of a legacy client, since it could not be carried to it. */
const NOT_TOLD = ['tasks', 'elicitation', 'sampling', 'roots'] as const;

/** A legacy client's capabilities as the other era can be told of them. */
export function neutralClientCapabilities(
  declared: ClientCapabilities,
  revision: Revision,
): ClientCapabilities {
  const key = `${revision} ${declared.text}`;
  let neutral = remembered.get(key);
  if (neutral === undefined) {
    const bytes = Buffer.from(declared.text);
    const out = new Rope();
    writeObject(out, bytes, scanJson(bytes, 1), new Map(NOT_TOLD.map((name) => [name, undefined])));
    neutral = readCapabilities(out.toBuffer().toString());
    remembered.set(key, neutral);
  }
  return neutral;
}
