import { describe, expect, test } from 'vitest';
import {
  InvalidAnnotation,
  type ParamHeader,
  paramHeadersOf,
  paramHeaderValues,
  UnsendableArgument,
} from '../../../../src/eras/modern/wire/param-headers.js';
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
  ])('break the rules on %s', (_what, schema) => {
    expect(() => headersOf(schema)).toThrow(InvalidAnnotation);
  });

  test('are none where there is no schema', () => {
    expect(paramHeadersOf(Buffer.alloc(0), undefined)).toEqual([]);
  });
});

describe('the headers of a call', () => {
  const HEADERS: ParamHeader[] = [
    { header: 'mcp-param-s', path: ['s'] },
    { header: 'mcp-param-n', path: ['n'] },
    { header: 'mcp-param-f', path: ['f'] },
    { header: 'mcp-param-d', path: ['a', 'b'] },
  ];
  const valuesOf = (args: string) => {
    const { bytes, node } = scanned(args);
    return paramHeaderValues(bytes, node, HEADERS);
  };

  test.each([
    ['{}', []],
    ['{"s":null,"n":null,"f":null,"a":null}', []],
    ['{"s":"x"}', ['mcp-param-s', 'x']],
    ['{"s":""}', ['mcp-param-s', '=?base64??=']],
    ['{"s":"\\u00e9"}', ['mcp-param-s', '=?base64?w6k=?=']],
    ['{"n":0}', ['mcp-param-n', '0']],
    ['{"n":-0}', ['mcp-param-n', '0']],
    ['{"n":5.0}', ['mcp-param-n', '5']],
    ['{"n":2e3}', ['mcp-param-n', '2000']],
    ['{"n":9007199254740991}', ['mcp-param-n', '9007199254740991']],
    ['{"f":true}', ['mcp-param-f', 'true']],
    ['{"f":false}', ['mcp-param-f', 'false']],
    ['{"a":{"b":"x"}}', ['mcp-param-d', 'x']],
    ['{"a":[{"b":"x"}],"s":{"k":1},"n":["1"]}', []],
    ['{"s":"first","s":"last"}', ['mcp-param-s', 'last']],
    [
      '{"s":"x","n":1,"f":true,"a":{"b":"y"}}',
      ['mcp-param-s', 'x', 'mcp-param-n', '1', 'mcp-param-f', 'true', 'mcp-param-d', 'y'],
    ],
  ])('for the arguments %s are %j', (args, expected) => {
    expect(valuesOf(args)).toEqual(expected);
  });

  test.each(['9007199254740992', '-9007199254740992', '1.5', '1e400', '1e-2'])(
    'cannot be written for the integer %s',
    (n) => {
      expect(() => valuesOf(`{"n":${n}}`)).toThrow(UnsendableArgument);
      expect(() => valuesOf(`{"n":${n}}`)).toThrow(n);
    },
  );

  test('are none for a call without arguments', () => {
    expect(paramHeaderValues(Buffer.alloc(0), undefined, HEADERS)).toEqual([]);
  });
});
