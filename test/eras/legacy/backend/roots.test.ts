import { expect, test } from 'vitest';
import { keyOf, Roots, type RootsPolicy } from '../../../../src/eras/legacy/backend/roots.js';
import type { Caller } from '../../../../src/exchange/caller.js';
import type { ClientAnswer } from '../../../../src/exchange/channel.js';
import { principalOf } from '../../../../src/exchange/credentials.js';

const caller = (name: string, clientInfo?: string): Caller =>
  ({ principal: principalOf(`Bearer ${name}`), clientInfo }) as unknown as Caller;
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
])('%s: what a client has told is used again: %s', (policy, reused) => {
  const roots = new Roots(policy);
  expect(roots.withoutAsking(ADA)).toBeUndefined();
  roots.remember(ADA, listing('file:///a'));
  expect(textOf(roots.withoutAsking(ADA))).toBe(reused ? '{"roots":[{"uri":"file:///a"}]}' : undefined);
});

test('where nobody can be asked, the last answer counts, or there are none', () => {
  const roots = new Roots('ask');
  expect(textOf(roots.lastKnown(keyOf(ADA)))).toBe('{"roots":[]}');
  roots.remember(ADA, listing('file:///a'));
  roots.remember(ADA, listing('file:///b'));
  expect(textOf(roots.lastKnown(keyOf(ADA)))).toBe('{"roots":[{"uri":"file:///b"}]}');
});

test('an error is nothing to remember', () => {
  const roots = new Roots('cached');
  roots.remember(ADA, listing('file:///a'));
  roots.remember(ADA, { error: Buffer.from('{"code":-1,"message":"no"}') });
  expect(textOf(roots.withoutAsking(ADA))).toBe('{"roots":[{"uri":"file:///a"}]}');
});

test('roots are those of one principal with one client', () => {
  const roots = new Roots('cached');
  roots.remember(ADA, listing('file:///a'));
  for (const other of [caller('alan', '{"name":"a"}'), caller('ada', '{"name":"b"}'), caller('ada')]) {
    expect(roots.withoutAsking(other)).toBeUndefined();
    expect(textOf(roots.lastKnown(keyOf(other)))).toBe('{"roots":[]}');
  }
});
