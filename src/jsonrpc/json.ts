import {
  CLOSE_BRACE,
  COMMA,
  endOfScalar,
  endOfString,
  endOfValue,
  JsonSyntaxError,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  skipSpace,
  startOfMemberValue,
} from './grammar.js';
import { couldBe, keyAt } from './keys.js';

export { JsonSyntaxError } from './grammar.js';

export type JsonKind = 'object' | 'array' | 'string' | 'number' | 'true' | 'false' | 'null';

/** A value in a buffer of JSON text: the bytes `[start, end)`, without white space around them. */
export interface JsonNode {
  readonly kind: JsonKind;
  readonly start: number;
  readonly end: number;
  /** The members of an object if the scan recorded them; `membersOf` returns them in any case. */
  readonly members: readonly JsonMember[] | undefined;
}

export interface JsonMember {
  /** The decoded name; {@link isNamed} is faster for a comparison. */
  readonly key: string;
  isNamed(key: string): boolean;
  /** Position of the opening quote of the name. */
  readonly keyStart: number;
  readonly value: JsonNode;
}

/** Limit of the levels that are recorded: recording is recursive. */
const MAX_RECORDED_LEVELS = 64;

/**
 * Limit of the members that are recorded at one level. A larger object is searched at each lookup instead, so that a
 * peer cannot turn 64 MiB of `"a":1,` into gigabytes of nodes.
 */
const MAX_RECORDED_MEMBERS = 4096;

/** Members that may still be recorded, by level. Scans are synchronous, so all of them share one list. */
const unused = new Int32Array(MAX_RECORDED_LEVELS + 1);

/**
 * Checks in one pass that `[start, end)` is one JSON text (RFC 8259), and records the members of the objects of the
 * first `depth` levels; the root object is level 1, and objects inside arrays are not recorded. A leading UTF-8 byte
 * order mark is skipped (RFC 8259, section 8.1). Bytes of 0x80 and above are accepted inside strings without a check of
 * their encoding; bytes of a peer go through `toValidUtf8` first.
 *
 * @throws JsonSyntaxError if the text is not JSON or is nested more than 10,000 levels deep
 */
export function scanJson(bytes: Buffer, depth: number, start = 0, end = bytes.length): JsonNode {
  const levels = Math.min(depth, MAX_RECORDED_LEVELS);
  for (let level = 1; level <= levels; level++) unused[level] = MAX_RECORDED_MEMBERS;
  if (end - start >= 3 && bytes[start] === 0xef && bytes[start + 1] === 0xbb && bytes[start + 2] === 0xbf)
    start += 3;
  const root = scanValue(bytes, skipSpace(bytes, start, end), end, 1, levels);
  const rest = skipSpace(bytes, root.end, end);
  if (rest !== end) throw new JsonSyntaxError('the end of the text', rest);
  return root;
}

function scanValue(bytes: Buffer, pos: number, end: number, level: number, levels: number): JsonNode {
  const first = pos < end ? bytes[pos] : -1;
  if (first === OPEN_BRACE && level <= levels) return scanObject(bytes, pos, end, level, levels);
  if (first === OPEN_BRACE || first === OPEN_BRACKET)
    return nodeAt(bytes, pos, endOfValue(bytes, pos, end, level));
  return nodeAt(bytes, pos, endOfScalar(bytes, pos, end));
}

function scanObject(bytes: Buffer, start: number, end: number, level: number, levels: number): JsonNode {
  let members: JsonMember[] | undefined = [];
  let left = unused[level] as number;
  let pos = skipSpace(bytes, start + 1, end);
  if (pos < end && bytes[pos] === CLOSE_BRACE) return { kind: 'object', start, end: pos + 1, members };
  for (;;) {
    const keyStart = pos;
    const keyEnd = endOfString(bytes, pos, end);
    pos = startOfMemberValue(bytes, keyEnd, end);
    if (left-- <= 0) members = undefined;
    if (members === undefined) {
      pos = endOfValue(bytes, pos, end, level + 1);
    } else {
      const value = scanValue(bytes, pos, end, level + 1, levels);
      members.push(new Member(bytes, keyStart, keyEnd, value));
      pos = value.end;
    }
    pos = skipSpace(bytes, pos, end);
    const byte = pos < end ? bytes[pos] : -1;
    if (byte === CLOSE_BRACE) break;
    if (byte !== COMMA) throw new JsonSyntaxError('"," or "}"', pos);
    pos = skipSpace(bytes, pos + 1, end);
  }
  if (members !== undefined) unused[level] = left;
  return { kind: 'object', start, end: pos + 1, members };
}

const KINDS = new Array<JsonKind>(256).fill('number');
KINDS[OPEN_BRACE] = 'object';
KINDS[OPEN_BRACKET] = 'array';
KINDS[QUOTE] = 'string';
KINDS[0x74] = 'true';
KINDS[0x66] = 'false';
KINDS[0x6e] = 'null';

export function nodeAt(bytes: Buffer, start: number, end: number): JsonNode {
  return { kind: KINDS[bytes[start] as number] as JsonKind, start, end, members: undefined };
}

/** A recorded member. Its name is decoded on first use: most names are never read. */
export class Member implements JsonMember {
  readonly keyStart: number;
  readonly value: JsonNode;
  readonly #bytes: Buffer;
  readonly #keyEnd: number;
  #key: string | undefined;

  constructor(bytes: Buffer, keyStart: number, keyEnd: number, value: JsonNode) {
    this.keyStart = keyStart;
    this.value = value;
    this.#bytes = bytes;
    this.#keyEnd = keyEnd;
  }

  get key(): string {
    this.#key ??= keyAt(this.#bytes, this.keyStart + 1, this.#keyEnd - 1);
    return this.#key;
  }

  isNamed(key: string): boolean {
    if (this.#key !== undefined) return this.#key === key;
    return couldBe(this.#bytes, this.keyStart + 1, this.#keyEnd - 1, key) && this.key === key;
  }
}
