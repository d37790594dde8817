import { describe, expect, test } from 'vitest';
import {
  capabilitiesIn,
  neutralClientCapabilities,
  undeclared,
} from '../../../../src/eras/legacy/wire/client-capabilities.js';
import { readCapabilities } from '../../../../src/exchange/digest.js';
import type { ServerRequest } from '../../../../src/exchange/types.js';
import { scanned } from '../../../support/json-node.js';

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
])('%s is told to a server of %s as %s', (text, revision, expected) => {
  expect(capabilitiesIn(revision, text)).toBe(expected);
});

describe('a question', () => {
  const question = (method: string, params: string): ServerRequest => {
    const { bytes, node } = scanned(params);
    return { id: '1', method, bytes, params: node } as unknown as ServerRequest;
  };
  test.each([
    ['elicitation/create', '{}', '{}', 'elicitation.form'],
    ['elicitation/create', '{}', '{"elicitation":{"form":{}}}', undefined],
    ['elicitation/create', '{"mode":"url"}', '{"elicitation":{"form":{}}}', 'elicitation.url'],
    ['elicitation/create', '{"mode":"url"}', '{"elicitation":{"url":{}}}', undefined],
    ['sampling/createMessage', '{}', '{"sampling":{}}', undefined],
    ['sampling/createMessage', '{"tools":[]}', '{"sampling":{}}', 'sampling.tools'],
    ['sampling/createMessage', '{"toolChoice":{}}', '{"sampling":{"tools":{}}}', undefined],
    ['sampling/createMessage', '{}', '{"sampling":null}', 'sampling'],
    ['roots/list', '{}', '{}', 'roots'],
    ['roots/list', '{}', '{"roots":{}}', undefined],
    ['vendor/ask', '{}', '{}', undefined],
  ])('%s %s to a client with %s lacks %s', (method, params, declared, expected) => {
    expect(undeclared(question(method, params), readCapabilities(declared))).toBe(expected);
  });
});
