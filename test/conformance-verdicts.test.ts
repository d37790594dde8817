import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import type { Loose } from './support/net.js';

const COMPARE: string = './conformance/compare.mjs';
const SUITE: string = './conformance/suite.mjs';
const PEERS: string = './conformance/peers-report.mjs';
const { changesOf, count, faultsOf, judge, readExpectations }: Loose = await import(COMPARE);
const { readResults }: Loose = await import(SUITE);
const { formatPeers }: Loose = await import(PEERS);

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

test('a scenario that left no checks has failed once, whatever it was to look at', () => {
  const folder = mkdtempSync(join(tmpdir(), 'eragate-test-'));
  const stamp = '2026-11-30T03-46-29-000Z';
  for (const scenario of ['ping', 'tools-list']) mkdirSync(join(folder, `server-${scenario}-${stamp}`));
  const checks = [
    { id: 'a', status: 'SUCCESS' },
    { id: 'a', status: 'FAILURE' },
    { id: 'b', status: 'SKIPPED' },
  ];
  writeFileSync(join(folder, `server-ping-${stamp}`, 'checks.json'), JSON.stringify(checks));
  writeFileSync(join(folder, 'output.txt'), '');
  const found = readResults(folder, 'server');
  rmSync(folder, { recursive: true });
  expect([...found.keys()]).toEqual(['ping', 'tools-list']);
  expect([...found.get('ping').keys()]).toEqual(['a', 'a#2']);
  expect(count(found)).toEqual({ passed: 1, failed: 2, warnings: 0 });
});

test('of a peer stands what it can do, what it cannot, and why there are no figures', () => {
  const counts = { passed: 83, failed: 1, warnings: 0 };
  const scenarios = { ping: { failed: 1, missed: 2, warned: 0 } };
  const text = formatPeers({
    suite: '1.0',
    direct: { '2025-11-25': { passed: 84, failed: 0 }, '2026-07-28': { passed: 152, failed: 0 } },
    peers: {
      some: {
        version: '2.0',
        limit: '',
        date: '2026-11-30',
        cells: { LL: { ...counts, scenarios }, MM: { missing: 'HTTP 403' } },
      },
    },
  });
  expect(text).toContain('| nothing in between |  |  | 84/0 | 84/0 | 152/0 | 152/0 |');
  expect(text).toContain('| some | 2.0 | 2026-11-30 | 83/1 | — | — | does not serve |');
  expect(text).toContain('| ping | 1 failed, 2 not reached |  |');
  expect(text).toContain('MM: HTTP 403.');
});
