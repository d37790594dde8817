import { describe, expect, test } from 'vitest';
import { decodeResult, encodeResult, normalizeResult } from '../../../../src/eras/modern/wire/results.js';
import { edited, resultOutcome, scanned, written } from '../../../support/json-node.js';

const INFO = 'io.modelcontextprotocol/serverInfo';

test.each([
  ['{"content":[]}', '{"content":[]}'],
  ['{"resultType":"complete","content":[ 1.0 ]}', '{"content":[ 1.0 ]}'],
  ['{"ttlMs":1,"tools":[],"cacheScope":"public","resultType":"complete"}', '{"tools":[]}'],
  [`{"_meta":{"${INFO}":{}},"a":1}`, '{"a":1}'],
  [`{"_meta":{"k":1.0,"${INFO}":{},"l":2}}`, '{"_meta":{"k":1.0,"l":2}}'],
  ['{"_meta":{"k":1.0}}', '{"_meta":{"k":1.0}}'],
  ['{"_meta":null,"resultType":"complete"}', '{"_meta":null}'],
  ['{"resultType":"complete"}', '{}'],
])('the modern result %s is decoded to %s', (text, expected) => {
  const { bytes, node } = scanned(text);
  const edits = new Map();
  decodeResult(bytes, node, edits);
  expect(edited(text, edits)).toBe(expected);
});

test.each([
  ['tools/call', '{"content":[]}', undefined, '{"content":[],"resultType":"complete"}'],
  ['tools/call', '{}', '{"name":"s"}', `{"resultType":"complete","_meta":{"${INFO}":{"name":"s"}}}`],
  [
    'tools/list',
    '{"tools":[ ]}',
    undefined,
    '{"tools":[ ],"resultType":"complete","ttlMs":5,"cacheScope":"private"}',
  ],
  [
    'tools/list',
    '{"ttlMs":-1,"resultType":7}',
    undefined,
    '{"ttlMs":5,"resultType":"complete","cacheScope":"private"}',
  ],
  ['tools/call', '{"_meta":{"k":1.0}}', '{}', `{"_meta":{"k":1.0,"${INFO}":{}},"resultType":"complete"}`],
  ['tools/call', `{"_meta":{"${INFO}":1}}`, '{}', `{"_meta":{"${INFO}":{}},"resultType":"complete"}`],
  ['tools/call', '{"_meta":[]}', '{}', `{"_meta":{"${INFO}":{}},"resultType":"complete"}`],
])('of %s the result %s with the server %s is encoded as %s', (method, text, serverInfo, expected) => {
  const outcome = resultOutcome(text, { serverInfo });
  encodeResult(method, outcome, { ttlMs: 5, scope: 'private' });
  expect(written(outcome)).toBe(expected);
});

describe('a result of a modern backend', () => {
  test.each([
    ['tools/call', '{"resultType":"complete"}', false, '{"resultType":"complete"}'],
    ['tools/call', '{"resultType":"input_required"}', false, '{"resultType":"input_required"}'],
    ['tools/call', '{"a":1.0}', false, '{"a":1.0,"resultType":"complete"}'],
    [
      'tools/list',
      '{"resultType":"complete","ttlMs":0,"cacheScope":"public"}',
      false,
      '{"resultType":"complete","ttlMs":0,"cacheScope":"public"}',
    ],
    [
      'tools/list',
      '{"resultType":"complete","ttlMs":0,"cacheScope":"public"}',
      true,
      '{"resultType":"complete","ttlMs":0,"cacheScope":"private"}',
    ],
    [
      'tools/list',
      '{"resultType":"complete"}',
      false,
      '{"resultType":"complete","ttlMs":0,"cacheScope":"private"}',
    ],
    [
      'tools/list',
      '{"ttlMs":1e3,"cacheScope":"Public"}',
      false,
      '{"ttlMs":0,"cacheScope":"private","resultType":"complete"}',
    ],
    ['resources/read', '{"resultType":"input_required"}', true, '{"resultType":"input_required"}'],
  ])('%s %s is corrected', (method, text, forcePrivate, expected) => {
    const outcome = resultOutcome(text);
    expect(normalizeResult(method, outcome, { takesTasks: false, forcePrivate })).toBeUndefined();
    expect(written(outcome)).toBe(expected);
  });

  test.each(['"task"', '"weird"', 'null', '1', '[]'])('of the type %s cannot be corrected', (type) => {
    const outcome = resultOutcome(`{"resultType":${type}}`);
    expect(normalizeResult('tools/call', outcome, { takesTasks: false, forcePrivate: false })).toContain(
      type,
    );
  });

  test('may be a task for a client that takes tasks', () => {
    const options = { takesTasks: true, forcePrivate: false };
    expect(normalizeResult('tools/call', resultOutcome('{"resultType":"task"}'), options)).toBeUndefined();
  });
});
