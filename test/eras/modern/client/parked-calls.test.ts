import { describe, expect, test, vi } from 'vitest';
import {
  type Parkable,
  type ParkedCall,
  ParkedCallStore,
  type ParkingOptions,
} from '../../../../src/eras/modern/client/parked-calls.js';
import { ANONYMOUS, principalOf } from '../../../../src/exchange/credentials.js';
import { ExchangeError } from '../../../../src/exchange/errors.js';
import { Sealer } from '../../../../src/exchange/utils/sealer.js';
import { Ticker } from '../../../../src/exchange/utils/ticker.js';

const ADA = principalOf('Bearer ada');
const ALAN = principalOf('Bearer alan');

interface Call extends Parkable {
  readonly name: string;
}

function setUp(options: Partial<ParkingOptions> = {}) {
  const expired: string[] = [];
  const ticker = new Ticker(60_000);
  const store = new ParkedCallStore<Call>({
    route: '/mcp',
    sealer: new Sealer(['a key of enough length']),
    ticker,
    timeoutMs: 1_000,
    maxParked: 4,
    maxParkedPerPrincipal: 2,
    maxRounds: 10,
    maxParkedAnonymous: 3,
    ...options,
  });
  const call = (name: string): Call => ({ name, expire: () => void expired.push(name) });
  return { store, ticker, expired, call };
}

const refusalOf = (work: () => unknown): unknown => {
  try {
    work();
    return undefined;
  } catch (error) {
    const { outcome } = error as ExchangeError;
    expect(error).toBeInstanceOf(ExchangeError);
    return [outcome.status, outcome.message];
  }
};

describe('the limit of parked calls', () => {
  test('holds for each principal, for callers without a credential, and for all', () => {
    const { store, call } = setUp();
    store.admit(call('1'), ADA, 'd');
    store.admit(call('2'), ADA, 'd');
    expect(refusalOf(() => store.admit(call('3'), ADA, 'd'))).toEqual([
      503,
      'Too many at once: limit of 2 calls of one principal that wait for answers reached; try again later',
    ]);
    const third = store.admit(call('3'), ALAN, 'd');
    store.admit(call('4'), ANONYMOUS, 'd');
    expect(refusalOf(() => store.admit(call('5'), ANONYMOUS, 'd'))).toEqual([
      503,
      'Too many at once: limit of 4 calls that wait for answers reached; try again later',
    ]);
    store.release(third);
    store.release(third);
    store.admit(call('5'), ANONYMOUS, 'd');
    expect(refusalOf(() => store.admit(call('6'), ALAN, 'd'))).toBeDefined();
  });

  test('is another one for callers without a credential', () => {
    const { store, call } = setUp({ maxParked: 10 });
    for (const name of ['1', '2', '3']) store.admit(call(name), ANONYMOUS, 'd');
    expect(refusalOf(() => store.admit(call('4'), ANONYMOUS, 'd'))).toEqual([
      503,
      'Too many at once: limit of 3 calls of callers without a credential that wait for answers reached; try again later',
    ]);
    store.admit(call('4'), ADA, 'd');
  });

  test('is not raised for one principal by a release of another', () => {
    const { store, call } = setUp({ maxParked: 10 });
    const ada = [1, 2].map((n) => store.admit(call(`${n}`), ADA, 'd'));
    for (const n of [1, 2]) store.admit(call(`${n}`), ALAN, 'd');
    for (const parkedCall of ada) store.release(parkedCall);
    expect(refusalOf(() => store.admit(call('x'), ALAN, 'd'))).toBeDefined();
    store.admit(call('x'), ADA, 'd');
  });
});

describe('a requestState', () => {
  const digest = (): string => 'd';
  const parked = (
    options?: Partial<ParkingOptions>,
  ): ReturnType<typeof setUp> & { parkedCall: ParkedCall<Call> } => {
    const all = setUp(options);
    return { ...all, parkedCall: all.store.admit(all.call('1'), ADA, 'd') };
  };

  test('finds its call until the next round begins or the call is released', () => {
    const { store, parkedCall } = parked();
    const first = store.startRound(parkedCall);
    expect(store.find(first, ADA, digest)).toEqual({ kind: 'parked', parkedCall });
    // Twice is no matter here: copies join.
    expect(store.find(first, ADA, digest)).toEqual({ kind: 'parked', parkedCall });
    const second = store.startRound(parkedCall);
    expect(store.find(first, ADA, digest)).toEqual({ kind: 'refused', reason: 'it was used already' });
    expect(store.find(second, ADA, digest)).toEqual({ kind: 'parked', parkedCall });
    store.release(parkedCall);
    expect(store.find(second, ADA, digest)).toEqual({ kind: 'refused', reason: 'it was used already' });
  });

  test('is valid for one principal, one request and one gateway', () => {
    const { store, parkedCall } = parked();
    const token = store.startRound(parkedCall);
    const reason = (found: { kind: string; reason?: string }): unknown => [found.kind, found.reason];
    expect(reason(store.find(token, ALAN, digest))).toEqual(['refused', 'it belongs to another principal']);
    expect(reason(store.find(token, ADA, () => 'other'))).toEqual([
      'refused',
      'it belongs to another request',
    ]);
    expect(reason(setUp().store.find(token, ADA, digest))).toEqual([
      'refused',
      'its call is not held by this gateway (any more)',
    ]);
    expect(store.find('junk', ADA, digest)).toEqual({ kind: 'unknown' });
    expect(setUp({ route: '/other' }).store.find(token, ADA, digest)).toEqual({ kind: 'unknown' });
  });

  test('of another principal, or without one, is refused without computing a digest', () => {
    const { store, parkedCall } = parked();
    const costly = vi.fn(digest);
    store.find('junk', ADA, costly);
    store.find(store.startRound(parkedCall), ALAN, costly);
    expect(costly).not.toHaveBeenCalled();
  });

  test('expires, with and without its call', () => {
    vi.useFakeTimers({ toFake: ['Date', 'performance'] });
    try {
      const { store, parkedCall, expired } = parked();
      const token = store.startRound(parkedCall);
      const again = store.sealRetry(ADA, 'd');
      vi.advanceTimersByTime(999);
      store.tick(performance.now());
      expect(expired).toEqual([]);
      expect(store.find(again, ADA, digest)).toEqual({ kind: 'repeat' });
      vi.advanceTimersByTime(2);
      store.tick(performance.now());
      expect(expired).toEqual(['1']);
      for (const state of [token, again])
        expect(store.find(state, ADA, digest)).toEqual({ kind: 'refused', reason: 'it has expired' });
    } finally {
      vi.useRealTimers();
    }
  });

  test('of a call with a pending request does not expire', () => {
    const { store, parkedCall, expired } = parked();
    store.startRound(parkedCall);
    const goOn = store.suspend(parkedCall);
    store.tick(performance.now() + 1e9);
    expect(expired).toEqual([]);
    goOn();
    store.tick(performance.now() + 1e9);
    expect(expired).toEqual(['1']);
  });

  test('that repeats its call is valid at any gateway with the key', () => {
    const token = setUp().store.sealRetry(ADA, 'd');
    const { store } = setUp();
    expect(store.find(token, ADA, digest)).toEqual({ kind: 'repeat' });
    expect(store.find(token, ALAN, digest).kind).toBe('refused');
    expect(store.find(token, ADA, () => 'other').kind).toBe('refused');
  });
});

test('the store uses the ticker only while it holds a call', () => {
  const { store, call } = setUp();
  expect(store.place).toBe(-1);
  const parkedCall = store.admit(call('1'), ADA, 'd');
  expect(store.place).toBe(0);
  store.release(parkedCall);
  expect(store.place).toBe(-1);
});
