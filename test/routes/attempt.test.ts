import { describe, expect, test } from 'vitest';
import type { Caller } from '../../src/exchange/caller.js';
import { ExchangeError } from '../../src/exchange/errors.js';
import type { CallRouting, Outbound } from '../../src/exchange/outbound.js';
import { type GatewayErrorOutcome, gatewayError } from '../../src/exchange/outcome.js';
import { OtherSide, WrongEra } from '../../src/exchange/side-errors.js';
import { attempt } from '../../src/routes/attempt.js';
import type { EraChoice } from '../../src/routes/era-choice.js';
import { BACKEND_ERRORS } from '../../src/upstream/backend-errors.js';
import { errorOutcome } from '../support/json-node.js';

const legacy = { era: 'legacy' } as Outbound;
const modern = { era: 'modern' } as Outbound;
const caller = {} as Caller;
const refusal = errorOutcome(-32602, { message: 'what the backend said' });

function refused(detail: string): GatewayErrorOutcome {
  const values = { route: '/mcp', answer: 'HTTP 400' };
  return gatewayError(BACKEND_ERRORS.ERAGATE_BACKEND_REFUSED, values, { detail });
}

/** A choice that begins with the modern side, and after a doubt gives `next`. */
function choiceOf(next: Outbound | Error, options: Partial<EraChoice> = {}) {
  const doubts: unknown[][] = [];
  const choice: EraChoice = {
    doubts: 7,
    outboundFor: () => {
      if (doubts.length === 0) return modern;
      if (next instanceof Error) throw next;
      return Promise.resolve(next);
    },
    otherThan: () => legacy,
    contradicted: (...said) => {
      doubts.push(said);
      return true;
    },
    cannotAsk() {},
    warmUp() {},
    ...options,
  };
  return { choice, doubts };
}

/** Work that fails on the modern side; notes where it was tried, and how. */
function failing(error: Error) {
  const tried: [string, CallRouting | undefined][] = [];
  const work = async (side: Outbound, routing?: CallRouting): Promise<string> => {
    tried.push([side.era, routing]);
    if (side === modern) throw error;
    return 'done';
  };
  return { tried, work };
}

describe('work on a backend', () => {
  test('is done on the side that is chosen, once', async () => {
    const { choice, doubts } = choiceOf(legacy);
    const { tried, work } = failing(new Error());
    expect(await attempt({ ...choice, outboundFor: () => legacy }, { caller }, work)).toBe('done');
    expect(tried).toEqual([['legacy', undefined]]);
    expect(doubts).toEqual([]);
  });

  test('is done again on the side that is found after a refusal of the era', async () => {
    const { choice, doubts } = choiceOf(legacy);
    const { tried, work } = failing(new WrongEra(refused('no session'), { proof: true }));
    expect(await attempt(choice, { caller }, work)).toBe('done');
    expect(tried).toEqual([
      ['modern', undefined],
      ['legacy', { viaOtherEra: false }],
    ]);
    expect(doubts).toEqual([['modern', 7, 'no session']]);
  });

  test('is done on the other side, without a doubt, where the backend refuses it on one alone', async () => {
    const { choice, doubts } = choiceOf(modern);
    const { tried, work } = failing(new OtherSide(refusal));
    expect(await attempt(choice, { caller }, work)).toBe('done');
    expect(tried.at(-1)).toEqual(['legacy', { viaOtherEra: true }]);
    expect(doubts).toEqual([]);
  });

  test('is not done again after any other error', async () => {
    const { choice } = choiceOf(legacy);
    const { tried, work } = failing(new RangeError('of its own'));
    await expect(attempt(choice, { caller }, work)).rejects.toThrow(RangeError);
    expect(tried).toHaveLength(1);
  });

  const meaning = new WrongEra(refused('refused'), { otherwise: refusal });
  const bare = new WrongEra(refused('refused'));
  const down = new ExchangeError(errorOutcome(-32000, { message: 'down' }));
  test.each<[string, Error, Outbound | Error, Partial<EraChoice>, string]>([
    ['the era proves right', meaning, modern, {}, 'what the backend said'],
    ['the era proves right, and nothing else was meant', bare, modern, {}, 'refused'],
    [
      'the choice is not to be doubted',
      meaning,
      legacy,
      { contradicted: () => false },
      'what the backend said',
    ],
    ['no era is found, and the refusal meant something', meaning, down, {}, 'what the backend said'],
    ['no era is found', bare, down, {}, 'down'],
    [
      'there is no other side',
      new OtherSide(refusal),
      legacy,
      { otherThan: () => undefined },
      'what the backend said',
    ],
  ])('fails with what the refusal meant where %s', async (_what, error, next, options, message) => {
    const { choice } = choiceOf(next, options);
    const { tried, work } = failing(error);
    await expect(attempt(choice, { caller }, work)).rejects.toThrow(message);
    expect(tried).toHaveLength(1);
  });
});
