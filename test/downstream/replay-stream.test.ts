import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { readEventId } from '../../src/downstream/event-id.js';
import { ReplayBudget } from '../../src/downstream/replay-budget.js';
import type { ReplayStream, StreamTraits } from '../../src/downstream/replay-stream.js';
import { SessionReplay } from '../../src/downstream/session-replay.js';
import type { Principal } from '../../src/exchange/credentials.js';
import { Ticker } from '../../src/exchange/utils/ticker.js';
import { Rope } from '../../src/jsonrpc/index.js';

const KEEP_MS = 10_000;
let ticker: Ticker;
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] });
  ticker = new Ticker();
});
afterEach(() => {
  ticker.stop();
  vi.useRealTimers();
});

function setUp(maxBytes = 1_000_000) {
  const budget = new ReplayBudget({ maxBytes, ticker, keepMs: KEEP_MS });
  const session = new SessionReplay(budget);
  const expired: ReplayStream[] = [];
  const begin = (of = session, traits: Partial<StreamTraits> = {}): ReplayStream => {
    const owner = { attach: () => {}, expire: () => void expired.push(stream) };
    const stream = of.begin(owner, { kind: 'request', primed: true, ...traits }) as ReplayStream;
    return stream;
  };
  return { budget, session, begin, expired };
}

const message = (text: string) => new Rope().push(JSON.stringify({ text }));
const textsAfter = (stream: ReplayStream, seq: number) =>
  stream.after(seq).map((text) => (typeof text === 'string' ? text : text.toBuffer().toString()));

describe('a stream', () => {
  test('gives the events after one, as they were written', () => {
    const { begin } = setUp();
    const stream = begin();
    const sent = ['a', 'b ü', 'c'].map((text) => stream.event(message(text)).toBuffer().toString());
    expect(new Set(sent.map((text) => /id: (\S+)/.exec(text)?.[1])).size).toBe(3);
    expect(textsAfter(stream, 1).map((text) => Buffer.from(text, 'latin1').toString())).toEqual(
      sent.slice(1),
    );
    expect([stream.has(0), stream.has(3), stream.has(4)]).toEqual([true, true, false]);
  });

  test('has ids that name the stream, its kind and the place in it', () => {
    const { begin, session } = setUp();
    const stream = begin();
    const other = begin(session, { kind: 'session' });
    for (const of of [stream, other]) for (let i = 0; i < 50; i += 1) of.event(message('x'));
    const id = /id: (\S+)/.exec(stream.event(message('last')).toBuffer().toString())?.[1] as string;
    expect(readEventId(id)).toEqual({ key: stream.key, seq: 51, kind: 'request' });
    expect(session.find(stream.key)).toBe(stream);
    expect(readEventId(/id: (\S+)/.exec(other.priming() as string)?.[1] as string)).toEqual({
      key: other.key,
      seq: 0,
      kind: 'session',
    });
  });

  test.each(['', 'x', '-1', 's-1', 'r00000000', 'r00000000-', 'r00000000-A', 'r00000000-1-1', '\u00fc'])(
    'is not named by "%s"',
    (id) => expect(readEventId(id)).toBeUndefined(),
  );

  test('is not primed for a client that parses empty data as JSON', () => {
    const { begin, session } = setUp();
    expect(begin(session, { primed: false }).priming()).toBeUndefined();
  });

  test('is kept for a while after its client disconnected, then expires', () => {
    const { begin, session, budget, expired } = setUp();
    const stream = begin();
    stream.event(message('x'));
    stream.disconnect();
    vi.advanceTimersByTime(KEEP_MS - 500);
    expect(session.find(stream.key)).toBe(stream);
    vi.advanceTimersByTime(1_000);
    expect(session.find(stream.key)).toBeUndefined();
    expect(expired).toEqual([stream]);
    expect(budget.bytes).toBe(0);
    expect(stream.disconnect()).toBe(false);
    expect(stream.event(message('into the void')).byteLength).toBeGreaterThan(0);
    expect(budget.bytes).toBe(0);
  });

  test('that was resumed is kept anew for the whole time when its client disconnects again', () => {
    const { begin, session } = setUp();
    const stream = begin();
    stream.disconnect();
    vi.advanceTimersByTime(KEEP_MS - 500);
    stream.attached();
    vi.advanceTimersByTime(10 * KEEP_MS);
    stream.disconnect();
    vi.advanceTimersByTime(KEEP_MS - 500);
    expect(session.find(stream.key)).toBe(stream);
  });

  test('that is finished can be fetched for the same time, and is forgotten without notice to its owner', () => {
    const { begin, session, expired } = setUp();
    const stream = begin();
    stream.event(message('the end'));
    stream.finish();
    expect([stream.finished, stream.forgotten]).toEqual([true, false]);
    vi.advanceTimersByTime(KEEP_MS - 500);
    expect(textsAfter(stream, 0)).toHaveLength(1);
    vi.advanceTimersByTime(1_000);
    expect(session.find(stream.key)).toBeUndefined();
    expect(expired).toEqual([]);
  });
});

const large = (bytes: number) => message('x'.repeat(bytes));

describe('a detached stream', () => {
  test('keeps a message larger than the share of a session, in the budget of all, for the same time', () => {
    const { begin, session, budget } = setUp(80_000);
    const [broken, detach] = [begin(), begin()];
    broken.disconnect();
    detach.detach();
    for (const stream of [broken, detach]) {
      stream.event(large(30_000));
      stream.finish();
    }
    expect([broken.has(0), detach.has(0)]).toEqual([false, true]);
    expect(budget.bytes).toBeGreaterThan(30_000);
    // It evicts no events of others.
    const other = begin();
    for (let i = 0; i < 4; i += 1) other.event(large(1_000));
    expect([other.has(0), detach.has(0)]).toEqual([true, true]);
    vi.advanceTimersByTime(KEEP_MS + 500);
    expect(session.find(detach.key)).toBeUndefined();
    session.close();
    expect(budget.bytes).toBe(0);
  });

  test('uses no more than the budget of all, and is evicted for streams that detach later', () => {
    const { begin, budget } = setUp(80_000);
    const streams = Array.from({ length: 5 }, () => begin(new SessionReplay(budget)));
    for (const stream of streams) {
      stream.detach();
      stream.event(large(30_000));
      expect(budget.bytes).toBeLessThanOrEqual(80_000);
    }
    expect(streams.map(({ forgotten }) => forgotten)).toEqual([true, true, true, false, false]);
    const [last] = streams.slice(-1);
    last?.event(large(90_000));
    expect(last?.has(0)).toBe(false);
    expect(budget.bytes).toBeLessThanOrEqual(80_000);
  });

  test('is evicted for new ones only after those that are finished', () => {
    const { begin, session } = setUp();
    const [running, answered] = [begin(), begin()];
    for (const stream of [running, answered]) stream.detach();
    answered.event(message('the end'));
    answered.finish();
    for (let i = 0; i < 500; i += 1) {
      const stream = begin();
      stream.event(message('the end'));
      stream.finish();
    }
    expect([session.find(running.key), session.find(answered.key)]).toEqual([running, answered]);
    expect(answered.has(0)).toBe(true);
  });

  test('is detached only where it can be resumed', () => {
    const { begin, session, budget } = setUp();
    expect([begin().detachable, begin(session, { primed: false }).detachable]).toEqual([true, false]);
    const gone = begin();
    gone.forget();
    expect(gone.detachable).toBe(false);
    const stream = begin();
    void budget.close(1_000);
    expect(stream.detachable).toBe(false);
  });
});

describe('a closing budget', () => {
  /** Whether it is closed, once pending promises have settled. */
  const closing = (budget: ReplayBudget) => {
    const state = { over: false };
    void budget.close(5_000).then(() => {
      state.over = true;
    });
    return async () => {
      await Promise.resolve();
      await Promise.resolve();
      await Promise.resolve();
      return state.over;
    };
  };

  test('does not wait for clients that were not detached in the middle of a response', async () => {
    const { begin, session, budget } = setUp();
    begin().disconnect();
    begin().finish();
    begin(session, { kind: 'session' }).detach();
    const back = begin();
    back.detach();
    back.attached();
    expect(await closing(budget)()).toBe(true);
  });

  test('waits for detached clients until they have their responses or are forgotten', async () => {
    const { begin, budget } = setUp();
    const [one, two, three] = [begin(), begin(), begin()];
    for (const stream of [one, two, three]) stream.detach();
    two.event(message('the end'));
    two.finish();
    const over = closing(budget);
    one.attached();
    expect(await over()).toBe(false);
    two.fetched();
    expect(await over()).toBe(false);
    three.forget();
    expect(await over()).toBe(true);
  });
});

describe('the budget', () => {
  test('of a session is an eighth: its oldest events are evicted, and nothing is given after a gap', () => {
    const { begin, session, budget } = setUp(80_000);
    const [old, young] = [begin(), begin()];
    old.event(large(4_000));
    for (let i = 0; i < 100; i += 1) young.event(large(2_000));
    expect(budget.bytes).toBeLessThanOrEqual(budget.sessionBytes + 1_000);
    expect(old.has(0)).toBe(false);
    expect(old.has(1)).toBe(true);
    expect(young.has(90)).toBe(false);
    expect(young.has(99)).toBe(true);
    session.close();
    expect(budget.bytes).toBe(0);
  });

  test('is not for a message that is larger than the share of a session', () => {
    const { begin, budget } = setUp(80_000);
    const stream = begin();
    stream.event(message('small'));
    stream.event(large(20_000));
    expect([stream.has(0), stream.has(1), stream.has(2)]).toEqual([false, false, true]);
    stream.event(message('small again'));
    expect(stream.has(2)).toBe(true);
    expect(budget.bytes).toBeLessThan(2_000);
  });

  test('keeps what clients have not read, rather than what others have', () => {
    const { begin } = setUp(80_000);
    const [away, finished, read] = [begin(), begin(), begin()];
    away.disconnect();
    away.event(message('missed'));
    finished.event(message('the end'));
    finished.finish();
    for (let i = 0; i < 100; i += 1) read.event(large(1_000));
    expect([away.has(0), finished.has(0), read.has(50)]).toEqual([true, true, false]);
  });

  test('is crowded before what a client has not read would be evicted', () => {
    const { begin } = setUp(2_400_000);
    const [few, many, big] = [begin(), begin(), begin()];
    for (const stream of [few, many, big]) {
      for (let i = 0; i < 20; i += 1) stream.event(message('read'));
      stream.disconnect();
      expect(stream.crowded).toBe(false);
    }
    few.event(large(1_000));
    for (let i = 0; i < 5_000; i += 1) many.event(message(''));
    big.event(large(150_000));
    expect([few.crowded, many.crowded, big.crowded]).toEqual([false, true, true]);
  });

  test('of all sessions is never exceeded: the stream disconnected for longest is evicted', () => {
    const { begin, budget } = setUp(80_000);
    const left = Array.from({ length: 10 }, () => begin(new SessionReplay(budget)));
    for (const stream of left) {
      stream.event(large(7_000));
      stream.disconnect();
    }
    const live = begin(new SessionReplay(budget));
    for (let i = 0; i < 3; i += 1) live.event(large(3_000));
    expect(budget.bytes).toBeLessThanOrEqual(80_000);
    expect(live.has(0)).toBe(true);
    expect(left[0]?.forgotten).toBe(true);
    expect(left.at(-1)?.has(0)).toBe(true);
  });

  test('is released by a stream that is evicted for its own next event', () => {
    const { begin, budget } = setUp(80_000);
    const sessions = Array.from({ length: 9 }, () => new SessionReplay(budget));
    const [away, ...others] = sessions.map((session) => begin(session));
    for (const stream of others) stream?.event(large(8_400));
    away?.disconnect();
    for (let i = 0; i < 2; i += 1) away?.event(large(4_000));
    expect(away?.forgotten).toBe(true);
    for (const session of sessions) session.close();
    expect(budget.bytes).toBe(0);
  });

  test('that is all in use leaves further streams unrecorded', () => {
    const { begin, budget } = setUp(80_000);
    for (let i = 0; i < 12; i += 1) begin(new SessionReplay(budget))?.event(large(7_000));
    expect(budget.bytes).toBeLessThanOrEqual(80_000);
    const stream = begin(new SessionReplay(budget));
    stream?.event(large(9_000));
    expect(budget.bytes).toBeLessThanOrEqual(80_000);
    expect(stream?.has(0) ?? false).toBe(false);
  });

  test('is not for one principal: what it read gives way to the events of others', () => {
    const { begin, budget } = setUp(80_000);
    const greedy = Array.from({ length: 12 }, () => begin(new SessionReplay(budget, 'greedy' as Principal)));
    for (const stream of greedy) stream?.event(large(7_000));
    const stream = begin(new SessionReplay(budget, 'other' as Principal));
    stream.event(large(7_000));
    stream.disconnect();
    stream.event(large(1_000));
    expect(stream.has(0)).toBe(true);
    for (let i = 0; i < 20; i += 1)
      begin(new SessionReplay(budget, 'greedy' as Principal))?.event(large(7_000));
    expect(stream.has(0)).toBe(true);
    expect(budget.bytes).toBeLessThanOrEqual(80_000);
  });

  test('has room again for the same principal once its events were read long ago', () => {
    const { begin, budget } = setUp(80_000);
    for (let i = 0; i < 12; i += 1) begin(new SessionReplay(budget))?.event(large(7_000));
    vi.advanceTimersByTime(11_000);
    const stream = begin(new SessionReplay(budget));
    stream.event(large(7_000));
    expect(stream.has(0)).toBe(true);
  });

  test('limits the events and the streams of one session, however small', () => {
    const { begin, session } = setUp(100_000_000);
    const stream = begin();
    for (let i = 0; i < 20_000; i += 1) stream.event(message('x'));
    expect([stream.has(9_000), stream.has(11_000)]).toEqual([false, true]);
    for (let i = 0; i < 1_000; i += 1) begin(session)?.finish();
    expect(session.find(stream.key)).toBe(stream);
    const others = Array.from({ length: 200 }, () => begin(session));
    expect(others.at(-1)).toBeUndefined();
  });

  test('is empty when all have ended, whatever happened before', () => {
    const { begin, budget } = setUp(60_000);
    const sessions = Array.from({ length: 5 }, () => new SessionReplay(budget));
    let seed = 7;
    const random = (n: number): number => {
      seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
      return seed % n;
    };
    const streams: ReplayStream[] = [];
    for (let i = 0; i < 3_000; i += 1) {
      const session = sessions[random(5)] as SessionReplay;
      if (random(3) === 0) {
        const stream = begin(session);
        if (stream !== undefined) streams.push(stream);
      }
      const stream = streams[random(streams.length || 1)];
      if (stream === undefined) continue;
      [
        () => stream.event(large(random(4_000))),
        () => !stream.finished && stream.disconnect(),
        () => !stream.finished && stream.attached(),
        () => stream.finish(),
      ][random(4)]?.();
      expect(budget.bytes).toBeLessThanOrEqual(60_000);
      if (random(50) === 0) vi.advanceTimersByTime(KEEP_MS / 2);
    }
    for (const session of sessions) session.close();
    expect(budget.bytes).toBe(0);
    vi.advanceTimersByTime(10 * KEEP_MS);
    expect(budget.bytes).toBe(0);
  });
});
