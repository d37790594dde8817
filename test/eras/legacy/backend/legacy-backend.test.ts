import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { LegacyBackend } from '../../../../src/eras/legacy/backend/legacy-backend.js';
import { Ticker } from '../../../../src/exchange/utils/ticker.js';
import type { Transport } from '../../../../src/upstream/transport.js';

const MINUTE_MS = 60_000;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

const backend = (newestRevision?: string) =>
  new LegacyBackend({
    route: '/mcp',
    name: 'b',
    transport: {} as Transport,
    ticker: new Ticker(),
    onFault: () => {},
    handshakeMs: 1_000,
    newestRevision,
  });

test('that a backend has no GET stream is remembered for some minutes: it may be replaced by one that has', () => {
  const it = backend();
  expect(it.hasNoGetStream).toBe(false);
  it.noteNoGetStream();
  expect(it.hasNoGetStream).toBe(true);
  vi.advanceTimersByTime(9 * MINUTE_MS);
  expect(it.hasNoGetStream).toBe(true);
  vi.advanceTimersByTime(2 * MINUTE_MS);
  expect(it.hasNoGetStream).toBe(false);
});

test('that a backend refuses newer revisions is remembered for some minutes, a configured revision is kept', () => {
  const it = backend();
  expect(it.newestRevision).toBe('2025-11-25');
  it.noteNewest('2025-03-26');
  expect(it.newestRevision).toBe('2025-03-26');
  vi.advanceTimersByTime(11 * MINUTE_MS);
  expect(it.newestRevision).toBe('2025-11-25');
  const pinned = backend('2025-06-18');
  pinned.noteNewest('2024-11-05');
  expect(pinned.newestRevision).toBe('2024-11-05');
  vi.advanceTimersByTime(11 * MINUTE_MS);
  expect(pinned.newestRevision).toBe('2025-06-18');
});
