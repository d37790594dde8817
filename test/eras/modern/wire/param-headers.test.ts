import { describe, expect, test } from 'vitest';
import type { ParamHeader } from '../../../../src/eras/modern/wire/header-annotations.js';
import {
  paramHeaderProblem,
  paramHeaderValues,
  UnsendableArgument,
} from '../../../../src/eras/modern/wire/param-headers.js';
import { scanned } from '../../../support/json-node.js';

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
    'cannot carry the integer %s',
    (n) => {
      expect(() => valuesOf(`{"n":${n}}`)).toThrow(UnsendableArgument);
      expect(() => valuesOf(`{"n":${n}}`)).toThrow(n);
    },
  );

  test('are none for a call without arguments', () => {
    expect(paramHeaderValues(Buffer.alloc(0), undefined, HEADERS)).toEqual([]);
  });
});

describe('headers that a client has sent', () => {
  const problemOf = (args: string, received: readonly string[]): string | undefined => {
    const { bytes, node } = scanned(args);
    return paramHeaderProblem(bytes, node, [{ header: 'mcp-param-p', path: ['a', 'p'] }], received);
  };

  test.each([
    ['{}', []],
    ['{"a":{"p":null}}', []],
    ['{"a":{"p":"é"}}', ['mcp-param-p', '=?base64?w6k=?=']],
    ['{"a":{"p":1.0}}', ['mcp-param-p', '1']],
    ['{"a":{"p":true}}', ['mcp-param-q', 'x', 'mcp-param-p', 'true']],
  ])('for %s may be %j', (args, received) => {
    expect(problemOf(args, received)).toBeUndefined();
  });

  test.each([
    ['{}', ['mcp-param-p', 'x'], 'mcp-param-p is sent, but the argument a.p has no value for it'],
    ['{"a":{"p":"x"}}', [], 'mcp-param-p is missing, but the argument a.p has a value'],
    ['{"a":{"p":"x"}}', ['mcp-param-p', 'y'], 'mcp-param-p is not the argument a.p'],
    ['{"a":{"p":1}}', ['mcp-param-p', ' '], 'mcp-param-p is not the argument a.p'],
  ])('for %s cannot be %j', (args, received, problem) => {
    expect(problemOf(args, received)).toBe(problem);
  });
});
