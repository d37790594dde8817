import { expect, test } from 'vitest';
import type { Principal } from '../../../src/exchange/credentials.js';
import { ANONYMOUS } from '../../../src/exchange/credentials.js';
import { Quota } from '../../../src/exchange/utils/quota.js';

const ADA = 'ada' as Principal;
const BOB = 'bob' as Principal;

test('so many for one principal, so many for all who show no credential, and so many in all', () => {
  const quota = new Quota({ max: 4, maxPerPrincipal: 1, maxAnonymous: 2 }, (whose) => `things${whose}`);
  quota.take(ADA);
  expect(quota.full(ADA)).toBe('own');
  expect(() => quota.take(ADA)).toThrow('limit of 1 things of one principal reached');
  quota.take(ANONYMOUS);
  quota.take(ANONYMOUS);
  expect(() => quota.take(ANONYMOUS)).toThrow('limit of 2 things of callers without a credential reached');
  expect(quota.full(BOB)).toBeUndefined();
  quota.take(BOB);
  expect(quota.full('eve' as Principal)).toBe('all');
  expect(() => quota.take('eve' as Principal)).toThrow('limit of 4 things reached');
  quota.give(ADA);
  quota.take(ADA);
  for (const principal of [ADA, BOB, ANONYMOUS, ANONYMOUS]) quota.give(principal);
  for (const principal of [ADA, BOB, ANONYMOUS, ANONYMOUS]) quota.take(principal);
  expect(quota.full('eve' as Principal)).toBe('all');
});
