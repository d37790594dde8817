import { expect, test } from 'vitest';
import { ALL_CAPABILITIES, person } from '../questions/rig.js';
import { type ClientKind, connect } from '../support/clients.js';
import { until } from '../support/net.js';
import { modern, openModern } from '../support/raw.js';
import { startRig, textOf } from './rig.js';

const backend = { era: 'legacy' };
const KINDS: readonly ClientKind[] = ['v1', 'v2 auto'];
const form = (message: string) => ({
  method: 'elicitation/create',
  params: { message, requestedSchema: { type: 'object', properties: { name: { type: 'string' } } } },
});

test.each(KINDS)(
  'concurrent calls of client %s each get the answer to their own server request',
  async (kind) => {
    const { url } = await startRig({ backend });
    const someone = person({
      form: ({ message }) => ({ action: 'accept', content: { name: `it is ${message}` } }),
    });
    const client = await connect(kind, url, { capabilities: ALL_CAPABILITIES, handlers: someone.handlers });
    const names = ['Ada', 'Alan', 'Grace', 'Edsger'];
    const answers = await Promise.all(names.map((name) => client.callTool('ask', form(name))));
    expect(answers.map((answer) => JSON.parse(textOf(answer)).content.name)).toEqual(
      names.map((name) => `it is ${name}`),
    );
    expect(client.errors).toEqual([]);
    await client.close();
  },
);

test('a server request of one caller never reaches another', async () => {
  const { url, started } = await startRig({ backend });
  const ask = async (who: string) => {
    const options = { capabilities: { elicitation: {} }, headers: { authorization: `Bearer ${who}` } };
    const params = { name: 'ask', arguments: form(who) };
    const { json } = await modern(url, 'tools/call', params, options);
    const [key = ''] = Object.keys(json.result.inputRequests);
    expect(json.result.inputRequests[key].params.message).toBe(who);
    const inputResponses = { [key]: { action: 'accept', content: { name: who } } };
    const { requestState } = json.result;
    const last = await modern(url, 'tools/call', { ...params, inputResponses, requestState }, options);
    return JSON.parse(textOf(last.json)).content.name;
  };
  expect(await Promise.all(['ada', 'alan', 'grace'].map(ask))).toEqual(['ada', 'alan', 'grace']);
  expect(started()).toHaveLength(3);
});

test('a call whose server request is not answered is cancelled at its process', async () => {
  const { url, received } = await startRig({ backend, route: { questions: { timeout: '500ms' } } });
  const stream = await openModern(
    url,
    'tools/call',
    { name: 'ask', arguments: { ...form('Ada'), goesOn: true } },
    { capabilities: { elicitation: {} } },
  );
  expect((await stream.done).json.result.resultType).toBe('input_required');
  await until(() => received('notifications/cancelled').length === 1, 'the cancellation');
  expect(received('notifications/cancelled')[0]?.params.requestId).toBe(received('tools/call')[0]?.id);
});

test.each(KINDS)(
  'a server request right after the handshake reaches client %s, or is answered for it',
  async (kind) => {
    const { url, roots } = await startRig({
      backend,
      server: { asksAtOnce: true },
      route: { questions: { roots: 'ask' } },
    });
    const someone = person();
    const client = await connect(kind, url, { capabilities: ALL_CAPABILITIES, handlers: someone.handlers });
    await client.callTool('echo');
    await until(() => roots().length > 0, 'the answer');
    expect(roots()[0]).toMatchObject({ roots: expect.any(Array) });
    await client.close();
  },
);

test('a server request that no client can answer is refused at once', async () => {
  const { url } = await startRig({ backend });
  const answer = await modern(url, 'tools/call', {
    name: 'ask',
    arguments: { method: 'roots/list', params: {} },
  });
  expect(textOf(answer.json)).toMatch(/-32601|-32603|declare/);
});
