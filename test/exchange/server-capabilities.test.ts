import { expect, test } from 'vitest';
import { statedCapabilities } from '../../src/exchange/server-capabilities.js';
import { scanned } from '../support/json-node.js';

test.each([
  ['{}', '{}'],
  ['{ "tools":{ } , "x":true }', '{ "tools":{ } , "x":true }'],
  [
    '{"tools":{"listChanged":true},"resources":{"subscribe":false}}',
    '{"tools":{"listChanged":true},"resources":{"subscribe":false}}',
  ],
  ['{"tools":true}', '{}'],
  ['{"tools":{},"logging":null,"prompts":[],"completions":"yes"}', '{"tools":{}}'],
  ['{"tasks":1,"extensions":[],"experimental":false,"custom":7}', '{"custom":7}'],
  [
    '{"tools":{"listChanged":"yes","x":1.0},"resources":{"subscribe":1}}',
    '{"tools":{"x":1.0},"resources":{}}',
  ],
  ['[]', '{}'],
  ['null', '{}'],
  ['"x"', '{}'],
])('of the capabilities %s a server states %s', (text, expected) => {
  const { bytes, node } = scanned(text);
  expect(statedCapabilities(bytes, node)).toBe(expected);
});

test('a server that says nothing states nothing', () => {
  expect(statedCapabilities(Buffer.alloc(0), undefined)).toBe('{}');
});
