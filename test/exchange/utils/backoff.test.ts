import { describe, expect, it } from 'vitest';
import { Backoff } from '../../../src/exchange/utils/backoff.js';

const OPTIONS = { firstMs: 500, longestMs: 3_000, steadyMs: 10_000 };

describe('backoff', () => {
  it('doubles each pause up to the longest', () => {
    const backoff = new Backoff(OPTIONS);
    expect([1, 2, 3, 4, 5].map(() => backoff.next())).toEqual([500, 1_000, 2_000, 3_000, 3_000]);
  });

  it('begins again when it is reset', () => {
    const backoff = new Backoff(OPTIONS);
    backoff.next();
    backoff.next();
    backoff.reset();
    expect(backoff.next()).toBe(500);
  });

  it('goes on growing while what succeeds does not last', () => {
    let now = 0;
    const backoff = new Backoff({ ...OPTIONS, now: () => now });
    backoff.next();
    backoff.noteUp();
    now += 10_000;
    backoff.noteDown();
    expect(backoff.next()).toBe(1_000);
  });

  it('begins again after what was up for long', () => {
    let now = 0;
    const backoff = new Backoff({ ...OPTIONS, now: () => now });
    backoff.next();
    backoff.noteUp();
    now += 10_001;
    backoff.noteDown();
    expect(backoff.next()).toBe(500);
  });

  it('counts the time since it came up once', () => {
    let now = 0;
    const backoff = new Backoff({ ...OPTIONS, now: () => now });
    backoff.noteUp();
    now += 20_000;
    backoff.noteDown();
    backoff.next();
    backoff.noteDown();
    expect(backoff.next()).toBe(1_000);
  });
});
