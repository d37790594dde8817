import { describe, expect, test } from 'vitest';
import { encodeError } from '../../../../src/eras/legacy/wire/errors.js';
import { type ErrorOutcome, ownError } from '../../../../src/exchange/outcome.js';
import { errorOutcome } from '../../../support/json-node.js';

describe('the code of an error for a legacy client', () => {
  const URI = 'a:b';
  const codeFor = (error: ErrorOutcome, uri: string | undefined, urlElicitation = true) =>
    encodeError(error, { uri, urlElicitation }).code;
  test.each([
    [-32602, '{"uri":"a:b"}', -32002],
    [-32602, '{"uri":"a:\\u0062","x":1}', -32002],
    [-32602, '{"uri":"other"}', -32602],
    [-32602, '{"uri":7}', -32602],
    [-32602, '[]', -32602],
    [-32602, '"a:b"', -32602],
    [-32602, undefined, -32602],
    [-32002, undefined, -32002],
    [-32700, undefined, -32603],
    [-32600, undefined, -32603],
    [-32601, undefined, -32601],
    [-32021, undefined, -32021],
    [0, undefined, 0],
  ])('of a modern backend for a read, %i with the data %s, becomes %i', (code, data, expected) => {
    expect(codeFor(errorOutcome(code, { data }), URI)).toBe(expected);
  });

  test('changes for a read only', () => {
    expect(codeFor(errorOutcome(-32602, { data: '{"uri":"a:b"}' }), undefined)).toBe(-32602);
  });

  test.each([-32700, -32600, -32602, -32002])('of a legacy backend, %i, stays', (code) => {
    expect(codeFor(errorOutcome(code, { form: 'legacy', data: '{"uri":"a:b"}' }), URI)).toBe(code);
  });

  test.each([
    [true, -32042],
    [false, -32603],
  ])('that requires the client to open a page (which it can: %s) is %i', (urlElicitation, expected) => {
    expect(codeFor(errorOutcome(-32042, { form: 'legacy' }), undefined, urlElicitation)).toBe(expected);
  });
});

describe('the status of an error of the gateway', () => {
  const statusFor = (status: number | undefined) =>
    encodeError(ownError({ code: -32603, message: 'm', status }), { uri: undefined, urlElicitation: false })
      .status;

  test.each([401, 403, 429, 502, 503])('is HTTP %i', (status) => {
    expect(statusFor(status)).toBe(status);
  });

  // SDK clients of this era turn other statuses into an error without code and message.
  test.each([undefined, 200, 400, 404, 500, 504])('is 200 instead of %s', (status) => {
    expect(statusFor(status)).toBe(200);
  });
});
