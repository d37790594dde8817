import { describe, expect, test, vi } from 'vitest';
import type { BackendSession } from '../../../../src/eras/legacy/backend/session.js';
import type { Lease } from '../../../../src/eras/legacy/backend/session-lease.js';
import { SessionPool } from '../../../../src/eras/legacy/backend/session-pool.js';
import { ANONYMOUS, type Principal } from '../../../../src/exchange/credentials.js';

/** A session as far as the pool knows one. */
class FakeSession {
  lost = false;
  lastUsedAt = performance.now();
  touch() {
    this.lastUsedAt = performance.now();
  }
  ends: object[] = [];
  readonly name: string;
  constructor(name: string) {
    this.name = name;
  }
  async end(forwarded: object): Promise<void> {
    this.ends.push(forwarded);
  }
}

/** A pool, and the sessions that it opened: at once, or by hand. */
interface SetUp {
  byHand?: boolean;
  maxOpening?: number;
  idleMs?: number;
  principalOf?: (key: string) => Principal;
}

function setUp(max: number, { byHand = false, idleMs = 60_000, principalOf, maxOpening = 100 }: SetUp = {}) {
  const pool = new SessionPool({ max, idleMs, maxOpening });
  const opened: FakeSession[] = [];
  const handshakes: { name: string; succeed: () => void; fail: (error: Error) => void }[] = [];
  const open = (name: string) => () =>
    new Promise<BackendSession>((resolve, reject) => {
      const succeed = () => {
        const session = new FakeSession(name);
        opened.push(session);
        resolve(session as unknown as BackendSession);
      };
      handshakes.push({ name, succeed, fail: reject });
      if (!byHand) succeed();
    });
  const caller = (key: string) => ({
    principal: principalOf?.(key) ?? ANONYMOUS,
    forwarded: { authorization: key },
  });
  return {
    pool,
    opened,
    handshakes,
    shared: (key: string, signal?: AbortSignal) => pool.acquireShared(key, caller(key), open(key), signal),
    exclusive: (key: string, signal?: AbortSignal) =>
      pool.acquireExclusive(key, caller(key), open(key), signal),
    once: (key: string, signal?: AbortSignal) => pool.acquireOnce(caller(key), open(key), signal),
  };
}
const nameOf = (lease: Lease) => (lease.session as unknown as FakeSession).name;
const endsOf = (lease: Lease) => (lease.session as unknown as FakeSession).ends;
/** Long enough for everything that waits for nothing else. */
const settle = () => new Promise((resolve) => setTimeout(resolve, 5));
/** Whether a promise is settled by now. */
async function isDone(promise: Promise<unknown>): Promise<boolean> {
  let done = false;
  promise.then(
    () => {
      done = true;
    },
    () => {
      done = true;
    },
  );
  await settle();
  return done;
}

describe('a shared session', () => {
  test('is one for all calls of a key, and another for each other key', async () => {
    const { shared, opened, pool } = setUp(10);
    const leases = await Promise.all([shared('a'), shared('a'), shared('b'), shared('a')]);
    expect(leases.map(nameOf)).toEqual(['a', 'a', 'b', 'a']);
    expect(new Set(leases.map(({ session }) => session)).size).toBe(2);
    expect(opened).toHaveLength(2);
    expect(pool.size).toBe(2);
    for (const lease of leases) lease.release();
    expect((await shared('a')).session).toBe(leases[0]?.session);
  });

  test('is opened by one handshake, for which all calls wait, and whose failure all get', async () => {
    const { shared, handshakes, pool } = setUp(10, { byHand: true });
    const waiting = [shared('a'), shared('a')];
    await settle();
    expect(handshakes).toHaveLength(1);
    handshakes[0]?.fail(new Error('no'));
    for (const lease of waiting) await expect(lease).rejects.toThrow('no');
    expect(pool.size).toBe(0);
    const again = shared('a');
    await settle();
    handshakes[1]?.succeed();
    expect(nameOf(await again)).toBe('a');
  });

  test('that is lost is replaced, and not ended', async () => {
    const { shared, opened, pool } = setUp(10);
    const first = await shared('a');
    (first.session as unknown as FakeSession).lost = true;
    const second = await shared('a');
    expect(second.session).not.toBe(first.session);
    first.release();
    second.release();
    expect(pool.size).toBe(1);
    expect((await shared('a')).session).toBe(second.session);
    expect(opened).toHaveLength(2);
    expect(endsOf(first)).toEqual([]);
  });
});

describe('an exclusive session', () => {
  test('carries one call at a time, and the next one after that', async () => {
    const { exclusive, opened } = setUp(10);
    const first = await exclusive('a');
    const second = await exclusive('a');
    expect(second.session).not.toBe(first.session);
    first.release();
    expect((await exclusive('a')).session).toBe(first.session);
    expect(opened).toHaveLength(2);
  });

  test('is reused by a pending acquire of the same key, without another handshake', async () => {
    const { exclusive, opened, pool } = setUp(1);
    const first = await exclusive('a');
    const second = exclusive('a');
    expect(await isDone(second)).toBe(false);
    first.release();
    expect((await second).session).toBe(first.session);
    expect(opened).toHaveLength(1);
    expect(endsOf(first)).toEqual([]);
    expect(pool.size).toBe(1);
  });

  test('is not reused once it is lost', async () => {
    const { exclusive, pool } = setUp(1);
    const first = await exclusive('a');
    (first.session as unknown as FakeSession).lost = true;
    first.release();
    const second = await exclusive('a');
    expect(second.session).not.toBe(first.session);
    expect(pool.size).toBe(1);
  });
});

describe('a session for one call', () => {
  test('is ended after it, with the credentials that it was opened with', async () => {
    const { once, pool } = setUp(10);
    const first = await once('a');
    const second = await once('a');
    expect(second.session).not.toBe(first.session);
    first.release();
    await settle();
    expect(endsOf(first)).toEqual([{ authorization: 'a' }]);
    expect(endsOf(second)).toEqual([]);
    expect(pool.size).toBe(1);
  });
});

test('a lease that is released twice is released once', async () => {
  const { shared, once, pool } = setUp(2);
  const [a, b] = await Promise.all([shared('a'), shared('a')]);
  a?.release();
  a?.release();
  await once('x');
  const waiting = once('y');
  // The other lease of the shared session is still held.
  expect(await isDone(waiting)).toBe(false);
  b?.release();
  expect(nameOf(await waiting)).toBe('y');
  expect(pool.size).toBe(2);
});

describe('at the limit', () => {
  test('the session that is idle for longest is ended', async () => {
    const { shared, pool } = setUp(2);
    const a = await shared('a');
    a.release();
    await settle();
    const b = await shared('b');
    b.release();
    await settle();
    (await shared('a')).release();
    await settle();
    const c = await shared('c');
    expect(nameOf(c)).toBe('c');
    await settle();
    expect(endsOf(b)).toEqual([{ authorization: 'b' }]);
    expect(endsOf(a)).toEqual([]);
    expect(pool.size).toBe(2);
  });

  test('the queue is served in the order of arrival, whatever is acquired', async () => {
    const { shared, exclusive, once, pool } = setUp(1);
    const inUse = await once('x');
    const order: string[] = [];
    const note = async (name: string, lease: Promise<Lease>) => {
      const got = await lease;
      order.push(name);
      await settle();
      got.release();
    };
    const all = [
      note('1', shared('a')),
      note('2', exclusive('b')),
      note('3', once('c')),
      note('4', shared('d')),
    ];
    await settle();
    expect(pool.queued).toBe(4);
    inUse.release();
    await Promise.all(all);
    expect(order).toEqual(['1', '2', '3', '4']);
    expect(pool.queued).toBe(0);
    expect(pool.size).toBe(1);
  });

  test('a new acquire does not overtake the queue', async () => {
    const { once } = setUp(1);
    const inUse = await once('x');
    const first = once('a');
    await settle();
    inUse.release();
    const second = once('b');
    const got = await first;
    expect(await isDone(second)).toBe(false);
    got.release();
    expect(nameOf(await second)).toBe('b');
  });

  test('the callers of one shared session are one entry of the queue', async () => {
    const { shared, once, pool } = setUp(1);
    const inUse = await once('x');
    const a = [shared('a'), shared('a'), shared('a')];
    await settle();
    expect(pool.queued).toBe(1);
    inUse.release();
    const leases = await Promise.all(a);
    expect(new Set(leases.map(({ session }) => session)).size).toBe(1);
  });

  test('a cancelled acquire is skipped, and opens no session', async () => {
    const { shared, once, handshakes, pool } = setUp(1);
    const inUse = await once('x');
    const leaving = [new AbortController(), new AbortController()];
    const cancelled = [shared('a', leaving[0]?.signal), once('b', leaving[1]?.signal)];
    const last = once('c');
    await settle();
    for (const controller of leaving) controller.abort(new Error('cancelled'));
    for (const lease of cancelled) await expect(lease).rejects.toThrow('cancelled');
    expect(pool.queued).toBe(1);
    inUse.release();
    expect(nameOf(await last)).toBe('c');
    expect(handshakes.map(({ name }) => name)).toEqual(['x', 'c']);
  });

  test('a cancelled acquire leaves the others of its shared session in the queue', async () => {
    const { shared, once, pool } = setUp(1);
    const inUse = await once('x');
    const controller = new AbortController();
    const leaving = shared('a', controller.signal);
    leaving.catch(() => {});
    const staying = shared('a');
    await settle();
    controller.abort();
    await settle();
    expect(pool.queued).toBe(1);
    inUse.release();
    expect(nameOf(await staying)).toBe('a');
  });

  test('an acquire that is cancelled during the handshake leaves the session to the next', async () => {
    const { exclusive, once, handshakes, opened, pool } = setUp(1, { byHand: true });
    const controller = new AbortController();
    const leaving = exclusive('a', controller.signal);
    await settle();
    const next = exclusive('a');
    controller.abort(new Error('cancelled'));
    await expect(leaving).rejects.toThrow('cancelled');
    handshakes[0]?.succeed();
    expect((await next).session).toBe(opened[0]);
    expect(handshakes).toHaveLength(1);
    (await next).release();

    const other = new AbortController();
    const alone = once('b', other.signal);
    await settle();
    other.abort(new Error('cancelled'));
    await expect(alone).rejects.toThrow('cancelled');
    handshakes[1]?.succeed();
    await settle();
    expect(opened[1]?.ends).toHaveLength(1);
    expect(pool.size).toBe(0);
  });

  test('a failed handshake lets the next entry of the queue open', async () => {
    const { once, handshakes, pool } = setUp(1, { byHand: true });
    const first = once('a');
    const second = once('b');
    await settle();
    handshakes[0]?.fail(new Error('no'));
    await expect(first).rejects.toThrow('no');
    await settle();
    handshakes[1]?.succeed();
    expect(nameOf(await second)).toBe('b');
    expect(pool.size).toBe(1);
  });

  test('a parked call frees room for others', async () => {
    const { exclusive, pool } = setUp(1);
    const parked = await exclusive('a');
    const next = exclusive('b');
    expect(await isDone(next)).toBe(false);
    parked.park();
    const got = await next;
    expect(nameOf(got)).toBe('b');
    parked.unpark();
    parked.release();
    got.release();
    await settle();
    expect(pool.size).toBe(1);
  });

  test('the count stays right while acquires succeed, fail and are cancelled at random', async () => {
    const max = 3;
    const { shared, exclusive, once, pool, handshakes, opened } = setUp(max, { byHand: true });
    let seed = 42;
    const random = (n: number) => {
      seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
      return seed % n;
    };
    const ticking = setInterval(() => {
      for (const { succeed, fail } of handshakes.splice(0)) {
        if (random(5) === 0) fail(new Error('no'));
        else succeed();
      }
    }, 1);
    let most = 0;
    const one = async () => {
      const controller = new AbortController();
      const acquire = [shared, exclusive, once][random(3)] as typeof shared;
      const cancel = random(4) === 0 ? setTimeout(() => controller.abort(), random(10)) : undefined;
      try {
        const lease = await acquire(`k${random(5)}`, controller.signal);
        most = Math.max(most, pool.size);
        await new Promise((resolve) => setTimeout(resolve, random(5)));
        lease.release();
      } catch {
        // Failed, or cancelled.
      } finally {
        clearTimeout(cancel);
      }
    };
    await Promise.all(Array.from({ length: 300 }, one));
    clearInterval(ticking);
    for (const { fail } of handshakes.splice(0)) fail(new Error('no'));
    await settle();
    expect(most).toBeLessThanOrEqual(max);
    expect(pool.queued).toBe(0);
    await pool.close();
    expect(pool.size).toBe(0);
    expect(opened.every(({ ends }) => ends.length <= 1)).toBe(true);
    expect(opened.filter(({ ends }) => ends.length === 0)).toEqual([]);
  });
});

test('sessions unused for the idle time are ended, and no others', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] });
  try {
    const { shared, pool } = setUp(10, { idleMs: 10_000 });
    const used = await shared('used');
    const idle = await shared('idle');
    const lost = await shared('lost');
    idle.release();
    (lost.session as unknown as FakeSession).lost = true;
    lost.release();
    vi.advanceTimersByTime(9_000);
    (await shared('late')).release();
    vi.advanceTimersByTime(6_000);
    await settle();
    expect(endsOf(idle)).toEqual([{ authorization: 'idle' }]);
    expect(endsOf(used)).toEqual([]);
    expect(endsOf(lost)).toEqual([]);
    expect(pool.size).toBe(2);
    vi.advanceTimersByTime(10_000);
    await settle();
    expect(pool.size).toBe(1);
  } finally {
    vi.useRealTimers();
  }
});

test('closing ends all sessions and waits for that, and rejects pending and later acquires', async () => {
  const { shared, once, pool, opened } = setUp(2);
  const lease = await shared('a');
  await once('b');
  const waiting = once('c');
  const refused = expect(waiting).rejects.toThrow('shutting down');
  await settle();
  let ended = false;
  (lease.session as unknown as FakeSession).end = async () => {
    await settle();
    ended = true;
  };
  await pool.close();
  await refused;
  expect(ended).toBe(true);
  expect(opened[1]?.ends).toHaveLength(1);
  await expect(shared('d')).rejects.toThrow('shutting down');
});

describe('one principal', () => {
  const principalOf = (key: string) => key.charAt(0) as Principal;

  test('has half of the sessions at most; another gets one at once', async () => {
    const { pool, once } = setUp(4, { principalOf });
    const own = [await once('a1'), await once('a2')];
    const third = once('a3');
    const fourth = once('a4');
    expect(await isDone(third)).toBe(false);
    const others = await once('b1');
    expect(nameOf(others)).toBe('b1');
    own[0]?.release();
    expect(nameOf(await third)).toBe('a3');
    expect(await isDone(fourth)).toBe(false);
    expect(pool.queued).toBe(1);
  });

  test('gives up idle sessions of its own for more', async () => {
    const { shared, once, opened } = setUp(4, { principalOf });
    (await shared('a1')).release();
    await once('a2');
    await once('a3');
    expect(opened.find(({ name }) => name === 'a1')?.ends).toHaveLength(1);
  });

  test('has no more handshakes under way than sessions, so that others can do theirs', async () => {
    const { once, handshakes } = setUp(4, { principalOf, byHand: true });
    for (let i = 0; i < 10; i++) void once(`a${i}`).catch(() => {});
    void once('b').catch(() => {});
    await settle();
    expect(handshakes.map(({ name }) => name)).toEqual(['a0', 'a1', 'b']);
  });
});

describe('calls that wait for an exclusive session', () => {
  test('take one that becomes free before theirs is open', async () => {
    const { exclusive, handshakes, opened } = setUp(10, { byHand: true });
    const first = exclusive('a');
    await settle();
    handshakes[0]?.succeed();
    const lease = await first;
    const second = exclusive('a');
    await settle();
    expect(handshakes).toHaveLength(2);
    lease.release();
    expect((await second).session).toBe(opened[0]);
    // The one that was opened in vain serves the next call.
    handshakes[1]?.succeed();
    await settle();
    expect((await exclusive('a')).session).toBe(opened[1]);
    expect(handshakes).toHaveLength(2);
  });

  test('have no more sessions opened at once than the limit, and each is served in the order of arrival', async () => {
    const { exclusive, handshakes } = setUp(10, { byHand: true, maxOpening: 2 });
    const order: number[] = [];
    const calls = [0, 1, 2, 3, 4].map(async (index) => {
      const lease = await exclusive('a');
      order.push(index);
      lease.release();
    });
    await settle();
    expect(handshakes).toHaveLength(2);
    handshakes[1]?.succeed();
    await Promise.all(calls);
    expect(order).toEqual([0, 1, 2, 3, 4]);
    expect(handshakes.length).toBeLessThanOrEqual(3);
  });

  test('fail one by one where sessions cannot be opened', async () => {
    const { exclusive, handshakes } = setUp(10, { byHand: true, maxOpening: 1 });
    const calls = Promise.allSettled([exclusive('a'), exclusive('a')]);
    await settle();
    handshakes[0]?.fail(new Error('one'));
    await settle();
    handshakes[1]?.fail(new Error('two'));
    expect(await calls).toMatchObject([{ reason: { message: 'one' } }, { reason: { message: 'two' } }]);
  });

  test('leave nothing behind when their clients leave', async () => {
    const { exclusive, handshakes, pool } = setUp(1, { byHand: true });
    const first = exclusive('a');
    await settle();
    handshakes[0]?.succeed();
    const lease = await first;
    const controller = new AbortController();
    const second = exclusive('b', controller.signal);
    const refused = expect(second).rejects.toThrow();
    await settle();
    expect(pool.queued).toBe(1);
    controller.abort(new Error('left'));
    await refused;
    expect(pool.queued).toBe(0);
    lease.release();
    expect(handshakes).toHaveLength(1);
  });
});
