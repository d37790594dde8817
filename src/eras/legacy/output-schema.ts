import { elementsOf, getMember, type JsonNode, membersOf, Rope, stringOf } from '../../jsonrpc/index.js';

/**
 * The object schema that stands for a schema of another root in legacy revisions, where `outputSchema` describes an
 * object: the value becomes its member `result`, as the official SDK's servers do it. References within the document
 * are moved along; those within a part that has its own `$id` are relative to that and stay.
 */
export function wrapOutputSchema(bytes: Buffer, schema: JsonNode): Rope {
  const dialect = getMember(bytes, schema, '$schema');
  const out = new Rope().push('{');
  if (dialect !== undefined) out.push('"$schema":').pushSlice(bytes, dialect.start, dialect.end).push(',');
  out.push('"type":"object","properties":{"result":');
  writeMoved(out, bytes, schema, true);
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
]);

function writeMoved(out: Rope, bytes: Buffer, node: JsonNode, isSchema: boolean): void {
  if (node.kind === 'array') {
    out.push('[');
    for (const [index, element] of elementsOf(bytes, node).entries()) {
      if (index > 0) out.push(',');
      writeMoved(out, bytes, element, isSchema);
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
    out.pushSlice(bytes, keyStart, value.start);
    const reference = isSchema && REFERENCES.has(key) ? stringOf(bytes, value) : undefined;
    if (reference === '#' || reference?.startsWith('#/') === true) {
      out.push(JSON.stringify(`#/properties/result${reference.slice(1)}`));
    } else if (isSchema && DATA.has(key)) {
      out.pushSlice(bytes, value.start, value.end);
    } else {
      // Below `properties` stand names; the values under them are schemas again.
      writeMoved(out, bytes, value, !(isSchema && NAMED_SCHEMAS.has(key)));
    }
  }
  out.push('}');
}

function hasOwnBase(bytes: Buffer, schema: JsonNode): boolean {
  const id = stringOf(bytes, getMember(bytes, schema, '$id'));
  return id !== undefined && !id.startsWith('#');
}
