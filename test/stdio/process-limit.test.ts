import { expect, test } from 'vitest';
import { type CountedProcess, ProcessLimit } from '../../src/upstream/stdio/process-limit.js';

const MINUTE = 60_000;
const process = (unusedSince: number): CountedProcess & { evictions: number } => ({
  unusedSince,
  evictions: 0,
  evict() {
    this.evictions++;
  },
});

test('at the limit the process that is unused for longest gives way, and none that is in use', () => {
  const limit = new ProcessLimit(3);
  const now = performance.now();
  const [busy, old, older] = [Number.POSITIVE_INFINITY, now - MINUTE, now - 2 * MINUTE].map(process);
  for (const each of [busy, old, older]) {
    expect(limit.makeRoom()).toBe(true);
    limit.add(each as CountedProcess);
  }
  expect(limit.makeRoom()).toBe(true);
  expect([busy?.evictions, old?.evictions, older?.evictions]).toEqual([0, 0, 1]);
  limit.add(process(now));
  // One more may end beside those that run; the next has to wait until it is gone.
  expect(limit.makeRoom()).toBe(false);
  limit.remove(older as CountedProcess);
  expect(limit.makeRoom()).toBe(true);
  expect(old?.evictions).toBe(1);
});

test('a process that was used just now does not give way', () => {
  const limit = new ProcessLimit(1);
  const recent = process(performance.now() - 1_000);
  limit.add(recent);
  expect(limit.makeRoom()).toBe(false);
  expect(recent.evictions).toBe(0);
});
