import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Overlap } from '../../src/eras/modern/backend/overlap.js';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** `o` and `n` are what the older and the newer stream tell; a number is a pause in milliseconds. */
function newsOf(...steps: (string | number)[]): string {
  const overlap = new Overlap(() => {});
  overlap.begin();
  return steps
    .map((step) => {
      if (typeof step === 'number') {
        vi.advanceTimersByTime(step);
        return '';
      }
      const [stream, subject = 'x'] = step;
      return overlap.isNews(subject, stream === 'o') ? step : '';
    })
    .join('');
}

test.each([
  [['o', 'n'], 'o'],
  [['n', 'o'], 'n'],
  [['o', 'o', 'n', 'n'], 'oo'],
  [['n', 'o', 'o', 'n'], 'no'],
  [['oa', 'nb', 'na', 'ob'], 'oanb'],
  [['o'], 'o'],
  [['n', 'n'], 'nn'],
  // What only the older one told, before the newer one began, is no twin of what comes later.
  [['o', 80, 'n', 'o'], 'on'],
  [['o', 80, 'o', 'n'], 'oo'],
  [['o', 10, 'o', 'n', 'n'], 'oo'],
  // After the end all is news.
  [['o', 160, 'n'], 'on'],
])('of %j, told is %s', (steps, told) => {
  expect(newsOf(...steps)).toBe(told);
});

test('the older stream is read on for a moment, and closed once', async () => {
  const close = vi.fn();
  const overlap = new Overlap(close);
  await vi.advanceTimersByTimeAsync(5_000);
  expect(close).not.toHaveBeenCalled();
  overlap.begin();
  await vi.advanceTimersByTimeAsync(100);
  expect(close).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(100);
  await overlap.done;
  overlap.end();
  overlap.begin();
  await vi.advanceTimersByTimeAsync(1_000);
  expect(close).toHaveBeenCalledOnce();
});
