import { describe, expect, test } from 'vitest';
import { type Loose, sleep, until } from '../support/net.js';
import { legacy, modern } from '../support/raw.js';
import { useVirtualTime } from '../support/virtual-time.js';
import { askingRoutes } from './asking-route.js';
import {
  ASKABLE,
  accept,
  form,
  ModernCaller,
  prompt,
  questionOn,
  readQuestions,
  text,
  toolText,
} from './scripted.js';

useVirtualTime();

const { setUp } = askingRoutes();
const page = { mode: 'url', url: 'https://a.example', elicitationId: '1', message: '?' };
const tools = [{ name: 't', inputSchema: { type: 'object' } }];

describe('a server that asks a modern client what it did not declare', () => {
  test.each<[string, Loose, string, Loose, Loose]>([
    ['nothing', {}, 'elicitation/create', form('?'), { elicitation: { form: {} } }],
    ['sampling alone', { sampling: {} }, 'elicitation/create', form('?'), { elicitation: { form: {} } }],
    ['forms alone', { elicitation: {} }, 'elicitation/create', page, { elicitation: { url: {} } }],
    [
      'pages alone',
      { elicitation: { url: {} } },
      'elicitation/create',
      form('?'),
      { elicitation: { form: {} } },
    ],
    ['elicitation alone', { elicitation: {} }, 'sampling/createMessage', prompt('?'), { sampling: {} }],
    [
      'sampling without tools',
      { sampling: {} },
      'sampling/createMessage',
      { ...prompt('?'), tools },
      { sampling: { tools: {} } },
    ],
    [
      'sampling without a choice of tools',
      { sampling: {} },
      'sampling/createMessage',
      { ...prompt('?'), toolChoice: { mode: 'auto' } },
      { sampling: { tools: {} } },
    ],
    [
      'sampling that is no object',
      { sampling: true },
      'sampling/createMessage',
      prompt('?'),
      { sampling: {} },
    ],
  ])(
    'declared: %s; the call ends with what is missing',
    async (_name, capabilities, method, params, missing) => {
      const { backend, gateway } = await setUp();
      backend.tool(async ({ ask, cancelled }) => {
        const stopped = cancelled();
        void ask(method, params, 'q');
        await stopped;
        return undefined;
      });
      const answer = await new ModernCaller(gateway.url(), {}, { capabilities }).start();
      expect([answer.status, answer.json.error.code]).toEqual([400, -32021]);
      expect(answer.json.error.data).toEqual({ requiredCapabilities: missing });
      await until(
        () => backend.cancels.length === 1 && backend.answers.length === 1,
        'refusal and cancellation',
      );
      expect(backend.answers[0]?.json).toMatchObject({ id: 'q', error: { code: -32601 } });
      expect(backend.cancels[0]?.params.requestId).toBe(backend.calls[0]?.id);
      expect(backend.received('initialize')[0]?.json.params.capabilities).toEqual(
        Object.fromEntries(Object.entries(capabilities).filter(([, value]) => value !== true)),
      );
      // A client that declares it is served.
      backend.tool(async ({ ask }) => text(JSON.stringify((await ask(method, params)).result)));
      const able = new ModernCaller(gateway.url(), {}, { capabilities: ASKABLE });
      const round = await able.asked();
      expect(toolText(await able.retry(round.state, { [round.key]: { action: 'accept' } }))).toBe(
        '{"action":"accept"}',
      );
    },
  );

  test('while the client is away with other questions: its retry gets an error', async () => {
    const { backend, gateway } = await setUp();
    backend.tool(async ({ ask, cancelled }) => {
      void ask('elicitation/create', form('?'));
      await sleep(100);
      void ask('sampling/createMessage', prompt('?'));
      await cancelled();
      return undefined;
    });
    const caller = new ModernCaller(gateway.url(), {}, { capabilities: { elicitation: {} } });
    const round = await caller.asked();
    await until(() => backend.cancels.length === 1, 'the cancellation');
    const answer = await caller.retry(round.state, { [round.key]: accept('x') });
    expect([answer.status, answer.json.error.code]).toEqual([400, -32021]);
    expect(answer.json.error.data).toEqual({ requiredCapabilities: { sampling: {} } });
    expect((await caller.retry(round.state, {})).json.error.code).toBe(-32602);
  });

  test('together with a question that could be asked: neither is asked', async () => {
    const { backend, gateway } = await setUp();
    backend.tool(async ({ ask, cancelled }) => {
      void ask('elicitation/create', form('?'));
      void ask('sampling/createMessage', prompt('?'));
      await cancelled();
      return undefined;
    });
    const caller = new ModernCaller(gateway.url(), {}, { capabilities: { elicitation: {} } });
    const answer = await caller.start();
    expect([answer.status, answer.json.error.code]).toEqual([400, -32021]);
  });

  test('after the response has become a stream: in band', async () => {
    const { backend, gateway } = await setUp();
    backend.tool(async ({ ask, notify, cancelled }) => {
      notify('notifications/message', { level: 'info', data: 'working' });
      void ask('elicitation/create', form('?'));
      await cancelled();
      return undefined;
    });
    const caller = new ModernCaller(
      gateway.url(),
      {},
      { capabilities: {}, meta: { 'io.modelcontextprotocol/logLevel': 'debug' } },
    );
    const answer = await caller.start();
    expect([answer.status, answer.json.error.code, answer.messages.length]).toEqual([200, -32021, 1]);
  });

  test('roots, which are not told of, are refused without ending the call', async () => {
    const { backend, gateway } = await setUp();
    backend.tool(async ({ ask }) => text(`${(await ask('roots/list', undefined)).error.code}`));
    expect(toolText(await new ModernCaller(gateway.url(), {}).start())).toBe('-32601');
    expect(backend.received('initialize')[0]?.json.params.capabilities).not.toHaveProperty('roots');
  });

  test.each(['ask', 'cached'])(
    'roots: %s, and a client without: the call ends with what is missing',
    async (roots) => {
      const { backend, gateway } = await setUp({ questions: { roots } });
      backend.tool(async ({ ask, cancelled }) => {
        void ask('roots/list', undefined);
        await cancelled();
        return undefined;
      });
      const answer = await new ModernCaller(gateway.url(), {}, { capabilities: {} }).start();
      expect(answer.json.error).toMatchObject({
        code: -32021,
        data: { requiredCapabilities: { roots: {} } },
      });
    },
  );

  test('something that no client has words for is refused, and the call goes on', async () => {
    const { backend, gateway } = await setUp();
    backend.tool(async ({ ask }) => {
      const codes = [];
      for (const method of ['tools/list', 'acme/ask', 'constructor', 'tasks/list'])
        codes.push((await ask(method, {})).error.code);
      const pong = await ask('ping', undefined);
      return text(`${codes} ${JSON.stringify(pong.result)}`);
    });
    expect(toolText(await new ModernCaller(gateway.url(), {}).start())).toBe(
      '-32601,-32601,-32601,-32601 {}',
    );
  });
});

describe('a server that asks outside a call that may ask', () => {
  test('on the stream of the session, right at its start: it is refused, and the call is not disturbed', async () => {
    const refusals: Loose[] = [];
    const { backend, gateway } = await setUp(
      { questions: { roots: 'ask' } },
      {
        on: {
          GET: (step) => {
            const stream = step.stream();
            backend.streams.push({ session: step.session, stream });
            const questions = [
              { id: 0, method: 'elicitation/create', params: form('Early?') },
              { id: 1, method: 'roots/list' },
              { id: 2, method: 'sampling/createMessage', params: prompt('Early?') },
              { id: '2', method: 'ping' },
            ];
            for (const question of questions) stream.event({ jsonrpc: '2.0', ...question });
            return undefined;
          },
        },
      },
    );
    backend.tool(async () => text('plain'));
    const answer = await new ModernCaller(gateway.url(), {}).start();
    expect(answer.json.result?.content[0].text).toBe('plain');
    await until(() => backend.answers.length === 4, 'the answers');
    for (const { json } of backend.answers) refusals.push([json.id, json.error?.code ?? json.result]);
    expect(refusals.sort()).toEqual(
      [
        [0, -32603],
        [1, { roots: [] }],
        ['2', {}],
        [2, -32603],
      ].sort(),
    );
  });

  test('a moment after the start, while a call is in flight: it belongs to that call', async () => {
    const { backend, gateway } = await setUp();
    backend.tool(async ({ push }) =>
      text((await push('elicitation/create', form('Pushed?'))).result.content.value),
    );
    const caller = new ModernCaller(gateway.url(), {});
    const round = await caller.asked();
    expect(round.requests[round.key].params.message).toBe('Pushed?');
    expect(toolText(await caller.retry(round.state, { [round.key]: accept('x') }))).toBe('x');
  });

  test('on the stream of a session that many calls share: it is refused, and the calls go on', async () => {
    const { backend, gateway } = await setUp();
    backend.tool(async ({ push }) => text(`${(await push('elicitation/create', form('?'))).error.code}`));
    const caller = new ModernCaller(gateway.url(), {}, { capabilities: {} });
    expect(toolText(await caller.start())).toMatch(/^-3260[13]$/);
  });

  test.each(['tools/list', 'completion/complete', 'acme/do'])(
    'during %s: it is refused, and the request goes on',
    async (method) => {
      const { backend, gateway } = await setUp();
      let answer: Loose;
      backend.on(method, (step) => {
        const stream = step.stream({ 'mcp-session-id': step.session ?? '' });
        stream.event({ jsonrpc: '2.0', id: 'q', method: 'elicitation/create', params: form('?') });
        void until(() => backend.answers.at(-1)?.json, 'the refusal').then((json) => {
          answer = json;
          stream.event(step.frame({ result: { tools: [], completion: { values: [] } } }));
          stream.end();
        });
        return undefined;
      });
      const response = await modern(
        gateway.url(),
        method,
        { ref: { type: 'ref/prompt', name: 'a' }, argument: { name: 'a', value: 'b' } },
        { capabilities: ASKABLE },
      );
      expect(response.json.result.resultType).toBe('complete');
      expect(answer).toMatchObject({ id: 'q', error: { code: expect.any(Number) } });
    },
  );

  test.each<[string, Loose, Loose]>([
    ['prompts/get', { name: 'p' }, { messages: [] }],
    ['resources/read', { uri: 'file:///a' }, { contents: [] }],
  ])('during %s: it is asked as during a tool', async (method, params, result) => {
    const { backend, gateway } = await setUp();
    backend.on(method, (step) => {
      const stream = step.stream({ 'mcp-session-id': step.session ?? '' });
      stream.event({ jsonrpc: '2.0', id: 'q', method: 'elicitation/create', params: form('?') });
      void until(() => backend.answers.at(-1)?.json, 'the answer').then(({ result: answer }) => {
        stream.event(
          step.frame({ result: { ...result, _meta: { 'example.com/value': answer.content.value } } }),
        );
        stream.end();
      });
      return undefined;
    });
    const options = { capabilities: ASKABLE };
    const round = readQuestions(await modern(gateway.url(), method, params, options));
    const answer = await modern(
      gateway.url(),
      method,
      { ...params, requestState: round.state, inputResponses: { [round.key]: accept('x') } },
      options,
    );
    expect(answer.json.result).toMatchObject({ ...result, _meta: { 'example.com/value': 'x' } });
    expect(backend.received(method)).toHaveLength(1);
  });
});

describe('a legacy server asks a legacy client', () => {
  test.each<[string, Loose]>([
    ['elicitation/create', form('?')],
    ['sampling/createMessage', prompt('?')],
    ['roots/list', undefined],
  ])(
    '%s, which it did not declare: refused at once, and the client hears nothing',
    async (method, params) => {
      const { backend, gateway } = await setUp();
      const startedAt = performance.now();
      backend.tool(async ({ ask }) => text(`${(await ask(method, params, 0)).error.code}`));
      const session = await legacy(gateway.url(), { capabilities: {} });
      const response = await session.request('tools/call', { name: 'ask' });
      expect(toolText(response)).toBe('-32601');
      expect(response.messages).toEqual([]);
      expect(performance.now() - startedAt).toBeLessThan(2_000);
      expect(backend.received('initialize')[0]?.json.params.capabilities).toEqual({});
    },
  );

  test('on the stream of the session, though it holds none: refused at once', async () => {
    const { backend, gateway } = await setUp();
    backend.tool(async ({ stream, ask }) => {
      void stream;
      return text(`${(await ask('elicitation/create', form('?'))).error?.code ?? 'asked'}`);
    });
    const session = await legacy(gateway.url(), { capabilities: ASKABLE });
    // A client that takes JSON alone has no stream on which it could be asked.
    const response = await session.request(
      'tools/call',
      { name: 'ask' },
      { headers: { accept: 'application/json' } },
    );
    expect(toolText(response)).toBe('-32601');
  });

  test('ids 0 and "0" are two questions, and each answer goes back under its own', async () => {
    const { backend, gateway } = await setUp();
    backend.tool(async ({ ask }) => {
      const answers = await Promise.all([
        ask('elicitation/create', form('number'), 0),
        ask('elicitation/create', form('string'), '0'),
      ]);
      return text(JSON.stringify(answers.map(({ id, result }) => [id, result.content.value])));
    });
    const session = await legacy(gateway.url(), { capabilities: ASKABLE });
    const stream = await session.open('tools/call', { name: 'ask' }, { id: 0 });
    const questions = [await questionOn(stream), await questionOn(stream)];
    expect(questions.map(({ id }) => id)).toEqual([0, '0']);
    for (const { id, params } of questions.reverse()) {
      await session.post({ jsonrpc: '2.0', id, result: accept(`for the ${params.message}`) });
    }
    expect(toolText(await stream.done)).toBe(
      JSON.stringify([
        [0, 'for the number'],
        ['0', 'for the string'],
      ]),
    );
  });
});
