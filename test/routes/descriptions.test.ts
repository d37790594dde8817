import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Caller } from '../../src/exchange/caller.js';
import type { ClientSession } from '../../src/exchange/client-session.js';
import type { ServerDescription } from '../../src/exchange/outbound.js';
import { Descriptions } from '../../src/routes/descriptions.js';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

const caller = (principal: string, session?: ClientSession) =>
  ({ era: 'modern', principal, capabilities: { key: '{}' }, forwarded: {}, session }) as unknown as Caller;
const ann = caller('ann');
const description = { era: 'legacy', ttlMs: 1_000 } as ServerDescription;

test('a description is fresh for its own time, counted down, and stale for ever', () => {
  const known = new Descriptions();
  expect(known.fresh(ann)).toBeUndefined();
  expect(known.stale(ann)).toBeUndefined();
  known.set(ann, description);
  vi.advanceTimersByTime(400);
  expect(known.fresh(ann)).toEqual({ ...description, ttlMs: 600 });
  vi.advanceTimersByTime(600);
  expect(known.fresh(ann)).toBeUndefined();
  expect(known.stale(ann)).toEqual({ ...description, ttlMs: 0 });
});

test('a description is for the caller that asked, and never for one with a session', () => {
  const known = new Descriptions();
  known.set(ann, description);
  expect(known.fresh(caller('bob'))).toBeUndefined();
  expect(known.fresh(caller('ann', {} as ClientSession))).toBeUndefined();
  expect(known.stale(caller('ann', {} as ClientSession))).toBeUndefined();
});
