import { describe, expect, test } from 'vitest';
import { type Loose, until } from '../support/net.js';
import { type LegacyOptions, type LegacySession, legacy } from '../support/raw.js';
import { form, type ServerTask, startTaskServer, text } from './task-server.js';
import { watchedRoute } from './watched-route.js';

const RELATED = 'io.modelcontextprotocol/related-task';

const route = watchedRoute(startTaskServer);

const connect = (options: LegacyOptions = {}) => legacy(route.url, options);
const call = (session: LegacySession, name: string, args: Loose = {}, task: Loose = {}) =>
  session.request('tools/call', { name, arguments: args, task });
async function begin(session: LegacySession, args: Loose = {}): Promise<{ id: string; task: ServerTask }> {
  const count = route.server.tasks.length;
  const { json } = await call(session, 'slow', args);
  return { id: json.result.task.taskId, task: route.server.tasks[count] as ServerTask };
}

describe('what a client is told', () => {
  test('of 2025-11-25 hears of tasks, without a list, and that each tool may become one', async () => {
    const session = await connect();
    const { capabilities } = session.initialize.json.result;
    expect(capabilities.tasks).toEqual({ cancel: {}, requests: { tools: { call: {} } } });
    expect(capabilities.extensions).toEqual({});
    const { tools } = (await session.request('tools/list')).json.result;
    expect(tools.map(({ execution }: Loose) => execution)).toEqual(
      tools.map(() => ({ taskSupport: 'optional' })),
    );
  });

  test.each(['2025-06-18', '2025-03-26', '2024-11-05'])('of %s hears of none', async (version) => {
    const session = await connect({ version });
    expect(session.initialize.json.result.capabilities.tasks).toBeUndefined();
    const { tools } = (await session.request('tools/list')).json.result;
    for (const tool of tools) expect(tool).not.toHaveProperty('execution');
    const { json } = await call(session, 'slow');
    expect(json.result.content[0].text).toMatch(/^at once/);
  });

  test('the server is told that its client takes tasks where it asks for one, and not otherwise', async () => {
    const session = await connect();
    await session.request('tools/call', { name: 'now', arguments: {} });
    await call(session, 'now');
    const [plain, asTask] = route.server
      .received('tools/call')
      .slice(-2)
      .map(({ json }) => json.params);
    const declared = 'io.modelcontextprotocol/clientCapabilities';
    expect(plain._meta[declared].extensions).toBeUndefined();
    expect(asTask._meta[declared].extensions).toEqual({ 'io.modelcontextprotocol/tasks': {} });
    expect(asTask).not.toHaveProperty('task');
  });
});

describe('a task', () => {
  test('has a handle, in the words of the client, and a name that is not the server’s', async () => {
    const session = await connect();
    const { json } = await call(session, 'slow');
    expect(json.result).toEqual({
      task: {
        taskId: expect.any(String),
        status: 'working',
        createdAt: expect.any(String),
        lastUpdatedAt: expect.any(String),
        ttl: 60_000,
        pollInterval: 60,
      },
    });
    expect(json.result.task.taskId).not.toContain(route.server.tasks[0]?.taskId);
  });

  test('can be looked at, without what it holds', async () => {
    const session = await connect();
    const { id, task } = await begin(session);
    const look = async () => (await session.request('tasks/get', { taskId: id })).json.result;
    expect(await look()).toMatchObject({ taskId: id, status: 'working', ttl: 60_000 });
    void task.ask('name', 'elicitation/create', form('Name?'));
    expect(await look()).toMatchObject({ status: 'input_required' });
    task.complete(text('done'));
    const done = await look();
    expect(done).toMatchObject({ taskId: id, status: 'completed' });
    expect(done).not.toHaveProperty('result');
  });

  test('names itself in the header of each request about it', async () => {
    const session = await connect();
    const { id, task } = await begin(session);
    await session.request('tasks/get', { taskId: id });
    await session.request('tasks/cancel', { taskId: id });
    for (const method of ['tasks/get', 'tasks/cancel']) {
      const { headers, json } = route.server.received(method).at(-1) as Loose;
      expect(headers['mcp-name']).toBe(task.taskId);
      expect(json.params.taskId).toBe(task.taskId);
    }
  });

  test('gives its result to every request that waits for it', async () => {
    const session = await connect();
    const { id, task } = await begin(session);
    const waiting = session.request('tasks/result', { taskId: id });
    await until(() => task.looks > 1, 'two looks');
    task.complete(text('done'));
    const { json } = await waiting;
    expect(json.result).toEqual({ ...text('done'), _meta: { [RELATED]: { taskId: id } } });
    const again = await session.request('tasks/result', { taskId: id });
    expect(again.json.result).toEqual(json.result);
  });

  test('gives its error, and has failed', async () => {
    const session = await connect();
    const { id, task } = await begin(session);
    task.fail({ code: -32050, message: 'no more', data: { left: 0 } });
    const { json } = await session.request('tasks/result', { taskId: id });
    expect(json.error).toEqual({ code: -32050, message: 'no more', data: { left: 0 } });
    const { result } = (await session.request('tasks/get', { taskId: id })).json;
    expect(result).toMatchObject({ status: 'failed', statusMessage: 'no more' });
  });

  test('has failed where its tool has, and gives the result all the same', async () => {
    const session = await connect();
    const { id, task } = await begin(session);
    task.complete({ ...text('out of paper'), isError: true });
    const { result } = (await session.request('tasks/get', { taskId: id })).json;
    expect(result).toMatchObject({ status: 'failed', statusMessage: 'out of paper' });
    const told = await session.request('tasks/result', { taskId: id });
    expect(told.json.result).toMatchObject({ ...text('out of paper'), isError: true });
  });

  test('has a result that clients of the revision can read, whatever the schema of its tool', async () => {
    const session = await connect();
    const { json } = await call(session, 'numbers');
    route.server.tasks[0]?.complete({ content: [], structuredContent: [1, 2.0] });
    const told = await session.request('tasks/result', { taskId: json.result.task.taskId });
    expect(told.json.result.structuredContent).toEqual({ result: [1, 2] });
  });

  test('can be cancelled once, and is cancelled whatever the server makes of it', async () => {
    const session = await connect();
    const { id, task } = await begin(session, { stubborn: true });
    const cancel = () => session.request('tasks/cancel', { taskId: id });
    expect((await cancel()).json.result).toMatchObject({ taskId: id, status: 'cancelled' });
    expect(task.status).toBe('working');
    expect((await session.request('tasks/get', { taskId: id })).json.result.status).toBe('cancelled');
    expect((await session.request('tasks/result', { taskId: id })).json.error.message).toMatch(/cancelled/);
    expect((await cancel()).json.error).toMatchObject({ code: -32602 });
    expect(task.cancels).toBe(1);
  });

  test('cannot be cancelled when it is over', async () => {
    const session = await connect();
    const { id, task } = await begin(session);
    task.complete(text('done'));
    const { json } = await session.request('tasks/cancel', { taskId: id });
    expect(json.error).toMatchObject({ code: -32602, message: expect.stringContaining('completed') });
    expect(task.cancels).toBe(0);
  });

  test('is over for every request that waits when another one cancels it', async () => {
    const session = await connect();
    const { id, task } = await begin(session);
    const waiting = session.request('tasks/result', { taskId: id });
    await until(() => task.looks > 0, 'a look');
    await session.request('tasks/cancel', { taskId: id });
    expect((await waiting).json.error.message).toMatch(/cancelled/);
  });

  test('outlives the session that made it, and a restart of the gateway where there is a key', async () => {
    const one = await connect();
    const { id, task } = await begin(one);
    await one.delete();
    const other = await connect();
    task.complete(text('done'));
    const { json } = await other.request('tasks/result', { taskId: id });
    expect(json.result).toMatchObject(text('done'));
  });
});

describe('what a task asks', () => {
  const CAPABILITIES = { elicitation: {}, sampling: {} };

  test('is put to the client that waits for its result, and answered by an update', async () => {
    const session = await connect({ capabilities: CAPABILITIES });
    const { id, task } = await begin(session);
    const asked = task.ask('name', 'elicitation/create', form('Name?'));
    const stream = await session.open('tasks/result', { taskId: id });
    const { json: question } = await stream.find(({ json }) => json?.method === 'elicitation/create');
    expect(question.params).toEqual({ ...form('Name?'), _meta: { [RELATED]: { taskId: id } } });
    const answer = { action: 'accept', content: { value: 'Ada' } };
    await session.post({ jsonrpc: '2.0', id: question.id, result: answer });
    expect(await asked).toEqual(answer);
    task.complete(text('Hello, Ada'));
    expect((await stream.done).text).toContain('Hello, Ada');
  });

  test('before it is one, is put to the client on the stream of the call', async () => {
    const session = await connect({ capabilities: CAPABILITIES });
    const params = { name: 'slow', arguments: { asksFirst: true }, task: {} };
    const stream = await session.open('tools/call', params);
    const { json: question } = await stream.find(({ json }) => json?.method === 'elicitation/create');
    expect(question.params).toEqual(form('Sure?'));
    const answer = { action: 'accept', content: { value: 'yes' } };
    await session.post({ jsonrpc: '2.0', id: question.id, result: answer });
    const { json } = await stream.find(({ json }) => json?.result !== undefined);
    expect(json.result.task.status).toBe('working');
    expect(route.server.tasks[0]?.args).toMatchObject({ sure: answer });
  });

  test('is asked once, however many requests wait for the result', async () => {
    const session = await connect({ capabilities: CAPABILITIES });
    const { id, task } = await begin(session);
    const asked = task.ask('name', 'elicitation/create', form('Name?'));
    const stream = await session.open('tasks/result', { taskId: id });
    const { json: question } = await stream.find(({ json }) => json?.method === 'elicitation/create');
    const { looks } = task;
    const other = session.request('tasks/result', { taskId: id });
    await until(() => task.looks > looks + 3, 'looks of both');
    await session.post({ jsonrpc: '2.0', id: question.id, result: { action: 'decline' } });
    expect(await asked).toEqual({ action: 'decline' });
    task.complete(text('done'));
    expect((await stream.done).text).toContain('done');
    expect((await other).text).toContain('done');
    expect((await other).text).not.toContain('elicitation/create');
  });

  test('is asked again of the next who waits when the first has left', async () => {
    const session = await connect({ capabilities: CAPABILITIES });
    const { id, task } = await begin(session);
    const asked = task.ask('name', 'elicitation/create', form('Name?'));
    const first = await session.open('tasks/result', { taskId: id });
    await first.find(({ json }) => json?.method === 'elicitation/create');
    first.abort();
    const next = await session.open('tasks/result', { taskId: id });
    const { json: question } = await next.find(({ json }) => json?.method === 'elicitation/create');
    await session.post({ jsonrpc: '2.0', id: question.id, result: { action: 'cancel' } });
    expect(await asked).toEqual({ action: 'cancel' });
    task.complete(text('done'));
    expect((await next.done).text).toContain('done');
    expect(task.cancels).toBe(0);
  });

  test('is asked on the session’s stream of a client that looks again and again, and does not wait', async () => {
    const session = await connect({ capabilities: CAPABILITIES });
    const listening = await session.listen();
    const { id, task } = await begin(session);
    const asked = task.ask('name', 'elicitation/create', form('Name?'));
    const look = () => session.request('tasks/get', { taskId: id });
    const question = await until(async () => {
      expect((await look()).json.result.status).toBe('input_required');
      return listening.events.find(({ json }) => json?.method === 'elicitation/create')?.json;
    }, 'the question');
    expect(task.looks).toBeGreaterThan(1);
    expect(question.params).toEqual({ ...form('Name?'), _meta: { [RELATED]: { taskId: id } } });
    await look();
    await session.post({ jsonrpc: '2.0', id: question.id, result: { action: 'decline' } });
    expect(await asked).toEqual({ action: 'decline' });
    // The server may go on listing what was answered.
    void task.ask('name', 'elicitation/create', form('Name?'));
    await look();
    const waiting = session.request('tasks/result', { taskId: id });
    const { looks } = task;
    await until(() => task.looks > looks + 2, 'some looks');
    task.complete(text('done'));
    expect((await waiting).json.result).toMatchObject(text('done'));
    expect(listening.events.filter(({ json }) => json?.method === 'elicitation/create')).toHaveLength(1);
    listening.abort();
  });

  test('is asked of a client once that waits after it has looked', async () => {
    const session = await connect({ capabilities: CAPABILITIES });
    const listening = await session.listen();
    const { id, task } = await begin(session);
    const asked = task.ask('name', 'elicitation/create', form('Name?'));
    await session.request('tasks/get', { taskId: id });
    const stream = await session.open('tasks/result', { taskId: id });
    const { json: question } = await stream.find(({ json }) => json?.method === 'elicitation/create');
    for (let n = 0; n < 3; n++) await session.request('tasks/get', { taskId: id });
    await session.post({ jsonrpc: '2.0', id: question.id, result: { action: 'decline' } });
    expect(await asked).toEqual({ action: 'decline' });
    task.complete(text('done'));
    await stream.done;
    expect(listening.events).toEqual([]);
    listening.abort();
  });

  test('of a person that the client cannot ask, is cancelled for the server by the client’s own error', async () => {
    const session = await connect({ capabilities: CAPABILITIES });
    const { id, task } = await begin(session);
    const asked = task.ask('name', 'elicitation/create', form('Name?'));
    const stream = await session.open('tasks/result', { taskId: id });
    const { json: question } = await stream.find(({ json }) => json?.method === 'elicitation/create');
    await session.post({ jsonrpc: '2.0', id: question.id, error: { code: -1, message: 'no' } });
    expect(await asked).toEqual({ action: 'cancel' });
    task.complete(text('done'));
    await stream.done;
  });

  test('and that nobody can be asked is an error for every request that waits', async () => {
    const session = await connect();
    const { id, task } = await begin(session);
    void task.ask('name', 'sampling/createMessage', { messages: [], maxTokens: 1 });
    const { json } = await session.request('tasks/result', { taskId: id });
    expect(json.error).toMatchObject({ code: -32603, message: expect.stringContaining('sampling') });
    expect((await session.request('tasks/get', { taskId: id })).json.result.status).toBe('input_required');
  });
});

describe('a call that is answered at once', () => {
  test('is a task that is done, and its result is kept for a while', async () => {
    const session = await connect();
    const { json } = await call(session, 'now', { n: 1 }, { ttl: 5_000 });
    const { task } = json.result;
    expect(task).toMatchObject({ status: 'completed', ttl: 5_000 });
    const told = await session.request('tasks/result', { taskId: task.taskId });
    expect(told.json.result).toEqual({
      ...text('at once: {"n":1}'),
      _meta: { [RELATED]: { taskId: task.taskId } },
    });
    expect((await session.request('tasks/get', { taskId: task.taskId })).json.result).toEqual(task);
    const cancel = await session.request('tasks/cancel', { taskId: task.taskId });
    expect(cancel.json.error.code).toBe(-32602);
  });

  test('has failed where the tool has', async () => {
    const session = await connect();
    const { json } = await call(session, 'now', { fails: true });
    expect(json.result.task).toMatchObject({ status: 'failed' });
    const told = await session.request('tasks/result', { taskId: json.result.task.taskId });
    expect(told.json.result.isError).toBe(true);
  });

  test('is forgotten when its time is over', async () => {
    const session = await connect();
    const { json } = await call(session, 'now', {}, { ttl: 1 });
    const { taskId } = json.result.task;
    const gone = await until(async () => {
      const { error } = (await session.request('tasks/get', { taskId })).json;
      return error;
    }, 'the end of its time');
    expect(gone.code).toBe(-32602);
  });
});

describe('a tool that is a task or nothing', () => {
  test.each(['2025-11-25', '2025-06-18', '2024-11-05'])(
    'is run to its end for a client of %s that asks for no task',
    async (version) => {
      route.work = async () => text('at last');
      const session = await connect({ version });
      const { json } = await session.request('tools/call', { name: 'must', arguments: {} });
      expect(json.result).toEqual(text('at last'));
    },
  );

  test('asks its client meanwhile', async () => {
    route.work = async (task) => {
      const { content } = await task.ask('name', 'elicitation/create', form('Name?'));
      return text(`Hello, ${content.value}`);
    };
    const session = await connect({ capabilities: { elicitation: {} } });
    const stream = await session.open('tools/call', { name: 'must', arguments: {} });
    const { json: question } = await stream.find(({ json }) => json?.method === 'elicitation/create');
    expect(question.params).not.toHaveProperty('_meta');
    const result = { action: 'accept', content: { value: 'Ada' } };
    await session.post({ jsonrpc: '2.0', id: question.id, result });
    expect((await stream.done).text).toContain('Hello, Ada');
  });

  test('is cancelled with the call', async () => {
    const session = await connect();
    const stream = session.open('tools/call', { name: 'must', arguments: {} }, { id: 77 });
    const task = await route.server.task();
    await until(() => task.looks > 0, 'a look');
    await session.notify('notifications/cancelled', { requestId: 77 });
    await until(() => task.cancels > 0, 'the cancellation');
    await (await stream).done.catch(() => {});
  });

  test('that fails gives its error', async () => {
    route.work = () => Promise.reject({ code: -32050, message: 'no more' });
    const session = await connect();
    const { json } = await session.request('tools/call', { name: 'must', arguments: {} });
    expect(json.error).toEqual({ code: -32050, message: 'no more' });
  });
});
