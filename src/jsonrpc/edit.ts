import { CLOSE_BRACE, COMMA, skipSpace } from './grammar.js';
import type { JsonMember, JsonNode } from './json.js';
import { membersNamed } from './lookup.js';
import type { Rope } from './rope.js';

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
    writeNewMembers(out, edits, [], '');
    out.push('}');
    return;
  }
  const touched = membersNamed(bytes, node, edits.keys());
  const last = node.end - 1;
  let cursor = skipSpace(bytes, node.start + 1, node.end);
  let written = false;
  out.pushSlice(bytes, node.start, cursor);
  for (let i = 0; i < touched.length; i++) {
    const { key, keyStart, value } = touched[i] as JsonMember;
    const text = indexOfName(touched, key, i + 1) === -1 ? edits.get(key) : undefined;
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
  writeNewMembers(out, edits, touched, written ? ',' : '');
  out.pushSlice(bytes, last, node.end);
}

/** @param separator before the first new member */
function writeNewMembers(out: Rope, edits: Edits, present: readonly JsonMember[], separator: ',' | ''): void {
  for (const [key, text] of edits) {
    if (text === undefined || indexOfName(present, key, 0) !== -1) continue;
    out.pushAscii(separator).pushString(key).pushAscii(':').push(text);
    separator = ',';
  }
}

function indexOfName(members: readonly JsonMember[], key: string, from: number): number {
  for (let i = from; i < members.length; i++) if (members[i]?.key === key) return i;
  return -1;
}

/** The comma before a member that is not the first; only white space is between them. */
function commaBefore(bytes: Buffer, keyStart: number): number {
  let pos = keyStart - 1;
  while (bytes[pos] !== COMMA) pos--;
  return pos;
}
