// biome-ignore-all lint/suspicious/noTemplateCurlyInString: placeholders of the gateway file look the same
import { readdirSync, readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { loadConfig, parseConfig } from '../../src/config/index.js';
import { SCHEMA_URL } from '../../src/config/schema.js';
import { withBackend } from './support.js';

interface Published {
  default?: unknown;
  description?: string;
  properties?: Record<string, Published>;
  $defs?: Record<string, Published>;
  items?: Published;
}

const published = JSON.parse(readFileSync(SCHEMA_URL, 'utf8')) as Published;
const folder = new URL('../../config/', import.meta.url);
const examples = readdirSync(folder).filter((name) => name.endsWith('.yaml'));
const env = { ERAGATE_SEAL_KEY: 'a key for the examples', ORDERS_TOKEN: 'token' };

function publishedValidator() {
  return new Ajv2020({ strict: true, allErrors: true }).compile(published);
}

test('the published schema is a valid JSON Schema of 2020-12, without keywords of its own', () => {
  expect(new Ajv2020({ strict: true }).validateSchema(published)).toBe(true);
  publishedValidator();
});

test('every key has a description for editors to show', () => {
  const bare: string[] = [];
  const visit = (node: Published, path: string): void => {
    for (const [name, child] of Object.entries(node.properties ?? {})) {
      const described = child.description ?? refOf(child)?.description;
      if (described === undefined) bare.push(`${path}.${name}`);
      visit(child, `${path}.${name}`);
    }
    for (const [name, child] of Object.entries(node.$defs ?? {})) visit(child, name);
  };
  visit(published, '');
  expect(bare).toEqual([]);
});

function refOf(node: Published & { $ref?: string }): Published | undefined {
  return published.$defs?.[node.$ref?.replace('#/$defs/', '') ?? ''];
}

describe.each(examples)('the example %s', (name) => {
  test('is accepted by the gateway', () => {
    expect(loadConfig(new URL(name, folder).pathname, env).routes.length).toBeGreaterThan(0);
  });

  test('is accepted by an editor, which does not replace placeholders', () => {
    const validate = publishedValidator();
    validate(parse(readFileSync(new URL(name, folder), 'utf8')));
    expect(validate.errors ?? []).toEqual([]);
  });
});

test('the smallest example has five lines', () => {
  expect(readFileSync(new URL('minimal.yaml', folder), 'utf8').trimEnd().split('\n')).toHaveLength(5);
});

test('the full example has every key of the schema, with its default', () => {
  const full = parse(readFileSync(new URL('full.yaml', folder), 'utf8'));
  const missing: string[] = [];
  const different: string[] = [];
  const free = new Set(['publicUrl', 'sealKeys', 'headers', 'hostHeader']);
  const visit = (node: Published & { $ref?: string }, data: Record<string, unknown>): void => {
    const { properties } = node.properties ? node : (refOf(node) ?? {});
    for (const [key, child] of Object.entries(properties ?? {})) {
      if (data[key] === undefined) missing.push(key);
      else if (child.properties || refOf(child)?.properties)
        visit(child, data[key] as Record<string, unknown>);
      else if (child.items && key === 'routes') visit(child.items, unionOf(data[key] as Loose[]));
      else if (child.default !== undefined && !free.has(key)) {
        if (JSON.stringify(child.default) !== JSON.stringify(data[key])) different.push(key);
      }
    }
  };
  visit(published, full);
  expect(missing).toEqual([]);
  expect(different).toEqual([]);
});

type Loose = Record<string, unknown>;

/** The routes merged into one, since no backend can have the keys of both kinds; the first takes precedence. */
function unionOf(routes: readonly Loose[]): Loose {
  const backends = routes.map(({ backend }) => backend as Loose).reverse();
  return { ...routes[0], backend: Object.assign({}, ...backends) };
}

test('the demo uses the backend of BACKEND_URL', () => {
  const file = new URL('demo.yaml', folder).pathname;
  const demo = loadConfig(file, {});
  expect(demo.listen).toMatchObject({ host: '127.0.0.1', port: 8080 });
  expect(demo.routes[0]).toMatchObject({ path: '/mcp', backend: { url: 'http://127.0.0.1:3001/mcp' } });
  expect(loadConfig(file, { BACKEND_URL: 'http://b/x' }).routes[0]?.backend.url).toBe('http://b/x');
});

test('an escaped placeholder does not bypass the values that the schema allows', () => {
  expect(() => parseConfig(withBackend('era: "$${x}"'), 'gateway.yaml', {})).toThrow(/era: found "\$\{x\}"/);
});
