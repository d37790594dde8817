import {
  elementsOf,
  getMember,
  type JsonNode,
  membersOf,
  mentions,
  Rope,
  scanJson,
  stringOf,
  writeObject,
} from '../../../jsonrpc/index.js';

const ANNOTATION = 'x-mcp-header';
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const PRIMITIVES: ReadonlySet<string> = new Set(['string', 'integer', 'boolean']);

/** An argument of a tool that is also sent as a header (basic/transports, "Custom Headers from Tool Parameters"). */
export interface ParamHeader {
  /** Name of the header, in lower case. */
  readonly header: string;
  /** Path from the arguments to the value. */
  readonly path: readonly string[];
}

/** The annotations of a tool are invalid; clients must not offer the tool. */
export class InvalidAnnotation extends Error {}

/**
 * The annotated arguments of a tool.
 * @throws InvalidAnnotation
 */
export function paramHeadersOf(bytes: Buffer, inputSchema: JsonNode | undefined): ParamHeader[] {
  if (inputSchema === undefined || !mentionsAnnotation(bytes, inputSchema)) return [];
  const schema = recorded(bytes, inputSchema);
  const found: ParamHeader[] = [];
  collect(bytes, schema, [], found);
  if (countAnnotations(bytes, schema, { isSchema: true, depth: 0 }) > found.length) {
    throw new InvalidAnnotation(
      `${ANNOTATION} stands where no argument can be reached through properties alone`,
    );
  }
  const names = new Set(found.map(({ header }) => header));
  if (names.size < found.length) throw new InvalidAnnotation(`two arguments share one ${ANNOTATION}`);
  return found;
}

/** Whether the name of the annotation is anywhere in a value: a quick check before reading it. */
export function mentionsAnnotation(bytes: Buffer, node: JsonNode): boolean {
  return mentions(bytes, node, `"${ANNOTATION}"`);
}

/** Deeper properties are not read. */
const MAX_DEPTH = 64;
/** Of one tool. Requests have room for a few hundred headers, and each of them is searched for in the arguments. */
const MAX_ANNOTATIONS = 256;

/** The schema with the members of its objects recorded, so that reading all levels costs one pass over the text. */
function recorded(bytes: Buffer, schema: JsonNode): JsonNode {
  return scanJson(bytes, MAX_DEPTH, schema.start, schema.end);
}

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
      if (found.length === MAX_ANNOTATIONS)
        throw new InvalidAnnotation(`more than ${MAX_ANNOTATIONS} arguments have an ${ANNOTATION}`);
      found.push({ header: `mcp-param-${name.toLowerCase()}`, path: here });
    }
    collect(bytes, value, here, found);
  }
}

/** A schema without its annotations. A property that has the name of the annotation is kept. */
export function withoutAnnotations(bytes: Buffer, schema: JsonNode): Rope {
  return strip(bytes, recorded(bytes, schema), { isSchema: true, depth: 0 });
}

/** Where a value is: `isSchema` is false for `properties`, whose members are names and not keywords. */
interface Place {
  readonly isSchema: boolean;
  readonly depth: number;
}

function strip(bytes: Buffer, node: JsonNode, { isSchema, depth }: Place): Rope {
  const out = new Rope();
  if (depth > 2 * MAX_DEPTH || !mentionsAnnotation(bytes, node))
    return out.pushSlice(bytes, node.start, node.end);
  if (node.kind === 'array') {
    for (const [index, element] of elementsOf(bytes, node).entries())
      out.push(index === 0 ? '[' : ',').push(strip(bytes, element, { isSchema, depth: depth + 1 }));
    return out.push(']');
  }
  const edits = new Map<string, Rope | undefined>();
  for (const { key, value } of node.kind === 'object' ? membersOf(bytes, node) : []) {
    if (isSchema && key === ANNOTATION) edits.set(key, undefined);
    else edits.set(key, strip(bytes, value, inside(key, { isSchema, depth })));
  }
  if (node.kind === 'object') writeObject(out, bytes, node, edits);
  else out.pushSlice(bytes, node.start, node.end);
  return out;
}

/** The place of the value of a member. */
function inside(key: string, { isSchema, depth }: Place): Place {
  return { isSchema: !(isSchema && key === 'properties'), depth: depth + 1 };
}

/** The number of annotations anywhere in a schema. */
function countAnnotations(bytes: Buffer, node: JsonNode, { isSchema, depth }: Place): number {
  let count = 0;
  if (depth > 2 * MAX_DEPTH) return count;
  if (node.kind === 'array') {
    for (const element of elementsOf(bytes, node))
      count += countAnnotations(bytes, element, { isSchema, depth: depth + 1 });
  } else if (node.kind === 'object') {
    for (const { key, value } of membersOf(bytes, node)) {
      if (isSchema && key === ANNOTATION) count++;
      else count += countAnnotations(bytes, value, inside(key, { isSchema, depth }));
    }
  }
  return count;
}
