import {
  elementsOf,
  getMember,
  type JsonNode,
  membersOf,
  Rope,
  stringOf,
  textOf,
  writeObject,
} from '../../../jsonrpc/index.js';
import { decodeHeaderValue, encodeHeaderValue } from './header-values.js';

const ANNOTATION = 'x-mcp-header';
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const PRIMITIVES: ReadonlySet<string> = new Set(['string', 'integer', 'boolean']);

/** An argument of a tool that is mirrored into a header (basic/transports, "Custom Headers from Tool Parameters"). */
export interface ParamHeader {
  /** Lower-cased name of the header. */
  readonly header: string;
  /** Keys that lead from the arguments to the value. */
  readonly path: readonly string[];
}

/** The definition breaks the rules for annotations; clients must not show the tool. */
export class InvalidAnnotation extends Error {}

/**
 * The annotated arguments of a tool.
 * @throws InvalidAnnotation
 */
export function paramHeadersOf(bytes: Buffer, inputSchema: JsonNode | undefined): ParamHeader[] {
  if (inputSchema === undefined || !mentionsAnnotation(bytes, inputSchema)) return [];
  const found: ParamHeader[] = [];
  collect(bytes, inputSchema, [], found);
  if (countAnnotations(bytes, inputSchema, true) > found.length) {
    throw new InvalidAnnotation(
      `${ANNOTATION} stands where no argument can be reached through properties alone`,
    );
  }
  const names = new Set(found.map(({ header }) => header));
  if (names.size < found.length) throw new InvalidAnnotation(`two arguments share one ${ANNOTATION}`);
  return found;
}

/** Whether a value may hold an annotation: the name is written somewhere in it. */
export function mentionsAnnotation(bytes: Buffer, node: JsonNode): boolean {
  const at = bytes.indexOf(`"${ANNOTATION}"`, node.start);
  return at !== -1 && at < node.end;
}

/** What is deeper is not read: looking into a level costs a pass over all that is in it. */
const MAX_DEPTH = 64;

function collect(bytes: Buffer, schema: JsonNode, path: readonly string[], found: ParamHeader[]): void {
  if (path.length > MAX_DEPTH) return;
  const properties = getMember(bytes, schema, 'properties');
  if (properties?.kind !== 'object') return;
  for (const { key, value } of membersOf(bytes, properties)) {
    const here = [...path, key];
    const annotation = getMember(bytes, value, ANNOTATION);
    if (annotation !== undefined) {
      const name = stringOf(bytes, annotation);
      const type = stringOf(bytes, getMember(bytes, value, 'type'));
      if (name === undefined || !TOKEN.test(name)) {
        throw new InvalidAnnotation(`${ANNOTATION} of ${here.join('.')} is no header name`);
      }
      if (type === undefined || !PRIMITIVES.has(type)) {
        throw new InvalidAnnotation(`${ANNOTATION} of ${here.join('.')} is on the type ${type ?? 'none'}`);
      }
      found.push({ header: `mcp-param-${name.toLowerCase()}`, path: here });
    }
    collect(bytes, value, here, found);
  }
}

/** A schema without its annotations; a property may be called as they are, and stays. */
export function withoutAnnotations(bytes: Buffer, node: JsonNode, isSchema = true, depth = 0): Rope {
  const out = new Rope();
  if (depth > 2 * MAX_DEPTH || !mentionsAnnotation(bytes, node))
    return out.pushSlice(bytes, node.start, node.end);
  if (node.kind === 'array') {
    for (const [index, element] of elementsOf(bytes, node).entries())
      out.push(index === 0 ? '[' : ',').push(withoutAnnotations(bytes, element, isSchema, depth + 1));
    return out.push(']');
  }
  const edits = new Map<string, Rope | undefined>();
  for (const { key, value } of node.kind === 'object' ? membersOf(bytes, node) : []) {
    if (isSchema && key === ANNOTATION) edits.set(key, undefined);
    else edits.set(key, withoutAnnotations(bytes, value, !(isSchema && key === 'properties'), depth + 1));
  }
  if (node.kind === 'object') writeObject(out, bytes, node, edits);
  else out.pushSlice(bytes, node.start, node.end);
  return out;
}

/** Annotations anywhere in a schema; `properties` holds names, among which the annotation's may be one. */
function countAnnotations(bytes: Buffer, node: JsonNode, isSchema: boolean, depth = 0): number {
  let count = 0;
  if (depth > 2 * MAX_DEPTH) return count;
  if (node.kind === 'array') {
    for (const element of elementsOf(bytes, node))
      count += countAnnotations(bytes, element, isSchema, depth + 1);
  } else if (node.kind === 'object') {
    for (const { key, value } of membersOf(bytes, node)) {
      if (isSchema && key === ANNOTATION) count++;
      else count += countAnnotations(bytes, value, !(isSchema && key === 'properties'), depth + 1);
    }
  }
  return count;
}

/** A value that no header can carry. */
export class UnsendableArgument extends Error {}

/**
 * The headers for a call, name and value in turn; absent and null arguments have none.
 * @param args the `arguments` of the call
 * @throws UnsendableArgument
 */
export function paramHeaderValues(
  bytes: Buffer,
  args: JsonNode | undefined,
  headers: readonly ParamHeader[],
): string[] {
  const values: string[] = [];
  for (const { header, path } of headers) {
    let node = args;
    for (const key of path) node = node === undefined ? undefined : getMember(bytes, node, key);
    const value = node === undefined ? undefined : headerText(bytes, node, path);
    if (value !== undefined) values.push(header, encodeHeaderValue(value));
  }
  return values;
}

function headerText(bytes: Buffer, node: JsonNode, path: readonly string[]): string | undefined {
  if (node.kind === 'string') return stringOf(bytes, node);
  if (node.kind === 'true' || node.kind === 'false') return node.kind;
  if (node.kind !== 'number') return undefined;
  const number = Number(textOf(bytes, node));
  if (!Number.isSafeInteger(number)) {
    throw new UnsendableArgument(
      `argument ${path.join('.')} is ${textOf(bytes, node)}: its header takes integers from -(2^53-1) to 2^53-1 only`,
    );
  }
  return String(number);
}

/**
 * Compares the headers of a call with its arguments, as a server must that reads both (basic/transports, "Server
 * Behavior for Custom Headers").
 * @param args the `arguments` of the call
 * @param received lower-cased names and values in turn
 * @returns what contradicts; undefined if nothing does
 */
export function paramHeaderProblem(
  bytes: Buffer,
  args: JsonNode | undefined,
  headers: readonly ParamHeader[],
  received: readonly string[],
): string | undefined {
  for (const { header, path } of headers) {
    let node = args;
    for (const key of path) node = node === undefined ? undefined : getMember(bytes, node, key);
    const at = received.findIndex((name, i) => i % 2 === 0 && name === header);
    const value = at === -1 ? undefined : received[at + 1];
    const where = path.join('.');
    if (node === undefined || !MIRRORED.has(node.kind)) {
      if (value !== undefined) return `${header} is sent, but the argument ${where} has no value for it`;
    } else if (value === undefined) return `${header} is missing, but the argument ${where} has a value`;
    else if (!says(value, bytes, node)) return `${header} is not the argument ${where}`;
  }
  return undefined;
}

const MIRRORED: ReadonlySet<string> = new Set(['string', 'number', 'true', 'false']);

/** Whether the value of a header is that of an argument; numbers are equal in every spelling. */
function says(header: string, bytes: Buffer, node: JsonNode): boolean {
  const text = decodeHeaderValue(header);
  if (text === undefined) return false;
  if (node.kind === 'string') return stringOf(bytes, node) === text;
  if (node.kind !== 'number') return node.kind === text;
  const number = textOf(bytes, node);
  return text === number || (text.trim() !== '' && Number(text) === Number(number));
}
