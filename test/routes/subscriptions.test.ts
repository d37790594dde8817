import { expect, test } from 'vitest';
import type { Exchange } from '../../src/exchange/exchange.js';
import { Subscriptions } from '../../src/routes/subscriptions.js';

/** A subscription, and whether it was cancelled. */
function subscriptionOf(principal: string) {
  const exchange = { caller: { principal }, cancelled: undefined as string | undefined };
  return Object.assign(exchange, {
    cancel: (reason: string) => {
      exchange.cancelled = reason;
    },
  });
}
type Stub = ReturnType<typeof subscriptionOf>;
const admit = (to: Subscriptions, stub: Stub) => to.admit(stub as unknown as Exchange);

test('at the limit the principal with the most loses its oldest subscription to one with fewer', () => {
  const open = new Subscriptions(3);
  const [first, second, third] = ['ann', 'ann', 'ann'].map(subscriptionOf) as [Stub, Stub, Stub];
  for (const stub of [first, second, third]) expect(admit(open, stub)).toBe(true);
  expect(admit(open, subscriptionOf('ann'))).toBe(false);
  expect(admit(open, subscriptionOf('bob'))).toBe(true);
  expect([first, second, third].map(({ cancelled }) => cancelled !== undefined)).toEqual([
    true,
    false,
    false,
  ]);
  // Two against one: another one of bob's would only turn the tables.
  expect(admit(open, subscriptionOf('bob'))).toBe(false);
  expect(admit(open, subscriptionOf('eve'))).toBe(true);
  expect(second.cancelled).toBeDefined();
});

test('the end of a subscription makes room, once', () => {
  const open = new Subscriptions(1);
  const stub = subscriptionOf('ann');
  admit(open, stub);
  for (let i = 0; i < 2; i++) open.release(stub as unknown as Exchange);
  expect(admit(open, subscriptionOf('ann'))).toBe(true);
  expect(admit(open, subscriptionOf('ann'))).toBe(false);
});
