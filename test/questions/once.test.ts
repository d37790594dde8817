import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Loose } from '../support/net.js';
import { asking, startV1 } from '../support/peers/index.js';
import { modern } from '../support/raw.js';
import { useVirtualTime } from '../support/virtual-time.js';
import { ALL_CAPABILITIES, type Rig, responsesTo, startRig, textOf } from './rig.js';

useVirtualTime();

const { form } = asking;

describe.each([
  ['on sessions that calls of a principal share', 'principal'],
  ['on a session for each call', 'call'],
])('a tool of a legacy server that asks three times, %s', (_which, isolation) => {
  let rig: Rig;
  beforeAll(async () => {
    rig = await startRig(() => startV1(), { sessions: { isolation } });
  });
  afterAll(() => rig?.close());

  test('runs once however often and in however many copies the client tries again', async () => {
    const params = {
      name: 'ask',
      arguments: { rounds: [{ a: form('A?') }, { b: form('B?') }, { c: form('C?') }] },
    };
    const send = async (more: Loose = {}) =>
      (await modern(rig.url, 'tools/call', { ...params, ...more }, { capabilities: ALL_CAPABILITIES })).json;
    let answer = await send();
    const spent: Loose[] = [];
    while (answer.result?.resultType === 'input_required') {
      const { requestState } = answer.result;
      // Nothing to say yet, then all that is asked, in four copies at once.
      const asked = await send({ requestState, inputResponses: {} });
      expect(asked.result.inputRequests).toEqual(answer.result.inputRequests);
      const retry = { requestState: asked.result.requestState, inputResponses: responsesTo(asked.result) };
      const copies = await Promise.all([send(retry), send(retry), send(retry), send(retry)]);
      for (const copy of copies) expect(copy.result).toEqual(copies[0].result);
      spent.push(retry);
      answer = copies[0];
    }
    expect(Object.keys(JSON.parse(textOf(answer.result)))).toEqual(['a', 'b', 'c']);
    // A client whose connection broke sends the same retry again, and gets the same response.
    const last = spent.at(-1) as Loose;
    expect((await send(last)).result).toEqual(answer.result);
    for (const retry of spent) {
      const other = { ...retry, inputResponses: { other: { action: 'decline' } } };
      expect((await send(other)).error.code).toBe(-32602);
    }
    expect(rig.peer.calls).toEqual([
      expect.objectContaining({ tool: 'ask', finished: true, cancelled: false }),
    ]);
    const asked = rig.recording.frames.filter(
      ({ by, message }) => by === 'backend' && message.method === 'elicitation/create',
    );
    const told = rig.recording.frames.filter(({ by, message }) => by === 'gateway' && message.result?.action);
    expect([asked.length, told.length]).toEqual([3, 3]);
    expect(rig.recording.violations).toEqual([]);
  });

  test('gives its session back, or ends it', async () => {
    await expect.poll(() => rig.peer.sessions()).toBe(isolation === 'call' ? 0 : 1);
  });
});
