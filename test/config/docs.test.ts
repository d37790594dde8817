import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { SCHEMA_URL } from '../../src/config/schema.js';

// A variable, since the script has no types.
const SCRIPT: string = '../../config/docs.mjs';
const { configReference, README } = await import(SCRIPT);
const schema = JSON.parse(readFileSync(SCHEMA_URL, 'utf8'));

test('config/README.md is what npm run config:docs makes of the schema', () => {
  expect(configReference(schema)).toBe(readFileSync(README, 'utf8'));
});

test('every key has a type, a default and an example in the reference', () => {
  const rows = configReference(schema)
    .split('\n')
    .filter((line: string) => /^\| `/.test(line) && !line.includes('${'));
  const mapping = /^\| `\w+` \| \[`/;
  const incomplete = rows.filter((row: string) => !mapping.test(row) && /\| +\|/.test(row));
  expect(rows.length).toBeGreaterThan(50);
  expect(incomplete).toEqual([]);
});
