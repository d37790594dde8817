import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { SessionReplay } from '../../src/downstream/replay.js';
import { ReplayRoom } from '../../src/downstream/replay-buffer.js';
import { type ReplayStream, readEventId } from '../../src/downstream/replay-stream.js';
import type { ClientResponse } from '../../src/downstream/response.js';
import { Ticker } from '../../src/exchange/ticker.js';
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
  const room = new ReplayRoom({ maxBytes, ticker, keepMs: KEEP_MS });
  const session = new SessionReplay(room);
  const gaveUp: ReplayStream[] = [];
  const begin = (of = session, { primed = true, lasting = false } = {}): ReplayStream => {
    const response = { giveUp: () => void gaveUp.push(stream) } as unknown as ClientResponse;
    const stream = of.begin(response, primed, lasting) as ReplayStream;
    return stream;
  };
  return { room, session, begin, gaveUp };
}

const message = (text: string) => new Rope().push(JSON.stringify({ text }));
const textsAfter = (stream: ReplayStream, seq: number) =>
  stream.after(seq).map((text) => (typeof text === 'string' ? text : text.toBuffer().toString()));

describe('a stream', () => {
  test('gives the events after one, as they went out', () => {
    const { begin } = setUp();
    const stream = begin();
    const sent = ['a', 'b ü', 'c'].map((text) => stream.event(message(text)).toBuffer().toString());
    expect(new Set(sent.map((text) => /id: (\S+)/.exec(text)?.[1])).size).toBe(3);
    expect(textsAfter(stream, 1).map((text) => Buffer.from(text, 'latin1').toString())).toEqual(
      sent.slice(1),
    );
    expect([stream.has(0), stream.has(3), stream.has(4)]).toEqual([true, true, false]);
  });

  test('has ids that name it, and where in it they are', () => {
    const { begin, session } = setUp();
    const stream = begin();
    const other = begin(session, { lasting: true });
    for (const of of [stream, other]) for (let i = 0; i < 50; i += 1) of.event(message('x'));
    const id = /id: (\S+)/.exec(stream.event(message('last')).toBuffer().toString())?.[1] as string;
    expect(readEventId(id)).toEqual({ key: stream.key, seq: 51, lasting: false });
    expect(session.find(stream.key)).toBe(stream);
    expect(readEventId(/id: (\S+)/.exec(other.priming() as string)?.[1] as string)).toEqual({
      key: other.key,
      seq: 0,
      lasting: true,
    });
  });

  test.each(['', 'x', '-1', 's-1', 'r00000000', 'r00000000-', 'r00000000-A', 'r00000000-1-1', '\u00fc'])(
    'is not named by "%s"',
    (id) => expect(readEventId(id)).toBeUndefined(),
  );

  test('is not primed for a client that takes the empty text for JSON', () => {
    const { begin, session } = setUp();
    expect(begin(session, { primed: false }).priming()).toBeUndefined();
  });

  test('waits a while for a client that left, and not for ever', () => {
    const { begin, session, room, gaveUp } = setUp();
    const stream = begin();
    stream.event(message('x'));
    stream.leave();
    vi.advanceTimersByTime(KEEP_MS - 500);
    expect(session.find(stream.key)).toBe(stream);
    vi.advanceTimersByTime(1_000);
    expect(session.find(stream.key)).toBeUndefined();
    expect(gaveUp).toEqual([stream]);
    expect(room.bytes).toBe(0);
    expect(stream.leave()).toBe(false);
    expect(stream.event(message('into the void')).byteLength).toBeGreaterThan(0);
    expect(room.bytes).toBe(0);
  });

  test('that its client came back to is waited for anew when it leaves again', () => {
    const { begin, session } = setUp();
    const stream = begin();
    stream.leave();
    vi.advanceTimersByTime(KEEP_MS - 500);
    stream.return();
    vi.advanceTimersByTime(10 * KEEP_MS);
    stream.leave();
    vi.advanceTimersByTime(KEEP_MS - 500);
    expect(session.find(stream.key)).toBe(stream);
  });

  test('that is finished may be fetched for the same time, and nobody is told when it goes', () => {
    const { begin, session, gaveUp } = setUp();
    const stream = begin();
    stream.event(message('the end'));
    stream.finish();
    // The connection that it went out on is let go of at once.
    expect([stream.finished, stream.response]).toEqual([true, undefined]);
    vi.advanceTimersByTime(KEEP_MS - 500);
    expect(textsAfter(stream, 0)).toHaveLength(1);
    vi.advanceTimersByTime(1_000);
    expect(session.find(stream.key)).toBeUndefined();
    expect(gaveUp).toEqual([]);
  });
});

const large = (bytes: number) => message('x'.repeat(bytes));

describe('a stream whose reader was let go', () => {
  test('keeps what is more than the share of a session, in the room of all, and for the same time', () => {
    const { begin, session, room } = setUp(80_000);
    const [broken, detach] = [begin(), begin()];
    broken.leave();
    detach.leave(true);
    for (const stream of [broken, detach]) {
      stream.event(large(30_000));
      stream.finish();
    }
    expect([broken.has(0), detach.has(0)]).toEqual([false, true]);
    expect(room.bytes).toBeGreaterThan(30_000);
    // It does not make the events of others go.
    const other = begin();
    for (let i = 0; i < 4; i += 1) other.event(large(1_000));
    expect([other.has(0), detach.has(0)]).toEqual([true, true]);
    vi.advanceTimersByTime(KEEP_MS + 500);
    expect(session.find(detach.key)).toBeUndefined();
    session.close();
    expect(room.bytes).toBe(0);
  });

  test('has no more than the room of all, and makes way for those who leave later', () => {
    const { begin, room } = setUp(80_000);
    const streams = Array.from({ length: 5 }, () => begin(new SessionReplay(room)));
    for (const stream of streams) {
      stream.leave(true);
      stream.event(large(30_000));
      expect(room.bytes).toBeLessThanOrEqual(80_000);
    }
    expect(streams.map(({ forgotten }) => forgotten)).toEqual([true, true, true, false, false]);
    const [last] = streams.slice(-1);
    last?.event(large(90_000));
    expect(last?.has(0)).toBe(false);
    expect(room.bytes).toBeLessThanOrEqual(80_000);
  });

  test('makes way for new ones after those that are finished', () => {
    const { begin, session } = setUp();
    const [running, answered] = [begin(), begin()];
    for (const stream of [running, answered]) stream.leave(true);
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

  test('may be left only where it can be taken up again', () => {
    const { begin, session, room } = setUp();
    expect([begin().mayBeLeft, begin(session, { primed: false }).mayBeLeft]).toEqual([true, false]);
    const gone = begin();
    gone.forget();
    expect(gone.mayBeLeft).toBe(false);
    const stream = begin();
    void room.close(1_000);
    expect(stream.mayBeLeft).toBe(false);
  });
});

describe('a room that is closed', () => {
  /** Whether it is closed, after all that can happen at once. */
  const closing = (room: ReplayRoom) => {
    const state = { over: false };
    void room.close(5_000).then(() => {
      state.over = true;
    });
    return async () => {
      await Promise.resolve();
      await Promise.resolve();
      await Promise.resolve();
      return state.over;
    };
  };

  test('waits for nobody who was not let go of in the middle of an answer', async () => {
    const { begin, session, room } = setUp();
    begin().leave();
    begin().finish();
    begin(session, { lasting: true }).leave(true);
    const back = begin();
    back.leave(true);
    back.return();
    expect(await closing(room)()).toBe(true);
  });

  test('waits for those who were, until they have their answers or are given up', async () => {
    const { begin, room } = setUp();
    const [one, two, three] = [begin(), begin(), begin()];
    for (const stream of [one, two, three]) stream.leave(true);
    two.event(message('the end'));
    two.finish();
    const over = closing(room);
    one.return();
    expect(await over()).toBe(false);
    two.fetched();
    expect(await over()).toBe(false);
    three.forget();
    expect(await over()).toBe(true);
  });
});

describe('the room', () => {
  test('of a session is an eighth: its oldest events make way, and what follows a gap is not given', () => {
    const { begin, session, room } = setUp(80_000);
    const [old, young] = [begin(), begin()];
    old.event(large(4_000));
    for (let i = 0; i < 100; i += 1) young.event(large(2_000));
    expect(room.bytes).toBeLessThanOrEqual(room.sessionBytes + 1_000);
    expect(old.has(0)).toBe(false);
    expect(old.has(1)).toBe(true);
    expect(young.has(90)).toBe(false);
    expect(young.has(99)).toBe(true);
    session.close();
    expect(room.bytes).toBe(0);
  });

  test('is not for a message that is larger than the share of a session', () => {
    const { begin, room } = setUp(80_000);
    const stream = begin();
    stream.event(message('small'));
    stream.event(large(20_000));
    expect([stream.has(0), stream.has(1), stream.has(2)]).toEqual([false, false, true]);
    stream.event(message('small again'));
    expect(stream.has(2)).toBe(true);
    expect(room.bytes).toBeLessThan(2_000);
  });

  test('keeps what clients have not read, rather than what others read at once', () => {
    const { begin } = setUp(80_000);
    const [away, finished, read] = [begin(), begin(), begin()];
    away.leave();
    away.event(message('missed'));
    finished.event(message('the end'));
    finished.finish();
    for (let i = 0; i < 100; i += 1) read.event(large(1_000));
    expect([away.has(0), finished.has(0), read.has(50)]).toEqual([true, true, false]);
  });

  test('is crowded before what a client has not read would have to make way', () => {
    const { begin } = setUp(2_400_000);
    const [few, many, big] = [begin(), begin(), begin()];
    for (const stream of [few, many, big]) {
      for (let i = 0; i < 20; i += 1) stream.event(message('read'));
      stream.leave();
      expect(stream.crowded).toBe(false);
    }
    few.event(large(1_000));
    for (let i = 0; i < 5_000; i += 1) many.event(message(''));
    big.event(large(150_000));
    expect([few.crowded, many.crowded, big.crowded]).toEqual([false, true, true]);
  });

  test('of all sessions is never more than was given: who left longest ago makes way', () => {
    const { begin, room } = setUp(80_000);
    const left = Array.from({ length: 10 }, () => begin(new SessionReplay(room)));
    for (const stream of left) {
      stream.event(large(7_000));
      stream.leave();
    }
    const live = begin(new SessionReplay(room));
    for (let i = 0; i < 3; i += 1) live.event(large(3_000));
    expect(room.bytes).toBeLessThanOrEqual(80_000);
    expect(live.has(0)).toBe(true);
    expect(left[0]?.forgotten).toBe(true);
    expect(left.at(-1)?.has(0)).toBe(true);
  });

  test('is given back by a stream that has to go for its own next event', () => {
    const { begin, room } = setUp(80_000);
    const sessions = Array.from({ length: 9 }, () => new SessionReplay(room));
    const [away, ...others] = sessions.map((session) => begin(session));
    for (const stream of others) stream?.event(large(8_400));
    away?.leave();
    for (let i = 0; i < 2; i += 1) away?.event(large(4_000));
    expect(away?.forgotten).toBe(true);
    for (const session of sessions) session.close();
    expect(room.bytes).toBe(0);
  });

  test('that is all in use has none for others, whose streams go on without it', () => {
    const { begin, room } = setUp(80_000);
    for (let i = 0; i < 12; i += 1) begin(new SessionReplay(room))?.event(large(7_000));
    expect(room.bytes).toBeLessThanOrEqual(80_000);
    const stream = begin(new SessionReplay(room));
    stream?.event(large(9_000));
    expect(room.bytes).toBeLessThanOrEqual(80_000);
    expect(stream?.has(0) ?? false).toBe(false);
  });

  test('holds so many events and streams of one session, however small', () => {
    const { begin, session } = setUp(100_000_000);
    const stream = begin();
    for (let i = 0; i < 20_000; i += 1) stream.event(message('x'));
    expect([stream.has(9_000), stream.has(11_000)]).toEqual([false, true]);
    for (let i = 0; i < 1_000; i += 1) begin(session)?.finish();
    expect(session.find(stream.key)).toBe(stream);
    const others = Array.from({ length: 200 }, () => begin(session));
    expect(others.at(-1)).toBeUndefined();
  });

  test('is empty when all have gone, whatever happened before', () => {
    const { begin, room } = setUp(60_000);
    const sessions = Array.from({ length: 5 }, () => new SessionReplay(room));
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
        () => !stream.finished && stream.leave(),
        () => !stream.finished && stream.return(),
        () => stream.finish(),
      ][random(4)]?.();
      expect(room.bytes).toBeLessThanOrEqual(60_000);
      if (random(50) === 0) vi.advanceTimersByTime(KEEP_MS / 2);
    }
    for (const session of sessions) session.close();
    expect(room.bytes).toBe(0);
    vi.advanceTimersByTime(10 * KEEP_MS);
    expect(room.bytes).toBe(0);
  });
});
