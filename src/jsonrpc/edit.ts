import { CLOSE_BRACE, COMMA, skipSpace } from './grammar.js';
import { type JsonMember, type JsonNode, scanJson } from './json.js';
import { eachElement, membersNamed } from './lookup.js';
import { Rope } from './rope.js';

/** New values by member name, as JSON text; undefined removes the member. */
export type Edits = ReadonlyMap<string, Rope | string | undefined>;

/**
 * Writes an object with some members replaced, removed or added. All other bytes stay as they are: order, duplicates,
 * number tokens, escapes and the white space between members. A replaced member keeps its position; of several members
 * of its name only the last is kept, which is the one that `JSON.parse` reads. New members are added at the end, in the
 * order of the map.
 *
 * @param node the object in `bytes`, as scanned; undefined stands for `{}`
 */
export function writeObject(out: Rope, bytes: Buffer, node: JsonNode | undefined, edits: Edits): void {
  if (node === undefined) {
    out.push('{');
    writeNewMembers(out, edits, ABSENT, '');
    out.push('}');
    return;
  }
  const touched = membersNamed(bytes, node, edits.keys());
  const lastOf = lastIndexes(touched);
  const last = node.end - 1;
  let cursor = skipSpace(bytes, node.start + 1, node.end);
  let written = false;
  out.pushSlice(bytes, node.start, cursor);
  for (let i = 0; i < touched.length; i++) {
    const { key, keyStart, value } = touched[i] as JsonMember;
    const text = lastOf(key) === i ? edits.get(key) : undefined;
    written ||= keyStart > cursor;
    if (text !== undefined) {
      out.pushSlice(bytes, cursor, value.start).push(text);
      cursor = value.end;
      written = true;
    } else if (written) {
      out.pushSlice(bytes, cursor, commaBefore(bytes, keyStart));
      cursor = value.end;
    } else {
      cursor = skipSpace(bytes, value.end, node.end);
      if (bytes[cursor] === COMMA) cursor = skipSpace(bytes, cursor + 1, node.end);
    }
  }
  written ||= bytes[cursor] !== CLOSE_BRACE;
  out.pushSlice(bytes, cursor, last);
  writeNewMembers(out, edits, lastOf, written ? ',' : '');
  out.pushSlice(bytes, last, node.end);
}

/** The text that {@link writeObject} writes. */
export function editedObject(bytes: Buffer, node: JsonNode | undefined, edits: Edits): Rope {
  const out = new Rope();
  writeObject(out, bytes, node, edits);
  return out;
}

/**
 * The text of an object with edits applied as by {@link writeObject}.
 * @param text JSON text of an object
 */
export function editedText(text: string, edits: Edits): string {
  const bytes = Buffer.from(text);
  return editedObject(bytes, scanJson(bytes, 1), edits).toBuffer().toString();
}

/**
 * An array with each element replaced by the text or the node that `replace` returns for it, or removed where that is
 * undefined.
 */
export function mapElements(
  bytes: Buffer,
  array: JsonNode,
  replace: (element: JsonNode) => Rope | string | JsonNode | undefined,
): Rope {
  const out = new Rope().push('[');
  let first = true;
  for (const element of eachElement(bytes, array)) {
    const replacement = replace(element);
    if (replacement === undefined) continue;
    if (!first) out.push(',');
    first = false;
    if (typeof replacement === 'object' && 'kind' in replacement)
      out.pushSlice(bytes, replacement.start, replacement.end);
    else out.push(replacement);
  }
  return out.push(']');
}

/** {@link mapElements} for the objects of an array; elements of other kinds stay as they are. */
export function mapObjects(
  bytes: Buffer,
  array: JsonNode,
  replace: (element: JsonNode) => Rope | undefined,
): Rope {
  return mapElements(bytes, array, (element) => (element.kind === 'object' ? replace(element) : element));
}

/** The text of a value as it stands in the buffer. */
export function sliceOf(bytes: Buffer, { start, end }: JsonNode): Rope {
  return new Rope().pushSlice(bytes, start, end);
}

/** The position of the last member of a name; -1 if there is none. */
type LastIndex = (key: string) => number;

const ABSENT: LastIndex = () => -1;

/** Up to this number a search through the members is faster than a map of them. */
const FEW = 8;

function lastIndexes(members: readonly JsonMember[]): LastIndex {
  if (members.length <= FEW) return (key) => members.findLastIndex((member) => member.key === key);
  const indexes = new Map(members.map(({ key }, index) => [key, index]));
  return (key) => indexes.get(key) ?? -1;
}

/** @param separator before the first new member */
function writeNewMembers(out: Rope, edits: Edits, lastOf: LastIndex, separator: ',' | ''): void {
  for (const [key, text] of edits) {
    if (text === undefined || lastOf(key) !== -1) continue;
    out.pushAscii(separator).pushString(key).pushAscii(':').push(text);
    separator = ',';
  }
}

/** The comma before a member that is not the first; only white space is between them. */
function commaBefore(bytes: Buffer, keyStart: number): number {
  let pos = keyStart - 1;
  while (bytes[pos] !== COMMA) pos--;
  return pos;
}
