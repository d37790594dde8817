import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { SessionOwner } from '../../../../src/eras/legacy/client/session-owner.js';
import type { Principal } from '../../../../src/exchange/credentials.js';

const [ANNA, BERT] = ['anna', 'bert'] as [Principal, Principal];
const MINUTE_MS = 60_000;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

test('without a challenge no other credential can be a login', () => {
  expect(new SessionOwner(ANNA, undefined).mayBeLogin(undefined)).toBe(false);
});

test('for 15 minutes after a challenge a credential that names no other owner can be a login', () => {
  const owner = new SessionOwner(ANNA, 'anna of idp');
  owner.noteChallenge();
  expect(owner.mayBeLogin(undefined)).toBe(true);
  expect(owner.mayBeLogin('bert of idp')).toBe(false);
  vi.advanceTimersByTime(14 * MINUTE_MS);
  expect(owner.mayBeLogin(undefined)).toBe(true);
  vi.advanceTimersByTime(2 * MINUTE_MS);
  expect(owner.mayBeLogin(undefined)).toBe(false);
});

test('a transfer replaces the principal and its renewals, and ends the wait for a login', () => {
  const owner = new SessionOwner(ANNA, undefined);
  owner.share('anna-2' as Principal);
  owner.noteChallenge();
  owner.transfer(BERT, 'bert of idp');
  expect(owner.principal).toBe(BERT);
  expect(owner.isNamed('bert of idp')).toBe(true);
  for (const principal of [ANNA, 'anna-2' as Principal]) expect(owner.includes(principal)).toBe(false);
  expect(owner.mayBeLogin(undefined)).toBe(false);
});
