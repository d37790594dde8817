import {
  CLOSE_BRACKET,
  COMMA,
  endOfString,
  endOfValue,
  QUOTE,
  skipSpace,
  startOfMemberValue,
} from './grammar.js';
import { type JsonMember, type JsonNode, Member, nodeAt } from './json.js';
import { keyAt, keyIs } from './keys.js';

/**
 * Lookups in a scanned buffer. All functions take the text for valid JSON: a node is from `scanJson` or from one of these
 * functions, and comes with the buffer that it refers to.
 */

/** The members of an object in order, duplicates included; empty for any other kind. */
export function membersOf(bytes: Buffer, node: JsonNode): readonly JsonMember[] {
  if (node.members !== undefined) return node.members;
  const members: JsonMember[] = [];
  for (const cursor = new MemberCursor(bytes, node); cursor.next(); ) members.push(cursor.member());
  return members;
}

/** Above this number of names, each member is looked up in a set instead of being compared with every name. */
const MANY_NAMES = 8;

/** Whether an object has more members than `count`; reads no further than that. */
export function hasMoreMembers(bytes: Buffer, node: JsonNode, count: number): boolean {
  if (node.members !== undefined) return node.members.length > count;
  let seen = 0;
  for (const cursor = new MemberCursor(bytes, node); cursor.next(); ) if (++seen > count) return true;
  return false;
}

/** The members whose names are among `keys`, in order, duplicates included. */
export function membersNamed(bytes: Buffer, node: JsonNode, keys: Iterable<string>): readonly JsonMember[] {
  const names = [...keys];
  if (names.length > MANY_NAMES) return membersAmong(bytes, node, new Set(names));
  const found: JsonMember[] = [];
  if (node.members !== undefined) {
    for (const member of node.members) {
      for (const name of names) if (member.isNamed(name)) found.push(member);
    }
    return found;
  }
  for (const cursor = new MemberCursor(bytes, node); cursor.next(); ) {
    for (const name of names) if (cursor.isNamed(name)) found.push(cursor.member());
  }
  return found;
}

function membersAmong(bytes: Buffer, node: JsonNode, names: ReadonlySet<string>): JsonMember[] {
  if (node.members !== undefined) return node.members.filter(({ key }) => names.has(key));
  const found: JsonMember[] = [];
  for (const cursor = new MemberCursor(bytes, node); cursor.next(); ) {
    const member = cursor.member();
    if (names.has(member.key)) found.push(member);
  }
  return found;
}

/** Whether a text, in ASCII, occurs anywhere in a value. The search ends with the value, not with the buffer. */
export function mentions(bytes: Buffer, { start, end }: JsonNode, text: string): boolean {
  return bytes.subarray(start, end).indexOf(text, 0, 'latin1') !== -1;
}

/**
 * The value of the last member of that name, as in `JSON.parse`; names written with escapes are found too. Undefined if
 * there is none or the node is not an object.
 */
export function getMember(bytes: Buffer, node: JsonNode, key: string): JsonNode | undefined {
  const members = node.members;
  if (members !== undefined) {
    for (let i = members.length - 1; i >= 0; i--) {
      const member = members[i] as JsonMember;
      if (member.isNamed(key)) return member.value;
    }
    return undefined;
  }
  let found: JsonNode | undefined;
  for (const cursor = new MemberCursor(bytes, node); cursor.next(); ) {
    if (cursor.isNamed(key)) found = cursor.value();
  }
  return found;
}

/** The elements of an array; empty for any other kind. For arrays of any length see {@link eachElement}. */
export function elementsOf(bytes: Buffer, node: JsonNode): readonly JsonNode[] {
  return [...eachElement(bytes, node)];
}

/** Yields the elements of an array one by one, so that millions of them are not held as nodes at once. */
export function* eachElement(bytes: Buffer, node: JsonNode): Generator<JsonNode, void, undefined> {
  if (node.kind !== 'array') return;
  let pos = skipSpace(bytes, node.start + 1, node.end);
  while (bytes[pos] !== CLOSE_BRACKET) {
    const element = nodeAt(bytes, pos, endOfValue(bytes, pos, node.end, 1));
    yield element;
    pos = skipSpace(bytes, element.end, node.end);
    if (bytes[pos] === COMMA) pos = skipSpace(bytes, pos + 1, node.end);
  }
}

/** The raw JSON text. */
export function textOf(bytes: Buffer, node: JsonNode): string {
  return bytes.toString('utf8', node.start, node.end);
}

/** The value, parsed by `JSON.parse`. */
// biome-ignore lint/suspicious/noShadowRestrictedNames: the global function is of no use without an object
export function valueOf(bytes: Buffer, node: JsonNode): unknown {
  return JSON.parse(textOf(bytes, node));
}

/** The decoded string; undefined for no node and for any other kind. */
export function stringOf(bytes: Buffer, node: JsonNode | undefined): string | undefined {
  return node?.kind === 'string' ? keyAt(bytes, node.start + 1, node.end - 1) : undefined;
}

/** The decoded string of a member; undefined for no object, no such member and any other kind. */
export function stringMember(bytes: Buffer, node: JsonNode | undefined, key: string): string | undefined {
  return node === undefined ? undefined : stringOf(bytes, getMember(bytes, node, key));
}

/** Iterates over the members of a scanned object without making a node for each. */
class MemberCursor {
  readonly #bytes: Buffer;
  readonly #end: number;
  #keyStart = 0;
  #keyEnd = 0;
  #valueStart = 0;
  #valueEnd: number;

  constructor(bytes: Buffer, node: JsonNode) {
    this.#bytes = bytes;
    this.#end = node.kind === 'object' ? node.end : node.start;
    this.#valueEnd = node.start;
  }

  next(): boolean {
    // Before a member is the opening brace or a comma; after the last one is the closing brace.
    const before = skipSpace(this.#bytes, this.#valueEnd, this.#end);
    if (before >= this.#end - 1) return false;
    const pos = skipSpace(this.#bytes, before + 1, this.#end);
    if (this.#bytes[pos] !== QUOTE) return false;
    this.#keyStart = pos;
    this.#keyEnd = endOfString(this.#bytes, pos, this.#end);
    this.#valueStart = startOfMemberValue(this.#bytes, this.#keyEnd, this.#end);
    this.#valueEnd = endOfValue(this.#bytes, this.#valueStart, this.#end, 1);
    return true;
  }

  isNamed(key: string): boolean {
    return keyIs(this.#bytes, this.#keyStart + 1, this.#keyEnd - 1, key);
  }

  value(): JsonNode {
    return nodeAt(this.#bytes, this.#valueStart, this.#valueEnd);
  }

  member(): JsonMember {
    return new Member(this.#bytes, this.#keyStart, this.#keyEnd, this.value());
  }
}
