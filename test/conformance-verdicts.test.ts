import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import type { Loose } from './support/net.js';

const COMPARE: string = './conformance/compare.mjs';
const { changesOf, count, faultsOf, judge, readExpectations }: Loose = await import(COMPARE);

const results = (checks: Record<string, string>, scenario = 'ping'): Loose =>
  new Map([[scenario, new Map(Object.entries(checks).map(([id, status]) => [id, { status }]))]]);
const names = (items: Loose[]) => items.map(({ check, status }) => `${check} ${status}`);

describe('what the gateway changed', () => {
  const direct = results({ a: 'SUCCESS', b: 'SUCCESS', c: 'WARNING' });

  test('is every check that succeeds without it alone, also one that is not made any more', () => {
    expect(names(changesOf(direct, results({ a: 'FAILURE', c: 'FAILURE' })))).toEqual([
      'a FAILURE',
      'b NOT REACHED',
    ]);
    expect(names(changesOf(direct, new Map()))).toEqual(['a NOT REACHED', 'b NOT REACHED']);
  });

  test('is every failure of a check that is not made without it', () => {
    const through = results({ a: 'SUCCESS', b: 'SUCCESS', d: 'FAILURE', e: 'SUCCESS' });
    expect(names(changesOf(direct, through))).toEqual(['d FAILURE']);
  });

  test('is nothing where all that succeeded succeeds', () => {
    expect(changesOf(direct, results({ a: 'SUCCESS', b: 'SUCCESS', c: 'WARNING' }))).toEqual([]);
  });
});

test('a direct run has to succeed as a whole', () => {
  expect(names(faultsOf(results({ a: 'SUCCESS', b: 'WARNING' })))).toEqual(['b WARNING']);
});

test('checks are counted by what became of them', () => {
  expect(count(results({ a: 'SUCCESS', b: 'FAILURE', c: 'WARNING' }))).toEqual({
    passed: 1,
    failed: 1,
    warnings: 1,
  });
});

test('an expected failure is one in its own run, scenario and check; one that succeeds is stale', () => {
  const deviations = [
    { scenario: 'ping', check: 'a', status: 'FAILURE' },
    { scenario: 'ping', check: 'b', status: 'FAILURE' },
  ];
  const { expected, unexpected, stale } = judge(deviations, {
    ping: { a: 'because' },
    pong: { b: 'because' },
  });
  expect(expected).toMatchObject([{ check: 'a', reason: 'because' }]);
  expect(unexpected).toMatchObject([{ check: 'b' }]);
  expect(stale).toEqual([{ scenario: 'pong', check: 'b' }]);
});

describe('the file of expected failures', () => {
  const folder = mkdtempSync(join(tmpdir(), 'eragate-test-'));
  afterAll(() => rmSync(folder, { recursive: true }));
  const read = (text: string) => {
    const file = join(folder, 'expected.yaml');
    writeFileSync(file, text);
    return readExpectations(file);
  };

  test('has a reason for each', () => {
    expect(read('run:\n  scenario:\n    check: because')).toEqual({
      run: { scenario: { check: 'because' } },
    });
    for (const reason of ['', '""', '7', '{}']) {
      expect(() => read(`run:\n  scenario:\n    check: ${reason}`)).toThrow(
        'no reason for run: scenario: check',
      );
    }
  });

  test('may be empty', () => {
    expect(read('')).toEqual({});
  });
});
