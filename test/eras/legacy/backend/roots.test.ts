import { expect, test } from 'vitest';
import { keyOf, Roots, type RootsPolicy } from '../../../../src/eras/legacy/backend/roots.js';
import type { Caller } from '../../../../src/exchange/caller.js';
import type { ClientAnswer } from '../../../../src/exchange/channel.js';
import { principalOf } from '../../../../src/exchange/credentials.js';

const caller = (name: string, clientInfo?: string): Caller =>
  ({ principal: principalOf(`Bearer ${name}`), clientInfo, forwarded: {} }) as unknown as Caller;
const listing = (uri: string): ClientAnswer => ({
  result: Buffer.from(JSON.stringify({ roots: [{ uri }] })),
});
const textOf = (answer: ClientAnswer | undefined): string | undefined =>
  answer !== undefined && 'result' in answer ? answer.result.toString() : undefined;
const ADA = caller('ada', '{"name":"a"}');

test.each<[RootsPolicy, boolean]>([
  ['off', false],
  ['ask', false],
  ['cached', true],
])('%s: the roots of a client are used again: %s', (policy, reused) => {
  const roots = new Roots(policy);
  expect(roots.withoutAsking(ADA)).toBeUndefined();
  roots.remember(ADA, listing('file:///a'));
  expect(textOf(roots.withoutAsking(ADA))).toBe(reused ? '{"roots":[{"uri":"file:///a"}]}' : undefined);
});

test('if the client cannot be asked, the latest answer is used, or no roots', () => {
  const roots = new Roots('ask');
  expect(textOf(roots.lastKnown(keyOf(ADA)))).toBe('{"roots":[]}');
  roots.remember(ADA, listing('file:///a'));
  roots.remember(ADA, listing('file:///b'));
  expect(textOf(roots.lastKnown(keyOf(ADA)))).toBe('{"roots":[{"uri":"file:///b"}]}');
});

test('an error is not remembered', () => {
  const roots = new Roots('cached');
  roots.remember(ADA, listing('file:///a'));
  roots.remember(ADA, { error: Buffer.from('{"code":-1,"message":"no"}') });
  expect(textOf(roots.withoutAsking(ADA))).toBe('{"roots":[{"uri":"file:///a"}]}');
});

test('roots are kept per principal and client', () => {
  const roots = new Roots('cached');
  roots.remember(ADA, listing('file:///a'));
  for (const other of [caller('alan', '{"name":"a"}'), caller('ada', '{"name":"b"}'), caller('ada')]) {
    expect(roots.withoutAsking(other)).toBeUndefined();
    expect(textOf(roots.lastKnown(keyOf(other)))).toBe('{"roots":[]}');
  }
});
