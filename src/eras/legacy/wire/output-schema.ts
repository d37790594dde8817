import {
  editedObject,
  elementsOf,
  getMember,
  type JsonNode,
  membersOf,
  Rope,
  stringMember,
  stringOf,
} from '../../../jsonrpc/index.js';

/** Whether a value is a schema (JSON Schema 2020-12, section 4.3). */
export function isSchema({ kind }: JsonNode): boolean {
  return kind === 'object' || kind === 'true' || kind === 'false';
}

/** Whether a schema describes an object, as the schemas of a tool must in legacy revisions. */
export function describesObject(bytes: Buffer, schema: JsonNode): boolean {
  return stringMember(bytes, schema, 'type') === 'object';
}

/** Boolean schemas as objects: in legacy revisions a property is described by an object. */
const BOOLEAN_SCHEMAS: Readonly<Partial<Record<JsonNode['kind'], string>>> = {
  true: '{}',
  false: '{"not":{}}',
};

/**
 * The schema with all properties described by objects.
 * @returns undefined if it can stay as it is
 */
export function withSchemaProperties(bytes: Buffer, schema: JsonNode): Rope | undefined {
  const properties = getMember(bytes, schema, 'properties');
  if (properties === undefined) return undefined;
  const edits = new Map<string, string>();
  for (const { key, value } of membersOf(bytes, properties)) {
    const object = BOOLEAN_SCHEMAS[value.kind];
    if (object !== undefined) edits.set(key, object);
  }
  if (edits.size === 0) return undefined;
  return editedObject(bytes, schema, new Map([['properties', editedObject(bytes, properties, edits)]]));
}

/**
 * An object schema whose property `result` has the given schema, as the servers of the official SDK wrap an output that is
 * no object. References within the document are adjusted, but for those below an `$id`, which are relative to that.
 */
export function wrapOutputSchema(bytes: Buffer, schema: JsonNode): Rope {
  const dialect = getMember(bytes, schema, '$schema');
  const out = new Rope().push('{');
  const object = BOOLEAN_SCHEMAS[schema.kind];
  if (dialect !== undefined) out.push('"$schema":').pushSlice(bytes, dialect.start, dialect.end).push(',');
  out.push('"type":"object","properties":{"result":');
  if (object !== undefined) out.push(object);
  else writeMoved(out, bytes, schema, 'schema');
  return out.push('},"required":["result"]}');
}

const REFERENCES: ReadonlySet<string> = new Set(['$ref', '$dynamicRef']);
/** Keywords whose values are data, in which `$ref` has no meaning. */
const DATA: ReadonlySet<string> = new Set(['const', 'enum', 'default', 'examples', 'example']);
/** Keywords whose values map names to schemas. */
const NAMED_SCHEMAS: ReadonlySet<string> = new Set([
  'properties',
  'patternProperties',
  '$defs',
  'definitions',
  'dependentSchemas',
  'dependencies',
]);
/** Keyword of 2019-09 that refers to the root of the document. */
const RECURSIVE_REFERENCE = '$recursiveRef';

/** Deeper levels are copied as they are: each level costs a pass over everything in it. */
const MAX_DEPTH = 64;

/** Whether a value is a schema, or maps names to schemas. */
type Role = 'schema' | 'names';

/** Writes a schema with its references adjusted to its new place. */
function writeMoved(out: Rope, bytes: Buffer, node: JsonNode, role: Role, depth = 0): void {
  const isSchema = role === 'schema';
  if (depth > MAX_DEPTH) {
    out.pushSlice(bytes, node.start, node.end);
    return;
  }
  if (node.kind === 'array') {
    out.push('[');
    for (const [index, element] of elementsOf(bytes, node).entries()) {
      if (index > 0) out.push(',');
      writeMoved(out, bytes, element, role, depth + 1);
    }
    out.push(']');
    return;
  }
  if (node.kind !== 'object' || (isSchema && hasOwnBase(bytes, node))) {
    out.pushSlice(bytes, node.start, node.end);
    return;
  }
  out.push('{');
  for (const [index, { key, keyStart, value }] of membersOf(bytes, node).entries()) {
    if (index > 0) out.push(',');
    if (isSchema && key === RECURSIVE_REFERENCE) {
      out.push('"$ref":"#/properties/result"');
      continue;
    }
    out.pushSlice(bytes, keyStart, value.start);
    const reference = isSchema && REFERENCES.has(key) ? stringOf(bytes, value) : undefined;
    if (reference === '#' || reference?.startsWith('#/') === true) {
      out.push(JSON.stringify(`#/properties/result${reference.slice(1)}`));
    } else if (isSchema && DATA.has(key)) {
      out.pushSlice(bytes, value.start, value.end);
    } else {
      writeMoved(out, bytes, value, isSchema && NAMED_SCHEMAS.has(key) ? 'names' : 'schema', depth + 1);
    }
  }
  out.push('}');
}

function hasOwnBase(bytes: Buffer, schema: JsonNode): boolean {
  const id = stringMember(bytes, schema, '$id');
  return id !== undefined && !id.startsWith('#');
}
