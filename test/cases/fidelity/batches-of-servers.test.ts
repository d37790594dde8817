import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Rig, startCell } from '../../support/cells.js';
import type { Step } from '../../support/misbehave.js';
import { type Loose, until } from '../../support/net.js';

/** Servers of 2025-03-26 may put several messages into one body or one event. */
const HEADERS = ({ session }: Step) => ({ 'mcp-session-id': session ?? '' });
const WAYS: Record<string, (step: Step, messages: Loose[]) => void> = {
  'a JSON body': (step, messages) => step.sendJson(messages, 200, HEADERS(step)),
  'one event': (step, messages) => {
    const events = step.stream(HEADERS(step));
    events.write(`data: ${JSON.stringify(messages)}\n\n`);
    events.end();
  },
  'several events': (step, messages) => {
    const events = step.stream(HEADERS(step));
    events.write(`data: ${JSON.stringify(messages.slice(0, 1))}\n\n`);
    events.write(`data: ${JSON.stringify(messages.slice(1))}\n\n`);
    events.end();
  },
};
const progress = (step: Step, n: number) => ({
  jsonrpc: '2.0',
  method: 'notifications/progress',
  params: { progressToken: step.params._meta.progressToken, progress: n },
});
const answer = (step: Step, text = 'done') => step.frame({ result: { content: [{ type: 'text', text }] } });
const params = { name: 'echo', arguments: {}, _meta: { progressToken: 'mine' } };

describe.each(['LL', 'ML'] as const)('%s: a server that answers with batches', (cell) => {
  let rig: Rig;
  beforeAll(async () => {
    rig = await startCell(cell, {
      script: { version: '2025-03-26' },
      handshake: { version: '2025-03-26', capabilities: { sampling: {} } },
    });
    await rig.call('tools/list');
  });
  afterAll(() => rig.close());

  test.each(Object.keys(WAYS))('in %s is understood', async (way) => {
    rig.on('tools/call', (step) => {
      WAYS[way]?.(step, [progress(step, 1), progress(step, 2), answer(step)]);
      return undefined;
    });
    const { json, messages } = await rig.call('tools/call', params);
    expect(json.result.content[0].text).toBe('done');
    expect(messages.map((message) => message.params)).toEqual([
      { progressToken: 'mine', progress: 1 },
      { progressToken: 'mine', progress: 2 },
    ]);
  });

  test.each(Object.keys(WAYS))('in %s, also when the answer comes first', async (way) => {
    rig.on('tools/call', (step) => {
      WAYS[way]?.(step, [answer(step), progress(step, 1)]);
      return undefined;
    });
    expect((await rig.call('tools/call', params)).json.result.content[0].text).toBe('done');
  });

  test('is never sent a batch itself', () => {
    for (const { json } of rig.backend.requests) expect(Array.isArray(json)).toBe(false);
  });
});

describe('LL: a client of 2025-03-26', () => {
  let rig: Rig;
  beforeAll(async () => {
    rig = await startCell('LL', {
      script: { version: '2025-03-26', capabilities: { tools: { listChanged: true } } },
      handshake: { version: '2025-03-26', capabilities: { sampling: {} } },
    });
  });
  afterAll(() => rig.close());

  test('hears each message of a batch on the stream of its session', async () => {
    const session = await rig.session();
    const stream = await session.listen();
    const getStream = await until(() => rig.backend.streams.at(-1), 'the stream of the backend');
    const changed = (n: number) => ({
      jsonrpc: '2.0',
      method: 'notifications/tools/list_changed',
      params: { n },
    });
    getStream.stream.write(`data: ${JSON.stringify([changed(1), changed(2)])}\n\n`);
    expect([(await stream.next()).json, (await stream.next()).json]).toEqual([changed(1), changed(2)]);
    stream.abort();
  });

  test('is asked each question of a batch, and may answer them in one', async () => {
    const ask = (id: number) => ({
      jsonrpc: '2.0',
      id,
      method: 'sampling/createMessage',
      params: { messages: [], maxTokens: id },
    });
    rig.on('tools/call', async (step) => {
      const events = step.stream(HEADERS(step));
      events.write(`data: ${JSON.stringify([ask(71), ask(72)])}\n\n`);
      const answers = await until(() => {
        const given = rig.backend.requests.filter(({ json }) => json?.result?.model !== undefined);
        return given.length === 2 ? given : undefined;
      }, 'both answers');
      events.event(answer(step, answers.map(({ json }) => json.id).join()));
      events.end();
      return undefined;
    });
    const session = await rig.session();
    const stream = await session.open('tools/call', params);
    const questions = [(await stream.next()).json, (await stream.next()).json];
    expect(questions).toEqual([ask(71), ask(72)]);
    const result = { role: 'assistant', model: 'm', content: { type: 'text', text: 'a' } };
    const { status, json } = await session.post([
      ...questions.map(({ id }) => ({ jsonrpc: '2.0', id, result })),
      { jsonrpc: '2.0', id: 'ping', method: 'ping' },
    ]);
    expect([status, json]).toEqual([200, [{ jsonrpc: '2.0', id: 'ping', result: {} }]]);
    expect((await stream.done).json.result.content[0].text.split(',').sort()).toEqual(['71', '72']);
  });
});
