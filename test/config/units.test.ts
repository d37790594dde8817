import { expect, test } from 'vitest';
import { formatDuration, parseDuration, parseSize } from '../../src/config/units.js';

test.each([
  ['500ms', 500],
  ['60s', 60_000],
  ['10m', 600_000],
  ['1h', 3_600_000],
  ['2147483647ms', 2_147_483_647],
  ['2147483648ms', undefined],
  ['597h', undefined],
  ['0s', undefined],
  ['1h30m', 5_400_000],
  ['1m30s', 90_000],
  ['1s500ms', 1_500],
  ['30m1h', undefined],
  ['0h0m', undefined],
  ['500h500h', undefined],
  ['1.5s', undefined],
  ['-1s', undefined],
  ['60', undefined],
  ['60 s', undefined],
  ['1d', undefined],
  ['', undefined],
])('the duration %j is %j milliseconds', (text, ms) => {
  expect(parseDuration(text)).toBe(ms);
});

test.each([
  ['4MiB', 4 * 1024 * 1024],
  ['64KiB', 65_536],
  ['1GiB', 2 ** 30],
  ['10B', 10],
  ['1048576', 1_048_576],
  [1024, 1024],
  ['4GiB', undefined],
  ['4MB', 4_000_000],
  ['4kB', 4_000],
  ['4KB', 4_000],
  ['1GB', 1_000_000_000],
  ['5GB', undefined],
  [0, undefined],
  [-1, undefined],
  [1.5, undefined],
  [1e21, undefined],
])('the size %j is %j bytes', (text, bytes) => {
  expect(parseSize(text)).toBe(bytes);
});

test.each([
  [500, '500ms'],
  [15_000, '15s'],
  [90_000, '90s'],
  [300_000, '5m'],
  [7_200_000, '2h'],
])('%j milliseconds are written as %s', (ms, text) => {
  expect(formatDuration(ms)).toBe(text);
});
