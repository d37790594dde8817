import {
  elementsOf,
  getMember,
  type JsonNode,
  membersOf,
  Rope,
  stringOf,
  writeObject,
} from '../../../jsonrpc/index.js';

/** Whether a value can be a schema at all. */
export function isSchema({ kind }: JsonNode): boolean {
  return kind === 'object' || kind === 'true' || kind === 'false';
}

/** Whether a schema describes an object, as legacy revisions demand of a tool's schemas. */
export function describesObject(bytes: Buffer, schema: JsonNode): boolean {
  return stringOf(bytes, getMember(bytes, schema, 'type')) === 'object';
}

/** `true` and `false` are schemas by JSON Schema, but not in the shape that legacy revisions have for properties. */
const BOOLEAN_SCHEMAS: Readonly<Partial<Record<JsonNode['kind'], string>>> = {
  true: '{}',
  false: '{"not":{}}',
};

/**
 * A schema whose properties are all described by objects.
 * @returns undefined when it can stay as it is
 */
export function withSchemaProperties(bytes: Buffer, schema: JsonNode): Rope | undefined {
  const properties = getMember(bytes, schema, 'properties');
  if (properties === undefined) return undefined;
  const edits = new Map<string, string>();
  for (const { key, value } of membersOf(bytes, properties)) {
    const spelled = BOOLEAN_SCHEMAS[value.kind];
    if (spelled !== undefined) edits.set(key, spelled);
  }
  if (edits.size === 0) return undefined;
  const rewritten = new Rope();
  writeObject(rewritten, bytes, properties, edits);
  const out = new Rope();
  writeObject(out, bytes, schema, new Map([['properties', rewritten]]));
  return out;
}

/**
 * The object schema that stands for a schema of another root in legacy revisions, where `outputSchema` describes an
 * object: the value becomes its member `result`, as the official SDK's servers do it. References within the document
 * are moved along; those within a part that has its own `$id` are relative to that and stay.
 */
export function wrapOutputSchema(bytes: Buffer, schema: JsonNode): Rope {
  const dialect = getMember(bytes, schema, '$schema');
  const out = new Rope().push('{');
  const spelled = BOOLEAN_SCHEMAS[schema.kind];
  if (dialect !== undefined) out.push('"$schema":').pushSlice(bytes, dialect.start, dialect.end).push(',');
  out.push('"type":"object","properties":{"result":');
  if (spelled !== undefined) out.push(spelled);
  else writeMoved(out, bytes, schema, true);
  return out.push('},"required":["result"]}');
}

const REFERENCES: ReadonlySet<string> = new Set(['$ref', '$dynamicRef']);
/** Keywords whose values are data, in which `$ref` is a word like any other. */
const DATA: ReadonlySet<string> = new Set(['const', 'enum', 'default', 'examples', 'example']);
/** Keywords whose values map names of the author's choice to schemas. */
const NAMED_SCHEMAS: ReadonlySet<string> = new Set([
  'properties',
  'patternProperties',
  '$defs',
  'definitions',
  'dependentSchemas',
  'dependencies',
]);
/** 2019-09's reference to the root of the document, which is the wrapper now. */
const TO_THE_ROOT = '$recursiveRef';

/** What is deeper is passed on unread: looking into a level costs a pass over all that is in it. */
const MAX_DEPTH = 64;

function writeMoved(out: Rope, bytes: Buffer, node: JsonNode, isSchema: boolean, depth = 0): void {
  if (depth > MAX_DEPTH) {
    out.pushSlice(bytes, node.start, node.end);
    return;
  }
  if (node.kind === 'array') {
    out.push('[');
    for (const [index, element] of elementsOf(bytes, node).entries()) {
      if (index > 0) out.push(',');
      writeMoved(out, bytes, element, isSchema, depth + 1);
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
    if (isSchema && key === TO_THE_ROOT) {
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
      // Below `properties` stand names; the values under them are schemas again.
      writeMoved(out, bytes, value, !(isSchema && NAMED_SCHEMAS.has(key)), depth + 1);
    }
  }
  out.push('}');
}

function hasOwnBase(bytes: Buffer, schema: JsonNode): boolean {
  const id = stringOf(bytes, getMember(bytes, schema, '$id'));
  return id !== undefined && !id.startsWith('#');
}
