import { describe, expect, test } from 'vitest';
import { legacyCode, writeError } from '../../../../src/eras/legacy/client/outcome.js';
import type { Exchange } from '../../../../src/exchange/exchange.js';
import { ownError } from '../../../../src/exchange/outcome.js';
import { errorOutcome } from '../../../support/json-node.js';

describe('the code of an error for a legacy client', () => {
  const URI = 'a:b';
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
  ])('that a modern backend gave a read as %i with the data %s is %i', (code, data, expected) => {
    expect(legacyCode(errorOutcome(code, { data }), URI)).toBe(expected);
  });

  test('is another for a read alone', () => {
    expect(legacyCode(errorOutcome(-32602, { data: '{"uri":"a:b"}' }), undefined)).toBe(-32602);
  });

  test.each([-32700, -32600, -32602, -32002])('that a legacy backend gave as %i stays', (code) => {
    expect(legacyCode(errorOutcome(code, { form: 'legacy', data: '{"uri":"a:b"}' }), URI)).toBe(code);
  });
});

describe('an error of the gateway', () => {
  const answerTo = (status: number | undefined) => {
    const exchange = { request: { id: '"\\u0041"', method: 'tools/call', name: 'n' } } as unknown as Exchange;
    let answer: [number, string] = [0, ''];
    writeError(ownError({ code: -32603, message: 'm', status }), exchange, (given, message) => {
      answer = [given, message.toBuffer().toString()];
    });
    return answer;
  };

  test.each([401, 403, 429, 502, 503])('is shown as HTTP %i', (status) => {
    expect(answerTo(status)[0]).toBe(status);
  });

  // SDK clients of this era turn other statuses into an error without code and message.
  test.each([undefined, 200, 400, 404, 500, 504])('rides on 200 instead of %s', (status) => {
    expect(answerTo(status)).toEqual([
      200,
      '{"jsonrpc":"2.0","id":"\\u0041","error":{"code":-32603,"message":"m"}}',
    ]);
  });
});
