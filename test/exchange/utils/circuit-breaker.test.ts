import { expect, test } from 'vitest';
import { badGateway } from '../../../src/exchange/errors.js';
import { CircuitBreaker } from '../../../src/exchange/utils/circuit-breaker.js';
import { sleep } from '../../support/net.js';
import { useVirtualTime } from '../../support/virtual-time.js';

useVirtualTime();

const LIMIT_MS = 40;
const PAUSE_MS = 150;

/** A backend that keeps callers waiting until they give up, answers, or refuses at once. */
function backend() {
  const breaker = new CircuitBreaker(LIMIT_MS, PAUSE_MS);
  const state = { mood: 'silent' as 'silent' | 'well' | 'refusing', asked: 0 };
  const ask = () =>
    breaker.wait(async () => {
      state.asked += 1;
      if (state.mood === 'silent') {
        await sleep(LIMIT_MS);
        throw badGateway('no answer', 504);
      }
      if (state.mood === 'refusing') throw badGateway('refused');
      return 'answer';
    });
  return { state, ask, fail: () => expect(ask()).rejects.toThrow() };
}

test('three wait in vain; the others are told the same at once, and nobody is asked', async () => {
  const { state, ask, fail } = backend();
  for (let i = 0; i < 3; i++) await fail();
  const begun = performance.now();
  for (let i = 0; i < 5; i++) await expect(ask()).rejects.toThrow('no answer');
  expect(performance.now() - begun).toBeLessThan(LIMIT_MS);
  expect(state.asked).toBe(3);
});

test('after a pause one tries again, and the others are told at once until it knows', async () => {
  const { state, ask, fail } = backend();
  for (let i = 0; i < 3; i++) await fail();
  await sleep(PAUSE_MS + 20);
  const trial = fail();
  await fail();
  expect(state.asked).toBe(4);
  await trial;
  await fail();
  expect(state.asked).toBe(4);
  state.mood = 'well';
  await sleep(PAUSE_MS + 20);
  expect(await ask()).toBe('answer');
  expect(await ask()).toBe('answer');
});

test('whatever comes quickly ends the wait: a refusal shows that somebody is there', async () => {
  const { state, fail } = backend();
  await fail();
  await fail();
  state.mood = 'refusing';
  await fail();
  state.mood = 'silent';
  await fail();
  await fail();
  expect(state.asked).toBe(5);
  await fail();
  await fail();
  expect(state.asked).toBe(6);
});
