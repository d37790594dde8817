import { describe, expect, test } from 'vitest';
import { backendError, errorObject, pendingMember } from '../../src/exchange/outcome.js';
import { Rope, textOf } from '../../src/jsonrpc/index.js';
import { errorFrame, errorOutcome, resultOutcome } from '../support/json-node.js';

describe('an error of a backend', () => {
  const ERROR = '{"message":"\\u0041","data":{"k":1.0},"code":-31999,"x-vendor":[ ]}';

  test('is written as it came where nothing changes', () => {
    const outcome = backendError(errorFrame(ERROR), 200, 'neutral');
    expect(outcome).toMatchObject({ origin: 'backend', code: -31999, message: 'A', data: '{"k":1.0}' });
    expect(errorObject(outcome).toBuffer().toString()).toBe(ERROR);
    expect(errorObject(outcome, -31999, outcome.data).toBuffer().toString()).toBe(ERROR);
  });

  test('keeps what does not change beside a new code, and new data', () => {
    const outcome = backendError(errorFrame(ERROR), 200, 'neutral');
    expect(errorObject(outcome, -32603).toBuffer().toString()).toBe(ERROR.replace('-31999', '-32603'));
    expect(errorObject(outcome, -31999, '{"uri":"a"}').toBuffer().toString()).toBe(
      ERROR.replace('{"k":1.0}', '{"uri":"a"}'),
    );
    const bare = backendError(errorFrame('{"code":1,"message":"m"}'), 200, 'neutral');
    expect(errorObject(bare, 2, '[1]').toBuffer().toString()).toBe('{"code":2,"message":"m","data":[1]}');
  });

  test.each([
    ['"boom"', '{"code":0,"message":"boom"}'],
    ['{"message":"m"}', '{"code":0,"message":"m"}'],
    ['{"code":5}', '{"code":5,"message":""}'],
    ['{"code":"5","message":"m","data":1.0}', '{"code":0,"message":"m","data":1.0}'],
    ['{"code":5,"message":null}', '{"code":5,"message":""}'],
  ])('is made one by the rules of JSON-RPC: %s', (text, expected) => {
    expect(
      errorObject(backendError(errorFrame(text), 200, 'neutral'))
        .toBuffer()
        .toString(),
    ).toBe(expected);
  });

  test('of the gateway’s own making has its message written in JSON', () => {
    const outcome = errorOutcome(-32603, { message: 'a "b"\n', data: new Rope().push('{"k":1}') });
    expect(errorObject(outcome).toBuffer().toString()).toBe(
      '{"code":-32603,"message":"a \\"b\\"\\n","data":{"k":1}}',
    );
  });
});

test.each([
  ['as it came', new Map(), '[1.0]'],
  ['after an edit of text', new Map([['a', '[2]']]), '[2]'],
  ['after an edit in pieces', new Map([['a', new Rope().push('[').push('3]')]]), '[3]'],
  ['after its removal', new Map([['a', undefined]]), undefined],
])('a member of a result is seen %s', (_how, edits, expected) => {
  const outcome = resultOutcome('{"a":[1.0]}');
  for (const [key, value] of edits) outcome.edits.set(key, value);
  const member = pendingMember(outcome, 'a');
  expect(member === undefined ? undefined : textOf(member.bytes, member.node)).toBe(expected);
  expect(pendingMember(outcome, 'b')).toBeUndefined();
});
