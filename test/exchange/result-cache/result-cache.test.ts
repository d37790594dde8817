import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Caller } from '../../../src/exchange/caller.js';
import { listChange, resourceUpdate } from '../../../src/exchange/changes/change.js';
import type { Channel } from '../../../src/exchange/channel.js';
import { readCapabilities } from '../../../src/exchange/client-capabilities.js';
import { principalOf } from '../../../src/exchange/credentials.js';
import { ExchangeError } from '../../../src/exchange/errors.js';
import { Exchange } from '../../../src/exchange/exchange.js';
import { type Outcome, ownError, type ResultOutcome } from '../../../src/exchange/outcome.js';
import { cacheKey } from '../../../src/exchange/result-cache/cache-key.js';
import type { Freshness } from '../../../src/exchange/result-cache/cached-result.js';
import { ResultCache } from '../../../src/exchange/result-cache/result-cache.js';
import { openResultStore } from '../../../src/exchange/result-cache/result-store.js';
import { getMember } from '../../../src/jsonrpc/index.js';
import { resultOutcome, scanned } from '../../support/json-node.js';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const CHANNEL = { ask: () => new Promise(() => {}) } as unknown as Channel;

interface Asked extends Partial<Omit<Caller, 'capabilities'>> {
  readonly capabilities?: string;
  readonly authorization?: string;
  readonly method?: string;
  readonly params?: string;
  readonly progressToken?: string;
}

function exchange(asked: Asked = {}): Exchange {
  const {
    method = 'tools/list',
    params = '{}',
    progressToken,
    capabilities = '{}',
    authorization,
    ...caller
  } = asked;
  const { bytes, node } = scanned(params);
  const uri = /"uri":"([^"]*)"/.exec(params)?.[1];
  return new Exchange(
    {
      id: '1' as never,
      method,
      params: { bytes, node, meta: getMember(bytes, node, '_meta'), envelopeKeys: [] },
      name: uri,
      progressToken,
      resumes: false,
      raw: undefined,
      paramHeaders: [],
    },
    {
      era: 'modern',
      revision: '2026-07-28',
      principal: principalOf(authorization),
      clientInfo: '{"name":"c"}',
      capabilities: readCapabilities(capabilities),
      neutralCapabilities: readCapabilities(capabilities),
      logLevel: undefined,
      forwarded: authorization === undefined ? {} : { authorization },
      session: undefined,
      ...caller,
    },
    CHANNEL,
  );
}

const MINUTE: Freshness = { ttlMs: 60_000, hintMs: 60_000, shared: false };
const list = (text: string, freshness: Freshness | undefined = MINUTE): ResultOutcome =>
  resultOutcome(`{"n":"${text}"}`, { freshness });
const textOf = (outcome: Outcome) =>
  outcome.type === 'error' ? `error ${outcome.message}` : JSON.parse(outcome.bytes.toString()).n;

function start({ store = openResultStore(1_000_000), name = '/a', staleIfErrorMs = 0 } = {}) {
  const cache = new ResultCache({ store, name, staleIfErrorMs });
  let n = 0;
  /** Asks, and has a new answer at hand each time. */
  const ask = async (asked?: Asked, answer?: () => Promise<Outcome> | Outcome) =>
    textOf(
      await cache.through(exchange(asked), 'modern', async () => {
        n += 1;
        return answer === undefined ? list(String(n)) : answer();
      }),
    );
  return { cache, ask, asked: () => n };
}

describe('what depends on something else has another key', () => {
  const keyOf = (asked: Asked, backendEra: 'legacy' | 'modern' = 'modern') =>
    cacheKey(exchange(asked), backendEra);
  const base = keyOf({});

  test.each([
    [{ method: 'prompts/list' }],
    [{ params: '{"cursor":"a"}' }],
    [{ capabilities: '{"roots":{}}' }],
    [{ era: 'legacy' as const }],
    [{ revision: '2027-01-01' }],
  ])('for everybody: %j', (asked) => {
    expect(keyOf(asked)?.own).not.toBe(base?.own);
    expect(keyOf(asked)?.shared).not.toBe(base?.shared);
  });

  test('for the caller alone: its credential and its name', () => {
    expect(keyOf({ clientInfo: '{"name":"d"}' })?.own).not.toBe(base?.own);
    expect(keyOf({ clientInfo: '{"name":"d"}' })?.shared).toBe(base?.shared);
    expect(keyOf({ authorization: 'a' })?.own).not.toBe(keyOf({ authorization: 'b' })?.own);
    expect(keyOf({ authorization: 'a' })?.shared).toBeUndefined();
  });

  test('and what does not has the same', () => {
    expect(keyOf({ params: '{"_meta":{"x":1}}' })).toEqual(base);
    expect(keyOf({ capabilities: '{ }' })).toEqual(base);
    expect(keyOf({ traceparent: 'x' } as Asked)).toEqual(base);
  });

  test.each([
    [{ method: 'tools/call' }],
    [{ method: 'server/discover' }],
    [{ progressToken: '0' }],
    [{ logLevel: 'info' as const }],
    [{ method: 'resources/read', params: '{"uri":"a","requestState":""}' }],
    [{ method: 'resources/read', params: '{"uri":"a","input\\u0052esponses":null}' }],
    [{ params: `{"cursor":"${'x'.repeat(3_000)}"}` }],
  ])('%j is never kept', (asked) => {
    expect(keyOf(asked)).toBeUndefined();
  });

  test('a uri with the words of a retry in it is none', () => {
    expect(keyOf({ method: 'resources/read', params: '{"uri":"x:\\"requestState\\""}' })).toBeDefined();
  });

  test('sessions of legacy clients on legacy backends keep nothing', () => {
    expect(keyOf({ era: 'legacy' }, 'legacy')).toBeUndefined();
    expect(keyOf({ era: 'legacy' }, 'modern')).toBeDefined();
    expect(keyOf({}, 'legacy')).toBeDefined();
  });
});

test('a result is kept for its time, and its age is taken off what clients are told', async () => {
  const { cache, ask } = start();
  expect(await ask()).toBe('1');
  await vi.advanceTimersByTimeAsync(59_000);
  const { kept } = (await cache.through(exchange(), 'modern', () =>
    Promise.reject(new Error('asked')),
  )) as ResultOutcome;
  expect(kept?.hintMs).toBe(1_000);
  await vi.advanceTimersByTimeAsync(1_000);
  expect(kept?.hintMs).toBe(0);
  expect(await ask()).toBe('2');
  expect(cache.counts).toMatchObject({ hits: 1, misses: 2 });
});

test.each([
  [undefined],
  [{ ...MINUTE, ttlMs: 0 }],
  [{ ...MINUTE, ttlMs: -1 }],
  [{ ...MINUTE, watch: { live: false } }],
])('a result with the freshness %j is not served again', async (freshness) => {
  const { ask } = start();
  const answer = () => list('x', freshness as Freshness);
  await ask({}, () => ({ ...answer(), freshness: freshness as Freshness }));
  expect(await ask()).toBe('2');
});

test('a result is good only while what it rests on is', async () => {
  const { ask } = start();
  const watch = { live: true };
  await ask({}, () => list('watched', { ...MINUTE, watch }));
  expect(await ask()).toBe('watched');
  watch.live = false;
  expect(await ask()).toBe('2');
});

test('a shared result is for all who show no credential, and for no one who does', async () => {
  const { ask } = start();
  const shared = () => list('shared', { ...MINUTE, shared: true });
  await ask({}, shared);
  expect(await ask({ clientInfo: undefined })).toBe('shared');
  expect(await ask({ authorization: 'a' })).toBe('2');
  expect(await ask({ capabilities: '{"roots":{}}' })).toBe('3');
});

test('entries are bounded in number and bytes', async () => {
  const store = openResultStore(1_000_000, 2);
  const few = start({ store });
  for (const cursor of ['a', 'b', 'a', 'c', 'a', 'b']) await few.ask({ params: `{"cursor":"${cursor}"}` });
  expect(store.size).toBe(2);
  expect(few.asked()).toBe(4);
  const limited = openResultStore(40_000);
  const small = start({ store: limited });
  const big = () => list('x'.repeat(10_000));
  for (const cursor of ['a', 'b']) await small.ask({ params: `{"cursor":"${cursor}"}` }, big);
  expect(limited.size).toBe(1);
  await small.ask({ params: '{"cursor":"c"}' }, () => list('x'.repeat(50_000)));
  expect(await small.ask({ params: '{"cursor":"c"}' })).toBe('4');
});

test('a change drops what it made old, and nothing else', async () => {
  const { cache, ask, asked } = start();
  const read = (uri: string) => ask({ method: 'resources/read', params: `{"uri":"${uri}"}` });
  const all = async () => {
    const before = asked();
    for (const method of ['tools/list', 'prompts/list', 'resources/list', 'resources/templates/list'])
      await ask({ method });
    for (const uri of ['x:/a', 'x:/a/b', 'x:/c']) await read(uri);
    return asked() - before;
  };
  expect(await all()).toBe(7);
  for (const [change, dropped] of [
    [listChange('toolsListChanged'), 1],
    [listChange('promptsListChanged'), 1],
    [listChange('resourcesListChanged'), 2],
    [resourceUpdate('x:/a'), 2],
    [resourceUpdate('x:/a/b/c'), 2],
    [resourceUpdate('x:/c'), 1],
    [resourceUpdate('x:/none'), 0],
    [resourceUpdate(undefined), 3],
  ] as const) {
    cache.invalidate(change);
    expect([change, await all()]).toEqual([change, dropped]);
  }
  expect(cache.counts.invalidations).toBe(12);
});

describe('while a request is in flight', () => {
  function held() {
    let settle!: { resolve(outcome: Outcome): void; reject(error: Error): void };
    const answer = new Promise<Outcome>((resolve, reject) => {
      settle = { resolve, reject };
    });
    return { answer: () => answer, ...settle };
  }

  test('equal ones wait for it, others do not', async () => {
    const { cache, ask, asked } = start();
    const { answer, resolve } = held();
    const answers = [ask({}, answer), ask(), ask(), ask({ authorization: 'a' })];
    await vi.advanceTimersByTimeAsync(0);
    expect(asked()).toBe(2);
    resolve(list('one', undefined));
    expect(await Promise.all(answers)).toEqual(['one', 'one', 'one', '2']);
    expect(cache.counts).toMatchObject({ misses: 2, joined: 2 });
  });

  test('each has edits of its own', async () => {
    const { cache } = start();
    const { answer, resolve } = held();
    const outcomes = Promise.all([1, 2, 3].map(() => cache.through(exchange(), 'modern', answer)));
    await vi.advanceTimersByTimeAsync(0);
    resolve(resultOutcome('{"n":"x"}'));
    const [one, two, three] = (await outcomes) as ResultOutcome[];
    one?.edits.set('a', '1');
    expect([two?.edits.size, three?.edits.size]).toEqual([0, 0]);
    expect(two?.edits).not.toBe(three?.edits);
  });

  test("its error is everybody's, thrown or answered", async () => {
    for (const fail of ['answered', 'thrown']) {
      const { ask, asked } = start();
      const { answer, resolve, reject } = held();
      const answers = Promise.allSettled([ask({}, answer), ask(), ask()]);
      await vi.advanceTimersByTimeAsync(0);
      const outcome = ownError({ code: -32603, message: 'No' });
      if (fail === 'answered') resolve(outcome);
      else reject(new ExchangeError(outcome));
      for (const settled of await answers)
        expect(settled.status === 'fulfilled' ? settled.value : `error ${settled.reason.message}`).toBe(
          'error No',
        );
      expect(asked()).toBe(1);
    }
  });

  test('a change makes later ones ask anew, and what was asked before is not kept', async () => {
    const { cache, ask, asked } = start();
    const first = held();
    const before = ask({}, first.answer);
    cache.invalidate(listChange('promptsListChanged'));
    const joined = ask();
    cache.invalidate(listChange('toolsListChanged'));
    expect(await ask()).toBe('2');
    first.resolve(list('old'));
    expect(await Promise.all([before, joined])).toEqual(['old', 'old']);
    expect(await ask()).toBe('2');
    expect(asked()).toBe(2);
  });

  test('the end of its client makes the next one ask for all', async () => {
    const { cache, ask, asked } = start();
    const leaving = exchange();
    const first = held();
    const gone = cache.through(leaving, 'modern', first.answer);
    gone.catch(() => {});
    const second = held();
    const others = [ask({}, second.answer), ask(), ask()];
    await vi.advanceTimersByTimeAsync(0);
    expect(asked()).toBe(0);
    leaving.cancel('gone');
    first.reject(new Error('cancelled'));
    await vi.advanceTimersByTimeAsync(0);
    expect(asked()).toBe(1);
    second.resolve(list('for all'));
    expect(await Promise.all(others)).toEqual(['for all', 'for all', 'for all']);
  });

  test('who waits for it and is cancelled waits no longer', async () => {
    const { cache, ask } = start();
    const { answer, resolve } = held();
    const first = ask({}, answer);
    const waiting = exchange();
    const waits = cache.through(waiting, 'modern', answer);
    await vi.advanceTimersByTimeAsync(0);
    waiting.cancel('enough');
    await expect(waits).rejects.toThrow('enough');
    resolve(list('x'));
    expect(await first).toBe('x');
  });

  test('nobody waits for one whose client is asked something, and its result is not kept', async () => {
    const { cache, ask, asked } = start();
    const { answer, resolve } = held();
    const asking = exchange();
    const first = cache.through(asking, 'modern', answer);
    const others = [ask(), ask()];
    await vi.advanceTimersByTimeAsync(0);
    expect(asked()).toBe(0);
    void asking.ask({} as never);
    expect((await Promise.all(others)).sort()).toEqual(['1', '2']);
    resolve(list('personal'));
    expect(textOf(await first)).toBe('personal');
    cache.invalidate(listChange('toolsListChanged'));
    expect(await ask()).toBe('3');
  });

  test('a result that is meant for one request is given to no other', async () => {
    const { ask, asked } = start();
    const { answer, resolve } = held();
    const answers = [ask({}, answer), ask()];
    await vi.advanceTimersByTimeAsync(0);
    resolve({ ...list('questions'), personal: true });
    expect(await Promise.all(answers)).toEqual(['questions', '2']);
    expect(asked()).toBe(2);
  });
});

test('what is past its time stands in for as long as is allowed', async () => {
  const { cache, ask } = start({ staleIfErrorMs: 10_000 });
  await ask();
  await vi.advanceTimersByTimeAsync(70_000);
  const stale = cache.stale(exchange());
  expect(stale?.kept?.hintMs).toBe(0);
  expect(cache.stale(exchange({ authorization: 'a' }))).toBeUndefined();
  await vi.advanceTimersByTimeAsync(1);
  expect(cache.stale(exchange())).toBeUndefined();
  expect(cache.counts.stale).toBe(1);
  const none = start();
  await none.ask();
  expect(none.cache.stale(exchange())).toBeUndefined();
});

describe('caches that share a store', () => {
  test('share its bound', async () => {
    const store = openResultStore(100_000);
    const first = start({ store, name: '/a' });
    const second = start({ store, name: '/b' });
    const large = (): Outcome => list('x'.repeat(10_000));
    for (let i = 0; i < 10; i++) {
      await first.ask({ params: `{"cursor":"${i}"}` }, large);
      await second.ask({ params: `{"cursor":"${i}"}` }, large);
    }
    expect(store.calculatedSize).toBeLessThanOrEqual(100_000);
  });

  test('know and forget their own results alone', async () => {
    const store = openResultStore(100_000);
    const first = start({ store, name: '/a' });
    const second = start({ store, name: '/b' });
    await first.ask();
    await second.ask();
    expect([first.asked(), second.asked()]).toEqual([1, 1]);
    first.cache.invalidate(listChange('toolsListChanged'));
    await first.ask();
    await second.ask();
    expect([first.asked(), second.asked()]).toEqual([2, 1]);
  });

  test('weigh keys as well as results', async () => {
    const store = openResultStore(200_000);
    const { ask } = start({ store });
    for (let i = 0; i < 100; i++) await ask({ params: `{"cursor":"${i}${'c'.repeat(2_000)}"}` });
    expect(store.size).toBeLessThan(70);
  });
});
