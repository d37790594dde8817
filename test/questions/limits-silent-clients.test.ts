import { describe, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../support/gateway.js';
import { type Loose, sleep, until } from '../support/net.js';
import { useVirtualTime } from '../support/virtual-time.js';
import { askingRoutes } from './asking-route.js';
import {
  accept,
  answerTo,
  asking,
  done,
  elicitation,
  form,
  legacyClient,
  prompt,
  questionOn,
  startAskingBackend,
  startRoundsBackend,
  text,
  textIn,
} from './scripted.js';

useVirtualTime();

const { keep, setUp } = askingRoutes();

const gatewayTo = (url: string, options: Loose = {}): Promise<TestGateway> =>
  keep(startGateway({ '/mcp': { backend: { url }, ...options } }));

const QUICK = { questions: { timeout: '400ms' } };
const cancelsOf = ({ messages }: { messages: readonly Loose[] }): unknown[] =>
  messages.filter(({ method }) => method === 'notifications/cancelled').map(({ params }) => params.requestId);

describe('a legacy client that declared what it never answers', () => {
  test.each<[string, Loose]>([
    ['elicitation/create', form('?')],
    ['sampling/createMessage', prompt('?')],
    ['roots/list', {}],
  ])('%s of a legacy server: the server and the client get an error in time', async (method, params) => {
    const { backend, gateway } = await setUp(QUICK);
    backend.tool(async ({ ask }) => text(JSON.stringify((await ask(method, params, 'q')).error)));
    const session = await legacyClient(gateway.url());
    const startedAt = performance.now();
    const stream = await session.open('tools/call', { name: 'ask' });
    const question = await questionOn(stream);
    const response = await stream.done;
    const tookMs = performance.now() - startedAt;
    expect(JSON.parse(textIn(response.json))).toEqual({ code: -32001, message: 'Request timed out' });
    expect(tookMs).toBeGreaterThan(350);
    expect(tookMs).toBeLessThan(2_000);
    expect(cancelsOf(response)).toEqual(['q']);
    // An answer that comes after all reaches nobody.
    expect((await answerTo(session, question, accept('late'))).status).toBe(202);
    await sleep(50);
    expect(backend.answers).toHaveLength(1);
  });

  test('on the stream of the session: the server gets an error in time, and the client there', async () => {
    const { backend, gateway } = await setUp(QUICK);
    backend.tool(async ({ push }) => text(`${(await push('elicitation/create', form('?'), 0)).error.code}`));
    const session = await legacyClient(gateway.url());
    const getStream = await session.listen();
    const response = session.request('tools/call', { name: 'ask' });
    expect((await questionOn(getStream)).id).toBe(0);
    expect(textIn((await response).json)).toBe('-32001');
    expect((await getStream.next()).json).toMatchObject({
      method: 'notifications/cancelled',
      params: { requestId: 0 },
    });
    getStream.abort();
  });

  test('a modern server: the tool has failed, and the client gets an error', async () => {
    const backend = await keep(startRoundsBackend(() => asking({ a: elicitation('?') }, 's')));
    const gateway = await gatewayTo(backend.url, QUICK);
    const session = await legacyClient(gateway.url());
    const stream = await session.open('tools/call', { name: 'ask' });
    const question = await questionOn(stream);
    const response = await stream.done;
    expect(response.json.result.isError).toBe(true);
    expect(textIn(response.json)).toContain('timed out');
    expect(cancelsOf(response)).toEqual([question.id]);
    expect(backend.received('tools/call')).toHaveLength(1);
  });

  test('other calls of the same client go on meanwhile, and it is asked again by them', async () => {
    const { backend, gateway } = await setUp({ questions: { timeout: '1500ms' } });
    const session = await legacyClient(gateway.url());
    const silent = await session.open('tools/call', { name: 'ask', arguments: { key: 'silent' } });
    await questionOn(silent);
    const other = await session.open('tools/call', { name: 'ask', arguments: { key: 'other' } });
    await answerTo(session, await questionOn(other), accept('x'));
    expect(textIn((await other.done).json)).toBe('x');
    backend.tool(async () => text('plain'));
    expect(textIn((await session.request('tools/call', { name: 'ask' })).json)).toBe('plain');
    expect(textIn((await silent.done).json)).toBe('Request timed out');
  });

  test('the time of people is not that of the call', async () => {
    for (const make of [
      async () => (await setUp({ timeouts: { total: '400ms', idle: '300ms' } })).gateway,
      async () => {
        const backend = await startRoundsBackend((params) =>
          params.inputResponses ? done('slow') : asking({ a: elicitation('?') }, 's'),
        );
        await keep(backend);
        return gatewayTo(backend.url, { timeouts: { total: '400ms', idle: '300ms' } });
      },
    ]) {
      const session = await legacyClient((await make()).url());
      const stream = await session.open('tools/call', { name: 'ask' });
      const question = await questionOn(stream);
      await sleep(900);
      await answerTo(session, question, accept('slow'));
      expect(textIn((await stream.done).json)).toBe('slow');
    }
  });

  test('a quiet stream is kept alive while it waits', async () => {
    const backend = await keep(startAskingBackend());
    const gateway = await keep(startGateway({ '/mcp': backend.url }, { keepAlive: '1s' }));
    const session = await legacyClient(gateway.url());
    const stream = await session.open('tools/call', { name: 'ask' });
    const question = await questionOn(stream);
    await until(() => stream.comments.length > 0, 'a comment');
    await answerTo(session, question, accept('x'));
    expect(textIn((await stream.done).json)).toBe('x');
  });
});

describe('a legacy server takes back what it asked a legacy client', () => {
  test.each(['the stream of the call', 'the stream of the session'])(
    'on %s: the client gets an error, the server no answer',
    async (where) => {
      const { backend, gateway } = await setUp(QUICK);
      backend.tool(async ({ ask, push, notify, session }) => {
        const params = { requestId: 5, reason: 'too late' };
        if (where === 'the stream of the call') {
          void ask('elicitation/create', form('?'), 5);
          notify('notifications/cancelled', params);
        } else {
          void push('elicitation/create', form('?'), 5);
          await sleep(50);
          backend.streams
            .find((one) => one.session === session)
            ?.stream.event({ jsonrpc: '2.0', method: 'notifications/cancelled', params });
        }
        await sleep(600);
        return text('without you');
      });
      const session = await legacyClient(gateway.url());
      const getStream = await session.listen();
      const stream = await session.open('tools/call', { name: 'ask' });
      const asked = where === 'the stream of the call' ? stream : getStream;
      const question = await questionOn(asked);
      expect((await asked.next()).json).toEqual({
        jsonrpc: '2.0',
        method: 'notifications/cancelled',
        params: { requestId: 5, reason: 'too late' },
      });
      await answerTo(session, question, accept('late'));
      const response = await stream.done;
      expect(textIn(response.json)).toBe('without you');
      expect(cancelsOf(response)).toHaveLength(where === 'the stream of the call' ? 1 : 0);
      expect(backend.answers).toEqual([]);
      getStream.abort();
    },
  );

  test('by ending the call: what is still asked is taken back', async () => {
    const { backend, gateway } = await setUp();
    backend.tool(async ({ ask }) => {
      void ask('elicitation/create', form('?'), 'q');
      await sleep(50);
      return text('without you');
    });
    const session = await legacyClient(gateway.url());
    const response = await session.request('tools/call', { name: 'ask' });
    expect(textIn(response.json)).toBe('without you');
    expect(cancelsOf(response)).toEqual(['q']);
  });

  test('a session that took the place of a lost one asks under the same id: the old question is taken back first', async () => {
    const { backend, gateway } = await setUp();
    backend.tool(async ({ push }) => {
      const answer = await push('elicitation/create', form(`${backend.sessions.size}?`), 0);
      return text(answer.result?.content.value ?? 'refused');
    });
    const session = await legacyClient(gateway.url());
    const getStream = await session.listen();
    const first = session.request('tools/call', { name: 'ask' }, { id: 'first' });
    await questionOn(getStream);
    await backend.stop();
    backend.forget();
    await backend.start();
    expect((await first).json.error).toBeDefined();
    const second = session.request('tools/call', { name: 'ask' }, { id: 'second' });
    const told1 = (await getStream.next(8_000)).json;
    expect(told1).toMatchObject({ method: 'notifications/cancelled', params: { requestId: 0 } });
    const question = await questionOn(getStream);
    await answerTo(session, question, accept('new'));
    expect(textIn((await second).json)).toBe('new');
    getStream.abort();
  });
});

describe('a legacy client cancels a call in which it is asked', () => {
  test('the server is told under its own id of the call, the question is taken back', async () => {
    const { backend, gateway } = await setUp();
    backend.tool(async ({ ask, cancelled }) => {
      void ask('elicitation/create', form('?'), 0);
      await cancelled();
      return undefined;
    });
    const session = await legacyClient(gateway.url());
    const stream = await session.open('tools/call', { name: 'ask' }, { id: 'mine' });
    await questionOn(stream);
    await session.notify('notifications/cancelled', { requestId: 'mine' });
    await until(() => backend.cancels.length === 1, 'the cancellation');
    expect(backend.cancels[0]?.params.requestId).toBe(backend.calls[0]?.id);
    expect(cancelsOf(await stream.done)).toEqual([0]);
  });

  test('one that goes away has not cancelled: its answer still reaches the server', async () => {
    const { backend, gateway } = await setUp();
    const session = await legacyClient(gateway.url());
    const stream = await session.open('tools/call', { name: 'ask' });
    const question = await questionOn(stream);
    stream.abort();
    await sleep(50);
    await answerTo(session, question, accept('x'));
    await until(() => backend.answers.length === 1, 'the answer');
    expect(backend.answers[0]?.json.result).toEqual(accept('x'));
    expect(backend.cancels).toEqual([]);
  });

  test('but one that is gone, and of a revision without a way back, cannot be asked anything new', async () => {
    const { backend, gateway } = await setUp();
    let answer: Loose;
    backend.tool(async ({ notify, ask }) => {
      notify('notifications/message', { level: 'info', data: 'begun' });
      await sleep(150);
      answer = await ask('elicitation/create', form('?'));
      return text('done');
    });
    const session = await legacyClient(gateway.url(), { version: '2024-11-05' });
    const stream = await session.open('tools/call', { name: 'ask' });
    await stream.next();
    stream.abort();
    await until(() => answer, 'the refusal');
    expect(answer.error.code).toBe(-32601);
  });
});
