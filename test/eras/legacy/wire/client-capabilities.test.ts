import { expect, test } from 'vitest';
import {
  declaredCapabilities,
  downgradeClientCapabilities,
  neutralClientCapabilities,
} from '../../../../src/eras/legacy/wire/client-capabilities.js';
import { readCapabilities } from '../../../../src/exchange/client-capabilities.js';

test.each([
  ['{}', '2025-11-25', '{}'],
  ['{"experimental":{"a":{"x":1.0}},"tasks":{}}', '2025-11-25', '{"experimental":{"a":{"x":1.0}}}'],
  ['{"elicitation":{}}', '2025-11-25', '{"elicitation":{"form":{}}}'],
  ['{"elicitation":{"form":{},"url":{}}}', '2025-11-25', '{"elicitation":{"form":{},"url":{}}}'],
  ['{"elicitation":{"url":{}}}', '2025-11-25', '{"elicitation":{"url":{}}}'],
  ['{"elicitation":{"url":{}}}', '2025-06-18', '{}'],
  ['{"elicitation":{}}', '2025-06-18', '{"elicitation":{"form":{}}}'],
  ['{"elicitation":{}}', '2025-03-26', '{"elicitation":{"form":{}}}'],
  ['{"elicitation":{"form":{"a":1}}}', '2024-11-05', '{"elicitation":{"form":{"a":1}}}'],
  ['{"elicitation":{"url":{}}}', '2024-11-05', '{}'],
  ['{"sampling":{}}', '2025-03-26', '{"sampling":{}}'],
  ['{"elicitation":true}', '2025-11-25', '{}'],
  ['{"sampling":{"tools":{},"context":{}}}', '2025-11-25', '{"sampling":{"tools":{},"context":{}}}'],
  ['{"sampling":{"tools":{}}}', '2025-06-18', '{"sampling":{}}'],
  ['{"sampling":null}', '2025-11-25', '{}'],
  ['{"roots":{"listChanged":true}}', '2025-03-26', '{"roots":{}}'],
  ['{"roots":7}', '2025-03-26', '{}'],
])('a client with %s of %s is one with %s', (text, revision, expected) => {
  expect(neutralClientCapabilities(readCapabilities(text), revision).text).toBe(expected);
});

test.each([
  ['{"elicitation":{"form":{},"url":{}}}', '2025-11-25', '{"elicitation":{"form":{},"url":{}}}'],
  ['{"elicitation":{"form":{},"url":{}}}', '2025-06-18', '{"elicitation":{}}'],
  ['{"elicitation":{}}', '2025-03-26', '{}'],
  ['{"elicitation":{"url":{}},"roots":{}}', '2025-06-18', '{"roots":{}}'],
  ['{"sampling":{"tools":{}}}', '2024-11-05', '{"sampling":{}}'],
])('a server of %s reads the capabilities %s as %s', (text, revision, expected) => {
  expect(downgradeClientCapabilities(text, revision)).toBe(expected);
});

test.each([
  ['{}', false, '{}', false],
  ['{"elicitation":{},"x":1.0}', false, '{"elicitation":{},"x":1.0}', true],
  ['{"sampling":{"tools":{}}}', false, '{"sampling":{"tools":{}}}', true],
  ['{"roots":{"listChanged":true}}', false, '{}', false],
  ['{"roots":{"listChanged":true}}', true, '{"roots":{}}', true],
  ['{"elicitation":true,"sampling":null,"tasks":{}}', true, '{}', false],
])(
  'of the capabilities %s, with roots (%s), %s is declared, which allows server requests: %s',
  (text, roots, declared, allowServerRequests) => {
    expect(declaredCapabilities(readCapabilities(text), { roots })).toEqual({
      text: declared,
      allowServerRequests,
    });
  },
);
