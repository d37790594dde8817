import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../support/gateway.js';
import { until } from '../support/net.js';
import {
  type AskingBackend,
  accept,
  ModernCaller,
  readQuestions,
  startAskingBackend,
  text,
  toolText,
} from './scripted.js';

describe('a retry whose response did not reach its client', () => {
  let backend: AskingBackend;
  let gateway: TestGateway;
  beforeAll(async () => {
    backend = await startAskingBackend();
    gateway = await startGateway({ '/mcp': { backend: { url: backend.url } } }, { limits: { rounds: 3 } });
  });
  afterAll(async () => {
    await gateway.close();
    await backend.close();
  });

  const begin = async () => {
    const caller = new ModernCaller(gateway.url(), { key: 1 });
    return { caller, round: await caller.asked() };
  };

  test('is given the same result again, and the tool runs once', async () => {
    backend.tool(async ({ elicit }) => text(`said ${await elicit('what?')}`));
    const { caller, round } = await begin();
    const runs = backend.calls.length;
    const answers = { [round.key]: accept('yes') };
    const first = await caller.retry(round.state, answers);
    const again = await caller.retry(round.state, answers);
    expect(toolText(again)).toBe('said yes');
    expect(again.json.result).toEqual(first.json.result);
    expect(backend.calls).toHaveLength(runs);
  });

  test('is given the same error again', async () => {
    backend.tool(async ({ elicit, id, stream }) => {
      await elicit('what?');
      stream.event({ jsonrpc: '2.0', id, error: { code: -31000, message: 'broken' } });
      stream.end();
      return undefined;
    });
    const { caller, round } = await begin();
    const answers = { [round.key]: accept('yes') };
    const first = await caller.retry(round.state, answers);
    const again = await caller.retry(round.state, answers);
    expect(again.json.error).toEqual(first.json.error);
    expect(again.json.error.code).toBe(-31000);
  });

  test('is given the next round again', async () => {
    backend.tool(async ({ elicit }) => text(`${await elicit('one?')} ${await elicit('two?')}`));
    const { caller, round } = await begin();
    const answers = { [round.key]: accept('1') };
    const first = readQuestions(await caller.retry(round.state, answers));
    const again = readQuestions(await caller.retry(round.state, answers));
    expect(again.response.json.result).toEqual(first.response.json.result);
    expect(toolText(await caller.retry(again.state, { [again.key]: accept('2') }))).toBe('1 2');
  });

  test('a server that asks for ever is ended at limits.rounds, and the call cancelled there', async () => {
    let asked = 0;
    backend.tool(async ({ elicit }) => {
      for (;;) {
        asked++;
        await elicit(`again ${asked}?`);
      }
    });
    const { caller, round } = await begin();
    let response = await caller.retry(round.state, { [round.key]: accept('1') });
    for (let i = 2; response.json.result?.resultType === 'input_required'; i++) {
      const { state, key } = readQuestions(response);
      response = await caller.retry(state, { [key]: accept(`${i}`) });
    }
    expect(response.json.error.message).toContain('limits.rounds');
    expect(asked).toBe(4);
    await until(() => backend.cancels.length > 0);
  });
});
