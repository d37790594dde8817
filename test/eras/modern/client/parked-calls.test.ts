import { describe, expect, test, vi } from 'vitest';
import {
  type Parkable,
  ParkingLot,
  type ParkingOptions,
  type Ticket,
} from '../../../../src/eras/modern/client/parked-calls.js';
import { ANONYMOUS, principalOf } from '../../../../src/exchange/digest.js';
import { ExchangeError } from '../../../../src/exchange/errors.js';
import { Sealer } from '../../../../src/exchange/seal.js';
import { Ticker } from '../../../../src/exchange/ticker.js';

const ADA = principalOf('Bearer ada');
const ALAN = principalOf('Bearer alan');

interface Call extends Parkable {
  readonly name: string;
}

function setUp(options: Partial<ParkingOptions> = {}) {
  const expired: string[] = [];
  const ticker = new Ticker(60_000);
  const lot = new ParkingLot<Call>({
    route: '/mcp',
    sealer: new Sealer(['a key of enough length']),
    ticker,
    timeoutMs: 1_000,
    maxParked: 4,
    maxParkedPerPrincipal: 2,
    maxParkedAnonymous: 3,
    ...options,
  });
  const call = (name: string): Call => ({ name, expire: () => void expired.push(name) });
  return { lot, ticker, expired, call };
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

describe('places', () => {
  test('there are so many, of each principal, of those without one, and of all', () => {
    const { lot, call } = setUp();
    lot.admit(call('1'), ADA, 'd');
    lot.admit(call('2'), ADA, 'd');
    expect(refusalOf(() => lot.admit(call('3'), ADA, 'd'))).toEqual([
      503,
      'limit of 2 calls of one principal that wait for answers reached',
    ]);
    const third = lot.admit(call('3'), ALAN, 'd');
    lot.admit(call('4'), ANONYMOUS, 'd');
    expect(refusalOf(() => lot.admit(call('5'), ANONYMOUS, 'd'))).toEqual([
      503,
      'limit of 4 calls that wait for answers reached',
    ]);
    expect(lot.size).toBe(4);
    lot.release(third);
    lot.release(third);
    expect(lot.size).toBe(3);
    lot.admit(call('5'), ANONYMOUS, 'd');
    expect(refusalOf(() => lot.admit(call('6'), ALAN, 'd'))).toBeDefined();
  });

  test('those without a principal have a limit of their own', () => {
    const { lot, call } = setUp({ maxParked: 10 });
    for (const name of ['1', '2', '3']) lot.admit(call(name), ANONYMOUS, 'd');
    expect(refusalOf(() => lot.admit(call('4'), ANONYMOUS, 'd'))).toEqual([
      503,
      'limit of 3 calls of callers without a credential that wait for answers reached',
    ]);
    lot.admit(call('4'), ADA, 'd');
  });

  test('a release of one principal is no room for another', () => {
    const { lot, call } = setUp({ maxParked: 10 });
    const ada = [1, 2].map((n) => lot.admit(call(`${n}`), ADA, 'd'));
    for (const n of [1, 2]) lot.admit(call(`${n}`), ALAN, 'd');
    for (const ticket of ada) lot.release(ticket);
    expect(refusalOf(() => lot.admit(call('x'), ALAN, 'd'))).toBeDefined();
    lot.admit(call('x'), ADA, 'd');
  });
});

describe('a state', () => {
  const digest = (): string => 'd';
  const parked = (options?: Partial<ParkingOptions>): ReturnType<typeof setUp> & { ticket: Ticket<Call> } => {
    const all = setUp(options);
    return { ...all, ticket: all.lot.admit(all.call('1'), ADA, 'd') };
  };

  test('finds its call, until the next round begins, or the call has left', () => {
    const { lot, ticket } = parked();
    const first = lot.startRound(ticket);
    expect(lot.find(first, ADA, digest)).toEqual({ kind: 'parked', ticket });
    // Twice is no matter here: copies join.
    expect(lot.find(first, ADA, digest)).toEqual({ kind: 'parked', ticket });
    const second = lot.startRound(ticket);
    expect(lot.find(first, ADA, digest)).toEqual({ kind: 'refused', reason: 'it was used already' });
    expect(lot.find(second, ADA, digest)).toEqual({ kind: 'parked', ticket });
    lot.release(ticket);
    expect(lot.find(second, ADA, digest)).toEqual({ kind: 'refused', reason: 'it was used already' });
  });

  test('is for one principal, one request, one gateway', () => {
    const { lot, ticket } = parked();
    const token = lot.startRound(ticket);
    const reason = (found: { kind: string; reason?: string }): unknown => [found.kind, found.reason];
    expect(reason(lot.find(token, ALAN, digest))).toEqual(['refused', 'it belongs to another principal']);
    expect(reason(lot.find(token, ADA, () => 'other'))).toEqual(['refused', 'it belongs to another request']);
    expect(reason(setUp().lot.find(token, ADA, digest))).toEqual([
      'refused',
      'its call is not held by this gateway (any more)',
    ]);
    expect(lot.find('junk', ADA, digest)).toEqual({ kind: 'unknown' });
    expect(setUp({ route: '/other' }).lot.find(token, ADA, digest)).toEqual({ kind: 'unknown' });
  });

  test('costs no digest when it is of another principal, or of nobody', () => {
    const { lot, ticket } = parked();
    const costly = vi.fn(digest);
    lot.find('junk', ADA, costly);
    lot.find(lot.startRound(ticket), ALAN, costly);
    expect(costly).not.toHaveBeenCalled();
  });

  test('expires, with its call or without one', () => {
    vi.useFakeTimers({ toFake: ['Date', 'performance'] });
    try {
      const { lot, ticket, expired } = parked();
      const token = lot.startRound(ticket);
      const again = lot.sealAgain(ADA, 'd');
      vi.advanceTimersByTime(999);
      lot.tick(performance.now());
      expect(expired).toEqual([]);
      expect(lot.find(again, ADA, digest)).toEqual({ kind: 'again' });
      vi.advanceTimersByTime(2);
      lot.tick(performance.now());
      expect(expired).toEqual(['1']);
      expect(lot.size).toBe(0);
      for (const state of [token, again])
        expect(lot.find(state, ADA, digest)).toEqual({ kind: 'refused', reason: 'it has expired' });
    } finally {
      vi.useRealTimers();
    }
  });

  test('of a call whose client is back does not expire it', () => {
    const { lot, ticket, expired } = parked();
    lot.startRound(ticket);
    ticket.expiresAt = Number.POSITIVE_INFINITY;
    lot.tick(performance.now() + 1e9);
    expect(expired).toEqual([]);
    expect(lot.size).toBe(1);
  });

  test('that only says "again" is good at any gateway with the key', () => {
    const token = setUp().lot.sealAgain(ADA, 'd');
    const { lot } = setUp();
    expect(lot.find(token, ADA, digest)).toEqual({ kind: 'again' });
    expect(lot.find(token, ALAN, digest).kind).toBe('refused');
    expect(lot.find(token, ADA, () => 'other').kind).toBe('refused');
  });
});

test('the lot is looked after only while a call is in it', () => {
  const { lot, call } = setUp();
  expect(lot.place).toBe(-1);
  const ticket = lot.admit(call('1'), ADA, 'd');
  expect(lot.place).toBe(0);
  lot.release(ticket);
  expect(lot.place).toBe(-1);
});
