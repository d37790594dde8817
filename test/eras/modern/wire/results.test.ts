import { describe, expect, test } from 'vitest';
import {
  checkResult,
  encodeError,
  encodeResult,
  neutralResult,
} from '../../../../src/eras/modern/wire/results.js';
import { edited, errorOutcome, resultOutcome, scanned, written } from '../../../support/json-node.js';

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
])('the modern result %s is %s without what is modern', (text, expected) => {
  const { bytes, node } = scanned(text);
  const edits = new Map();
  neutralResult(bytes, node, edits);
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
])('of %s the result %s with the server %s is dressed as %s', (method, text, serverInfo, expected) => {
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
  ])('%s %s is mended', (method, text, forcePrivate, expected) => {
    const outcome = resultOutcome(text);
    expect(checkResult(method, outcome, false, forcePrivate)).toBeUndefined();
    expect(written(outcome)).toBe(expected);
  });

  test.each(['"task"', '"weird"', 'null', '1', '[]'])('of the type %s cannot be mended', (type) => {
    const outcome = resultOutcome(`{"resultType":${type}}`);
    expect(checkResult('tools/call', outcome, false, false)).toContain(type);
  });

  test('may be a task where the client takes tasks', () => {
    expect(checkResult('tools/call', resultOutcome('{"resultType":"task"}'), true, false)).toBeUndefined();
  });
});

describe('an error for a modern client', () => {
  const URI = '{"uri":"a:b"}';
  const read = (code: number, more: Parameters<typeof errorOutcome>[1] = {}) =>
    encodeError(errorOutcome(code, more), 'a:b', true);
  const call = (code: number, more: Parameters<typeof errorOutcome>[1] = {}, known = true) =>
    encodeError(errorOutcome(code, more), undefined, known);

  test.each([
    [-32700, 500, -32603],
    [-32600, 500, -32603],
    [-32601, 404, -32601],
    [-32602, 200, -32602],
    [-32603, 200, -32603],
    [-32000, 200, -32000],
    [-32001, 200, -32001],
    [-32002, 200, -32002],
    [-32019, 200, -32019],
    [-32020, 200, -32603],
    [-32021, 200, -32603],
    [-32042, 200, -32603],
    [-32099, 200, -32603],
    [-32100, 200, -32100],
    [0, 200, 0],
    [1, 200, 1],
  ])('%i of a legacy backend has the status %i and the code %i', (code, status, expected) => {
    expect(call(code, { status: 400 })).toEqual({ status, code: expected, data: undefined });
  });

  test.each([
    [-32602, { data: URI }, -32602, URI],
    [-32602, {}, -32602, URI],
    [-32002, {}, -32602, URI],
    [-32002, { data: '{"x":1}' }, -32602, '{"x":1}'],
    [-32001, { message: 'Resource not found: a:b' }, -32602, URI],
    [-32001, { message: 'Request timed out' }, -32001, undefined],
    [-32001, { message: 'Session not found' }, -32001, undefined],
    [0, { message: 'Unknown resource: a:b' }, -32602, URI],
    [0, { message: 'Something else' }, 0, undefined],
    [-32603, {}, -32603, undefined],
  ])('of a read, %i %j of a legacy backend is %i', (code, more, expected, data) => {
    expect(read(code, more)).toEqual({ status: 200, code: expected, data });
  });

  test.each([
    [-32602, 400, 400, -32602],
    [-32601, 404, 404, -32601],
    [-32601, 200, 200, -32601],
    [-32603, 500, 500, -32603],
    [-32020, 200, 400, -32020],
    [-32021, 200, 400, -32021],
    [-32022, 400, 400, -32022],
    [-32600, 400, 400, -32600],
    [-32001, 200, 200, -32001],
  ])('%i with the status %i of a modern backend has the status %i', (code, status, expected, same) => {
    expect(call(code, { form: 'modern', status })).toEqual({
      status: expected,
      code: same,
      data: undefined,
    });
  });

  test('of a read in the old words of a modern backend is in the new ones', () => {
    expect(read(-32002, { form: 'modern' })).toEqual({ status: 200, code: -32602, data: URI });
    expect(read(-32602, { form: 'modern', status: 400 })).toEqual({
      status: 400,
      code: -32602,
      data: undefined,
    });
  });

  test('in Python’s words for an unknown method is one, unless the method is known', () => {
    const message = 'Invalid request parameters';
    expect(call(-32602, { message }, false)).toMatchObject({ status: 404, code: -32601 });
    expect(call(-32602, { message }, true)).toMatchObject({ status: 200, code: -32602 });
  });

  test.each([
    [-32603, 502, { status: 502, code: -32603 }],
    [-32001, 504, { status: 504, code: -32603 }],
    [-32602, undefined, { status: 200, code: -32602 }],
    [-32601, undefined, { status: 404, code: -32601 }],
    [-32021, undefined, { status: 400, code: -32021 }],
  ])('of the gateway’s own, %i with the status %s, is %j', (code, status, expected) => {
    expect(call(code, { origin: 'gateway', status })).toMatchObject(expected);
  });

  test('by which a backend refuses the client keeps its status, and is in words of this era', () => {
    const raw = Buffer.from('{"code":-32050,"message":"m"}');
    expect(call(-32050, { origin: 'gateway', status: 401, raw })).toMatchObject({
      status: 401,
      code: -32603,
    });
    expect(call(-31999, { origin: 'gateway', status: 403, raw })).toMatchObject({
      status: 403,
      code: -31999,
    });
  });
});
