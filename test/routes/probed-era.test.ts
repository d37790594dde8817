import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { ProbeFinding } from '../../src/eras/era.js';
import type { Caller } from '../../src/exchange/caller.js';
import { EXCHANGE_ERRORS, exchangeError } from '../../src/exchange/errors.js';
import type { Outbound } from '../../src/exchange/outbound.js';
import type { EraName } from '../../src/exchange/revision.js';
import { WrongEra } from '../../src/exchange/side-errors.js';
import { PinnedEra } from '../../src/routes/era-choice.js';
import type { Verdict } from '../../src/routes/era-verdict.js';
import { ProbedEra, type ProbedEraOptions } from '../../src/routes/probed-era.js';
import { BACKEND_ERRORS } from '../../src/upstream/backend-errors.js';

const REFUSED = exchangeError(BACKEND_ERRORS.ERAGATE_BACKEND_REFUSED, {
  route: '/mcp',
  answer: 'HTTP 400',
});

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] });
});
afterEach(() => {
  vi.useRealTimers();
});

const FINDINGS = {
  modern: { kind: 'spoken', reason: 'supports 2026-07-28' },
  legacy: { kind: 'not-spoken', reason: 'HTTP 404' },
  newer: { kind: 'no-common-version', reason: 'supports 2027-01-01, the gateway 2026-07-28' },
  refused: { kind: 'inconclusive', reason: 'HTTP 401', slow: false },
  silent: { kind: 'inconclusive', reason: 'no answer', slow: true },
  down: { kind: 'unreachable', reason: 'ECONNREFUSED' },
} as const satisfies Record<string, ProbeFinding>;
type Finding = keyof typeof FINDINGS;

/** What the legacy side says to a legacy client of a modern backend. */
type Leg = 'sessions' | 'no sessions' | 'wrong era' | 'broken' | 'challenge';

function setUp(findings: Finding[], options: Partial<ProbedEraOptions> = {}, leg: Leg = 'wrong era') {
  const probes: (string | undefined)[] = [];
  const verdicts: Verdict[] = [];
  let handshakes = 0;
  const legacy = {
    era: 'legacy',
    authenticate: async ({ session }: Caller) => {
      handshakes++;
      if (leg === 'wrong era') throw new WrongEra(REFUSED.outcome);
      if (leg === 'broken') throw REFUSED;
      if (leg === 'challenge') throw exchangeError(EXCHANGE_ERRORS.ERAGATE_UNAUTHORIZED, { route: '/mcp' });
      const backendSession = leg === 'sessions' ? { id: 's', revision: 'r', cookies: undefined } : undefined;
      if (session) session.bind({ backendSession, onListening() {}, notify() {}, end: async () => {} });
    },
    describe: async () => ({ era: 'legacy', sessions: leg === 'sessions' }),
  } as unknown as Outbound;
  const modern = { era: 'modern' } as unknown as Outbound;
  const backend = new ProbedEra({
    route: '/mcp',
    name: 'b',
    sides: [legacy, modern],
    leg: 'auto',
    probe: async ({ authorization }) => {
      probes.push(authorization);
      await Promise.resolve();
      return FINDINGS[findings.length > 1 ? (findings.shift() as Finding) : (findings[0] as Finding)];
    },
    onVerdict: (verdict) => verdicts.push(verdict),
    onAbsent: () => {},
    onFault: () => {},
    ...options,
  });
  const caller = (era: EraName, authorization?: string) =>
    ({
      era,
      forwarded: authorization === undefined ? {} : { authorization },
      session: era === 'legacy' ? { binding: undefined, bind() {} } : undefined,
    }) as unknown as Caller;
  return {
    backend,
    probes,
    verdicts,
    handshakes: () => handshakes,
    side: async (era: EraName = 'modern', authorization?: string) =>
      (await backend.outboundFor(caller(era, authorization))).era,
  };
}

describe('the side for a caller', () => {
  const M = 'modern';
  const L = 'legacy';
  test.each<[finding: Finding, modernClient: EraName, legacyClient: EraName]>([
    ['modern', M, M],
    ['legacy', L, L],
    ['refused', L, L],
    ['silent', L, L],
  ])('of a backend that is found %s', async (finding, modernClient, legacyClient) => {
    const { side } = setUp([finding]);
    expect(await side('modern')).toBe(modernClient);
    expect(await side('legacy')).toBe(legacyClient);
  });

  test.each<[leg: Leg, side: EraName, handshakes: number]>([
    ['sessions', L, 1],
    ['no sessions', M, 1],
    ['wrong era', M, 1],
    // Not known yet, so it is tried again.
    ['broken', M, 3],
  ])('of a modern backend for legacy clients, whose own leg has %s', async (leg, expected, count) => {
    const { side, handshakes } = setUp(['modern'], {}, leg);
    for (let i = 0; i < 3; i++) expect(await side('legacy')).toBe(expected);
    expect(await side('modern')).toBe(M);
    expect(handshakes()).toBe(count);
  });

  test('is the challenge of the legacy leg where there is one', async () => {
    const { side } = setUp(['modern'], {}, 'challenge');
    await expect(side('legacy')).rejects.toMatchObject({ outcome: { status: 401 } });
  });

  test.each<[setting: Partial<ProbedEraOptions>, side: EraName, probes: number]>([
    [{ leg: 'modern' }, M, 1],
    [{ leg: 'legacy' }, L, 1],
  ])('of a modern backend is set by %j', async (setting, expected, count) => {
    const { side, probes, handshakes } = setUp(['modern'], setting, 'sessions');
    for (const era of [M, L, M, L] as const) expect(await side(era)).toBe(expected);
    expect(probes).toHaveLength(count);
    expect(handshakes()).toBe(0);
  });

  test.each<[finding: Finding, status: number, detail: string, headers: unknown]>([
    [
      'newer',
      502,
      'no common protocol version with b: it supports 2027-01-01, the gateway 2026-07-28',
      undefined,
    ],
    ['down', 502, 'cannot reach b: ECONNREFUSED', { 'retry-after': '1' }],
  ])(
    'is an error where a backend is found %s, and asked for again',
    async (finding, status, detail, headers) => {
      const { side, probes } = setUp([finding, finding, 'modern']);
      for (let i = 0; i < 2; i++) {
        await expect(side()).rejects.toMatchObject({
          outcome: { status, message: expect.stringContaining('/mcp'), detail, headers },
        });
      }
      expect(await side()).toBe(M);
      expect(probes).toHaveLength(3);
    },
  );
});

test('an era that the configuration pins is the only one, whatever the backend says', () => {
  const side = { era: 'legacy' } as Outbound;
  const pinned = new PinnedEra(side);
  expect(pinned.outboundFor()).toBe(side);
  expect(pinned.contradicted()).toBe(false);
  expect(pinned.otherThan()).toBeUndefined();
});

describe('a verdict', () => {
  test('is found once by all who come at once, and told once', async () => {
    const { side, probes, verdicts, backend } = setUp(['modern']);
    backend.warmUp();
    const sides = await Promise.all(Array.from({ length: 10 }, () => side()));
    expect(new Set(sides)).toEqual(new Set(['modern']));
    expect(probes).toHaveLength(1);
    expect(verdicts).toEqual([expect.objectContaining({ era: 'modern', reason: 'supports 2026-07-28' })]);
    backend.warmUp();
    expect(probes).toHaveLength(1);
  });

  test('that is old serves until the new one is there', async () => {
    const { side, probes, verdicts } = setUp(['legacy', 'modern']);
    expect(await side()).toBe('legacy');
    vi.advanceTimersByTime(HOUR_MS - 1);
    await side();
    expect(probes).toHaveLength(1);
    vi.advanceTimersByTime(2);
    expect(await side()).toBe('legacy');
    await vi.waitFor(() => expect(verdicts).toHaveLength(2));
    expect(await side()).toBe('modern');
    expect(probes).toHaveLength(2);
  });

  test.each<Finding>(['refused', 'silent', 'down', 'newer'])(
    'that is old stands where the backend is found %s',
    async (finding) => {
      const { side, verdicts } = setUp(['modern', finding]);
      await side();
      vi.advanceTimersByTime(2 * HOUR_MS);
      for (let i = 0; i < 3; i++) expect(await side()).toBe('modern');
      expect(verdicts).toHaveLength(1);
    },
  );

  test('that is old is not asked for with every call while the backend says nothing of it', async () => {
    for (const finding of ['refused', 'silent'] as const) {
      const { side, probes } = setUp(['modern', finding]);
      await side();
      vi.advanceTimersByTime(HOUR_MS + 1);
      await side();
      await vi.waitFor(() => expect(probes).toHaveLength(2));
      await Promise.resolve();
      for (let i = 0; i < 10; i++) await side();
      expect(probes).toHaveLength(2);
      vi.advanceTimersByTime(MINUTE_MS + 1);
      await side();
      await vi.waitFor(() => expect(probes).toHaveLength(3));
    }
  });

  test('is not kept where nothing was proved, but for what took long to find out', async () => {
    const quick = setUp(['refused', 'modern']);
    expect(await quick.side()).toBe('legacy');
    expect(quick.verdicts).toEqual([]);
    expect(await quick.side()).toBe('modern');

    const slow = setUp(['silent', 'modern']);
    expect(await slow.side()).toBe('legacy');
    expect(slow.verdicts).toEqual([
      expect.objectContaining({ era: 'legacy', reason: 'unproved: no answer' }),
    ]);
    expect(await slow.side()).toBe('legacy');
    expect(slow.probes).toHaveLength(1);
    vi.advanceTimersByTime(MINUTE_MS + 1);
    await slow.side();
    await vi.waitFor(() => expect(slow.verdicts).toHaveLength(2));
    expect(await slow.side()).toBe('modern');
  });

  test('that was refused to one caller is asked for by another with its own credential', async () => {
    const { side, probes } = setUp(['refused', 'modern']);
    expect(await Promise.all([side('modern', 'bad'), side('modern', 'bad'), side('modern', 'good')])).toEqual(
      ['legacy', 'legacy', 'modern'],
    );
    expect(probes).toEqual(['bad', 'good']);
  });
});

describe('a verdict that is contradicted', () => {
  test('is found again, by the first of those who had the same answer', async () => {
    const { backend, side, probes, verdicts } = setUp(['legacy', 'modern']);
    await side();
    const { doubts } = backend;
    for (let i = 0; i < 5; i++) expect(backend.contradicted('legacy', doubts)).toBe(true);
    expect(await Promise.all([side(), side(), side()])).toEqual(['modern', 'modern', 'modern']);
    expect(probes).toHaveLength(2);
    expect(verdicts.map(({ era }) => era)).toEqual(['legacy', 'modern']);
    // One that comes late with an answer of then learns what has been found since.
    expect(backend.contradicted('legacy', doubts)).toBe(true);
    expect(await side()).toBe('modern');
    expect(probes).toHaveLength(2);
  });

  test('in vain is told to nobody, and not doubted again for a moment', async () => {
    const { backend, side, probes, verdicts } = setUp(['legacy']);
    await side();
    expect(backend.contradicted('legacy', backend.doubts)).toBe(true);
    expect(await side()).toBe('legacy');
    expect(backend.contradicted('legacy', backend.doubts)).toBe(false);
    expect(await side()).toBe('legacy');
    expect(probes).toHaveLength(2);
    expect(verdicts).toHaveLength(1);
    vi.advanceTimersByTime(1_001);
    expect(backend.contradicted('legacy', backend.doubts)).toBe(true);
  });

  test('may be contradicted again at once where it did change', async () => {
    const { backend, side } = setUp(['legacy', 'modern', 'legacy']);
    await side();
    for (const [said, next] of [
      ['legacy', 'modern'],
      ['modern', 'legacy'],
    ] as const) {
      expect(backend.contradicted(said, backend.doubts)).toBe(true);
      expect(await side()).toBe(next);
    }
  });

  test('by the legacy leg of a modern backend costs the leg, and not the verdict', async () => {
    const { backend, side, probes } = setUp(['modern'], {}, 'sessions');
    expect(await side('legacy')).toBe('legacy');
    expect(backend.contradicted('legacy', backend.doubts)).toBe(true);
    expect(await side('legacy')).toBe('modern');
    expect(probes).toHaveLength(1);
  });

  test('and cannot be found again is no verdict any more', async () => {
    const { backend, side } = setUp(['modern', 'refused', 'down', 'modern']);
    await side();
    backend.contradicted('modern', backend.doubts);
    expect(await side()).toBe('legacy');
    await expect(side()).rejects.toThrow('cannot reach');
    expect(await side()).toBe('modern');
  });
});
