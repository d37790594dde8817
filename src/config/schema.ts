/** The JSON Schema of the gateway file, which is the only description of keys, types, values and defaults. */

import { readFileSync } from 'node:fs';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import type { Segment } from './problems.js';

/** The root of the package is two levels up from both `src/config` and `dist/config`. */
export const SCHEMA_URL = new URL('../../config/eragate.schema.json', import.meta.url);

/** The keywords of JSON Schema that are read here. */
export interface SchemaNode {
  readonly $ref?: string;
  readonly title?: string;
  readonly type?: string;
  readonly enum?: readonly string[];
  readonly anyOf?: readonly SchemaNode[];
  readonly properties?: Readonly<Record<string, SchemaNode>>;
  readonly items?: SchemaNode;
  readonly additionalProperties?: SchemaNode | false;
}

type SchemaFile = SchemaNode & { readonly $defs: Record<string, SchemaNode | false> };

let loaded: { schema: SchemaFile; validate: ValidateFunction } | undefined;

/**
 * The schema, and a function that validates against it and fills in its defaults. The published schema accepts
 * placeholders, for editors; here they have been replaced, so none is accepted.
 */
export function configSchema(): { schema: SchemaFile; validate: ValidateFunction } {
  if (loaded === undefined) {
    const schema = JSON.parse(readFileSync(SCHEMA_URL, 'utf8')) as SchemaFile;
    schema.$defs['placeholder'] = false;
    const ajv = new Ajv2020({ allErrors: true, strict: true, useDefaults: true });
    loaded = { schema, validate: ajv.compile(schema) };
  }
  return loaded;
}

/** The schema of the value at `segments`; its own members take precedence over those of its `$ref`. */
export function schemaAt(segments: readonly Segment[]): SchemaNode | undefined {
  let node: SchemaNode | undefined = dereference(configSchema().schema);
  for (const segment of segments) {
    const next: SchemaNode | false | undefined =
      typeof segment === 'number'
        ? node.items
        : node.properties && Object.hasOwn(node.properties, segment)
          ? node.properties[segment]
          : node.additionalProperties;
    if (!next) return undefined;
    node = dereference(next);
  }
  return node;
}

/** What the schema expects at `segments`, for messages. */
export function expectedText(segments: readonly Segment[]): string {
  const node = schemaAt(segments);
  if (node?.title !== undefined) return node.title;
  const values = node?.enum ?? node?.anyOf?.find((branch) => branch.enum)?.enum;
  return values ? `one of ${values.join(', ')}` : `a value of type ${node?.type ?? 'unknown'}`;
}

/** The paths of all mappings (`routes[].backend`) that have a key of this name. */
export function mappingsWithKey(key: string): string[] {
  const paths: string[] = [];
  const visit = (node: SchemaNode, path: string): void => {
    for (const [name, child] of Object.entries(node.properties ?? {})) {
      if (name === key) paths.push(path);
      const inner = dereference(child);
      const suffix = inner.items ? `${name}[]` : name;
      visit(inner.items ? dereference(inner.items) : inner, path === '' ? suffix : `${path}.${suffix}`);
    }
  };
  visit(configSchema().schema, '');
  return paths;
}

function dereference(node: SchemaNode): SchemaNode {
  if (node.$ref === undefined) return node;
  const target = configSchema().schema.$defs[node.$ref.replace('#/$defs/', '')];
  return { ...(target || {}), ...node };
}
