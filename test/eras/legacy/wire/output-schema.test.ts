import { describe, expect, test } from 'vitest';
import {
  describesObject,
  isSchema,
  withSchemaProperties,
  wrapOutputSchema,
} from '../../../../src/eras/legacy/wire/output-schema.js';
import { scanned } from '../../../support/json-node.js';

const wrapped = (schema: string) => {
  const { bytes, node } = scanned(schema);
  return wrapOutputSchema(bytes, node).toBuffer().toString();
};
const wrapper = (inner: string, dialect = '') =>
  `{${dialect}"type":"object","properties":{"result":${inner}},"required":["result"]}`;

describe('a wrapped schema', () => {
  test.each([
    ['{"type":"array","minItems":1.0}', '{"type":"array","minItems":1.0}'],
    ['{}', '{}'],
    ['true', '{}'],
    ['false', '{"not":{}}'],
    ['{"$ref":"#"}', '{"$ref":"#/properties/result"}'],
    ['{"$ref":"#/$defs/a","$defs":{"a":{}}}', '{"$ref":"#/properties/result/$defs/a","$defs":{"a":{}}}'],
    ['{"$ref":"#/a~1b/%C3%A9"}', '{"$ref":"#/properties/result/a~1b/%C3%A9"}'],
    ['{"$ref":"\\u0023/a"}', '{"$ref":"#/properties/result/a"}'],
    ['{"$dynamicRef":"#/a"}', '{"$dynamicRef":"#/properties/result/a"}'],
    ['{"$recursiveRef":"#"}', '{"$ref":"#/properties/result"}'],
    ['{"$ref":"#anchor"}', '{"$ref":"#anchor"}'],
    ['{"$ref":"https://example.com/a.json#/b"}', '{"$ref":"https://example.com/a.json#/b"}'],
    ['{"$ref":"other.json"}', '{"$ref":"other.json"}'],
    ['{"$ref":7}', '{"$ref":7}'],
    ['{"items":{"anyOf":[{"$ref":"#/x"}]}}', '{"items":{"anyOf":[{"$ref":"#/properties/result/x"}]}}'],
    // Data, in which the word means nothing
    ['{"const":{"$ref":"#/a"}}', '{"const":{"$ref":"#/a"}}'],
    ['{"enum":[{"$ref":"#/a"}],"default":{"$ref":"#"}}', '{"enum":[{"$ref":"#/a"}],"default":{"$ref":"#"}}'],
    ['{"examples":[{"$ref":"#/a"}]}', '{"examples":[{"$ref":"#/a"}]}'],
    // Names of the author's choice
    ['{"properties":{"$ref":{"$ref":"#/a"}}}', '{"properties":{"$ref":{"$ref":"#/properties/result/a"}}}'],
    ['{"properties":{"const":{"$ref":"#/a"}}}', '{"properties":{"const":{"$ref":"#/properties/result/a"}}}'],
    ['{"$defs":{"enum":{"$ref":"#/a"}}}', '{"$defs":{"enum":{"$ref":"#/properties/result/a"}}}'],
    [
      '{"dependencies":{"default":{"$ref":"#/a"}}}',
      '{"dependencies":{"default":{"$ref":"#/properties/result/a"}}}',
    ],
    // Parts with a base of their own
    ['{"$id":"https://a.example/","$ref":"#/b"}', '{"$id":"https://a.example/","$ref":"#/b"}'],
    ['{"$id":"#local","$ref":"#/b"}', '{"$id":"#local","$ref":"#/properties/result/b"}'],
    [
      '{"items":{"$id":"x.json","$ref":"#/b"},"$ref":"#/c"}',
      '{"items":{"$id":"x.json","$ref":"#/b"},"$ref":"#/properties/result/c"}',
    ],
    ['{"properties":{"$id":{"$ref":"#/b"}}}', '{"properties":{"$id":{"$ref":"#/properties/result/b"}}}'],
  ])('of %s holds %s', (schema, inner) => {
    expect(wrapped(schema)).toBe(wrapper(inner));
  });

  test('keeps its dialect at the root', () => {
    const dialect = '"$schema":"https://json-schema.org/draft/2020-12/schema"';
    expect(wrapped(`{${dialect},"type":"array"}`)).toBe(
      wrapper(`{${dialect},"type":"array"}`, `${dialect},`),
    );
  });

  test('is made of any depth', () => {
    const depth = 4_000;
    const schema = `${'{"items":'.repeat(depth)}{"$ref":"#/a"}${'}'.repeat(depth)}`;
    expect(() => JSON.parse(wrapped(schema))).not.toThrow();
  });
});

test.each([
  ['{"type":"object"}', true],
  ['{"type":"\\u006fbject"}', true],
  ['{"type":"array"}', false],
  ['{"type":["object"]}', false],
  ['{"properties":{}}', false],
  ['true', false],
  ['null', false],
])('%s describes an object: %s', (schema, expected) => {
  const { bytes, node } = scanned(schema);
  expect(describesObject(bytes, node)).toBe(expected);
});

test.each([
  ['{}', true],
  ['true', true],
  ['false', true],
  ['null', false],
  ['[]', false],
  ['"x"', false],
  ['7', false],
])('%s is a schema: %s', (schema, expected) => {
  expect(isSchema(scanned(schema).node)).toBe(expected);
});

test.each([
  ['{"properties":{"a":{}}}', undefined],
  ['{"properties":[true]}', undefined],
  ['{}', undefined],
  [
    '{"properties":{"a":true,"b":{ },"c":false},"x":1.0}',
    '{"properties":{"a":{},"b":{ },"c":{"not":{}}},"x":1.0}',
  ],
])('the properties of %s are objects in %s', (schema, expected) => {
  const { bytes, node } = scanned(schema);
  expect(withSchemaProperties(bytes, node)?.toBuffer().toString()).toBe(expected);
});
