import {
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COMMA,
  endOfString,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
} from './grammar.js';
import type { JsonNode } from './json.js';

/** Bounds of a value that is kept, or is read by recursion. */
export interface Extent {
  readonly bytes: number;
  /** Of objects and arrays in each other. */
  readonly levels: number;
  /** Members of objects and elements of arrays, at all levels together. */
  readonly members: number;
}

/** The bound that a value exceeds; undefined if it is within all of them. Looks at no more of it than it has to. */
export function exceeded(bytes: Buffer, node: JsonNode, extent: Extent): keyof Extent | undefined {
  if (node.end - node.start > extent.bytes) return 'bytes';
  let levels = 0;
  let members = 0;
  for (let pos = node.start; pos < node.end; pos++) {
    const byte = bytes[pos];
    if (byte === QUOTE) pos = endOfString(bytes, pos, node.end) - 1;
    else if (byte === COMMA) members++;
    else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      members++;
      if (++levels > extent.levels) return 'levels';
    } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) levels--;
    if (members > extent.members) return 'members';
  }
  return undefined;
}
