import { describe, expect, test } from 'vitest';
import {
  InvalidAnnotation,
  type ParamHeader,
  paramHeadersOf,
  withoutAnnotations,
} from '../../../../src/eras/modern/wire/header-annotations.js';
import { scanned } from '../../../support/json-node.js';

const headersOf = (schema: unknown): ParamHeader[] => {
  const { bytes, node } = scanned(JSON.stringify(schema));
  return paramHeadersOf(bytes, node);
};
const property = (value: unknown) => ({ type: 'object', properties: { p: value } });
const annotated = (type: unknown, name: unknown = 'P') => ({ type, 'x-mcp-header': name });

describe('the annotations of a schema', () => {
  test.each([
    ['none', { type: 'object', properties: { p: { type: 'string' } } }, []],
    ['a string', property(annotated('string')), [{ header: 'mcp-param-p', path: ['p'] }]],
    ['an integer', property(annotated('integer')), [{ header: 'mcp-param-p', path: ['p'] }]],
    ['a boolean', property(annotated('boolean')), [{ header: 'mcp-param-p', path: ['p'] }]],
    [
      'any token',
      property(annotated('string', "!#$%&'*+-.^_`|~9aZ")),
      [{ header: "mcp-param-!#$%&'*+-.^_`|~9az", path: ['p'] }],
    ],
    [
      'nested properties',
      property({ type: 'object', properties: { q: annotated('string', 'Q') } }),
      [{ header: 'mcp-param-q', path: ['p', 'q'] }],
    ],
    [
      'both a property and one below it',
      {
        type: 'object',
        properties: { a: annotated('string', 'A'), b: { properties: { c: annotated('integer', 'C') } } },
      },
      [
        { header: 'mcp-param-a', path: ['a'] },
        { header: 'mcp-param-c', path: ['b', 'c'] },
      ],
    ],
    ['a property of this name', { type: 'object', properties: { 'x-mcp-header': { type: 'string' } } }, []],
    [
      'a property of this name that has one itself',
      { type: 'object', properties: { 'x-mcp-header': annotated('string') } },
      [{ header: 'mcp-param-p', path: ['x-mcp-header'] }],
    ],
  ])('are read from %s', (_what, schema, expected) => {
    expect(headersOf(schema)).toEqual(expected);
  });

  test.each([
    ['a number', property(annotated('number'))],
    ['an object', property(annotated('object'))],
    ['an array', property(annotated('array'))],
    ['null', property(annotated('null'))],
    ['several types', property(annotated(['string', 'null']))],
    ['no type', property(annotated(undefined))],
    ['an empty name', property(annotated('string', ''))],
    ['a name with a space', property(annotated('string', 'a b'))],
    ['a name with a line end', property(annotated('string', 'a\nb'))],
    ['a name outside ASCII', property(annotated('string', 'é'))],
    ['a name that is no string', property(annotated('string', 7))],
    ['the root', annotated('object')],
    ['items', property({ type: 'array', items: annotated('string') })],
    ['one of several schemas', { type: 'object', anyOf: [property(annotated('string'))] }],
    ['a definition', { type: 'object', $defs: { d: annotated('string') } }],
    ['additional properties', { type: 'object', additionalProperties: annotated('string') }],
    [
      'two with one name',
      { type: 'object', properties: { a: annotated('string', 'X'), b: annotated('string', 'x') } },
    ],
  ])('are invalid on %s', (_what, schema) => {
    expect(() => headersOf(schema)).toThrow(InvalidAnnotation);
  });

  test('are none without a schema', () => {
    expect(paramHeadersOf(Buffer.alloc(0), undefined)).toEqual([]);
  });
});

describe('a schema without its annotations', () => {
  const stripped = (schema: string): string => {
    const { bytes, node } = scanned(schema);
    return withoutAnnotations(bytes, node).toBuffer().toString();
  };

  test.each([
    ['{"type":"object"}', '{"type":"object"}'],
    ['{"properties":{"p":{"type":"string","x-mcp-header":"P"}}}', '{"properties":{"p":{"type":"string"}}}'],
    ['{"items":[{"x-mcp-header":"P","n":1.0}]}', '{"items":[{"n":1.0}]}'],
    ['{"properties":{"x-mcp-header":{"x-mcp-header":"P"}}}', '{"properties":{"x-mcp-header":{}}}'],
  ])('of %s is %s', (schema, expected) => {
    expect(stripped(schema)).toBe(expected);
  });
});
