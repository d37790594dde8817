import { describe, expect, test } from 'vitest';
import {
  featuresFor,
  isLegacyRevision,
  LEGACY_REVISIONS,
  NEWEST_LEGACY,
  negotiateRevision,
} from '../../../../src/eras/legacy/wire/revisions.js';

test('the revisions are listed newest first', () => {
  expect([...LEGACY_REVISIONS].sort().reverse()).toEqual([...LEGACY_REVISIONS]);
  expect(NEWEST_LEGACY).toBe('2025-11-25');
});

test.each(LEGACY_REVISIONS)('a client that asks for %s gets it', (revision) => {
  expect(isLegacyRevision(revision)).toBe(true);
  expect(negotiateRevision(revision)).toBe(revision);
});

test.each([
  '2026-07-28',
  '2099-01-01',
  '2024-10-07',
  '2025-11',
  'latest',
  '',
  ' 2025-11-25',
  undefined,
  null,
  2025,
  {},
])('a client that asks for %j gets the newest', (asked) => {
  expect(isLegacyRevision(asked)).toBe(false);
  expect(negotiateRevision(asked)).toBe(NEWEST_LEGACY);
});

describe('the features of a revision', () => {
  const [y2024, march, june, november] = ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'];
  test.each([
    ['audioContent', [march, june, november]],
    ['resourceLinks', [june, november]],
    ['structuredContent', [june, november]],
    ['elicitation', [june, november]],
    ['completionContext', [june, november]],
    ['urlElicitation', [november]],
    ['samplingTools', [november]],
    ['batches', [march]],
  ] as const)('%s: %j', (feature, having) => {
    for (const revision of [y2024, march, june, november] as string[]) {
      expect(featuresFor(revision)[feature], revision).toBe((having as readonly string[]).includes(revision));
    }
  });

  test('a version from before the first revision has those of the oldest', () => {
    expect(featuresFor('2024-10-07')).toEqual(featuresFor('2024-11-05'));
  });
});
