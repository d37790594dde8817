import { expect, test } from 'vitest';
import { ResponseQueue } from '../../../../src/eras/legacy/backend/response-queue.js';
import { deferred } from '../../../../src/exchange/utils/deferred.js';

/** Lets settled promises run their callbacks. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

test('sends 64 responses at a time and further ones in order, and drops those beyond 1,024 that wait', async () => {
  const queue = new ResponseQueue();
  const sending: { name: number; done: () => void }[] = [];
  const sent: number[] = [];
  for (let name = 0; name < 64 + 1_024 + 1; name++) {
    const reply = deferred<number>();
    queue.push(
      () => {
        sending.push({ name, done: () => reply.resolve(name) });
        return reply.promise;
      },
      (result) => sent.push(result),
    );
  }
  expect(sending).toHaveLength(64);
  sending[0]?.done();
  await settle();
  expect(sent).toEqual([0]);
  expect(sending.at(-1)?.name).toBe(64);
  for (let i = 1; i < sending.length; i++) {
    sending[i]?.done();
    await settle();
  }
  expect(sent).toEqual(Array.from({ length: 64 + 1_024 }, (_, name) => name));
});
