import { describe, expect, test } from 'vitest';
import { encodeError } from '../../../../src/eras/modern/wire/errors.js';
import { EXCHANGE_ERRORS } from '../../../../src/exchange/errors.js';
import { gatewayError } from '../../../../src/exchange/outcome.js';
import { errorOutcome } from '../../../support/json-node.js';

describe('an error for a modern client', () => {
  const URI = '{"uri":"a:b"}';
  const read = (code: number, more: Parameters<typeof errorOutcome>[1] = {}) =>
    encodeError(errorOutcome(code, more), { uri: 'a:b', knownMethod: true });
  const call = (code: number, more: Parameters<typeof errorOutcome>[1] = {}, knownMethod = true) =>
    encodeError(errorOutcome(code, more), { uri: undefined, knownMethod });

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

  test('-32002 of a modern backend for a read becomes -32602', () => {
    expect(read(-32002, { form: 'modern' })).toEqual({ status: 200, code: -32602, data: URI });
    expect(read(-32602, { form: 'modern', status: 400 })).toEqual({
      status: 400,
      code: -32602,
      data: undefined,
    });
  });

  test('of Python’s SDK for an unknown method becomes -32601, unless the revision has the method', () => {
    const message = 'Invalid request parameters';
    expect(call(-32602, { message }, false)).toMatchObject({ status: 404, code: -32601 });
    expect(call(-32602, { message }, true)).toMatchObject({ status: 200, code: -32602 });
  });

  test.each([
    [gatewayError(EXCHANGE_ERRORS.ERAGATE_QUOTA, { limit: 1, what: 'tasks' }), 503, -32603],
    [gatewayError(EXCHANGE_ERRORS.ERAGATE_TIMEOUT, { route: '/mcp', ms: 1 }), 504, -32603],
    [gatewayError(EXCHANGE_ERRORS.ERAGATE_TASK_NOT_FOUND), 200, -32602],
    [gatewayError(EXCHANGE_ERRORS.ERAGATE_METHOD_NOT_FOUND, { method: 'ping' }), 404, -32601],
    [gatewayError(EXCHANGE_ERRORS.ERAGATE_TASKS_UNDECLARED), 400, -32021],
  ])('of the gateway has the status and the code of its declaration: %j', (error, status, code) => {
    const data = JSON.stringify({ eragate: error.declared?.name });
    expect(encodeError(error, { uri: 'a:b', knownMethod: true })).toEqual({ status, code, data });
  });

  test('with which a backend refuses the client keeps its status, and gets a code of this era', () => {
    const raw = Buffer.from('{"code":-32050,"message":"m"}');
    expect(call(-32050, { origin: 'refusal', status: 401, raw })).toMatchObject({
      status: 401,
      code: -32603,
    });
    expect(call(-31999, { origin: 'refusal', status: 403, raw })).toMatchObject({
      status: 403,
      code: -31999,
    });
  });
});
