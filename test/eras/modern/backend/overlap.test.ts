import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Overlap } from '../../../../src/eras/modern/backend/overlap.js';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** The changes passed on, of those on the older (`o`) and the newer (`n`) stream; a number is a pause in milliseconds. */
function passedOn(...steps: (string | number)[]): string {
  const overlap = new Overlap(() => {});
  overlap.begin();
  return steps
    .map((step) => {
      if (typeof step === 'number') {
        vi.advanceTimersByTime(step);
        return '';
      }
      const [stream, subject = 'x'] = step;
      return overlap.isNew(subject, stream === 'o' ? 'older' : 'newer') ? step : '';
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
  // A change that came on the older stream only does not match a later one.
  [['o', 80, 'n', 'o'], 'on'],
  [['o', 80, 'o', 'n'], 'oo'],
  [['o', 10, 'o', 'n', 'n'], 'oo'],
  // After the end every change is new.
  [['o', 160, 'n'], 'on'],
])('of %j, %s is passed on', (steps, expected) => {
  expect(passedOn(...steps)).toBe(expected);
});

test('the older stream is closed once, after the overlap', async () => {
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
