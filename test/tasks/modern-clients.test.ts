import { describe, expect, test } from 'vitest';
import { startGateway } from '../support/gateway.js';
import { type Loose, until } from '../support/net.js';
import { type ModernOptions, modern, openModern, type RawResponse } from '../support/raw.js';
import { useVirtualTime } from '../support/virtual-time.js';
import { type LegacyTask, startLegacyTaskServer } from './legacy-task-server.js';
import { EXTENSION, form, TASKS, text } from './task-server.js';
import { watchedRoute } from './watched-route.js';

useVirtualTime();

const route = watchedRoute(startLegacyTaskServer, { '/mcp': {}, '/eager': { tasks: { optional: 'task' } } });

const ASKABLE = { ...TASKS, elicitation: { form: {} }, sampling: {} };
const knowing = (more: ModernOptions = {}): ModernOptions => ({ capabilities: TASKS, ...more });
const call = (name: string, options: ModernOptions = knowing(), args: Loose = {}) =>
  modern(route.url, 'tools/call', { name, arguments: args }, options);
const ask = (method: string, taskId: string, options: ModernOptions = knowing(), more: Loose = {}) =>
  modern(route.url, `tasks/${method}`, { taskId, ...more }, options);
const look = async (taskId: string, options?: ModernOptions): Promise<Loose> =>
  (await ask('get', taskId, options)).json.result;

async function begin(
  options?: ModernOptions,
): Promise<{ id: string; task: LegacyTask; answer: RawResponse }> {
  const count = route.server.tasks.length;
  const answer = await call('must', options);
  return { id: answer.json.result.taskId, task: route.server.tasks[count] as LegacyTask, answer };
}

describe('what a client is told', () => {
  test('is that there are tasks by the extension, and not that there are those of the other era', async () => {
    const { json } = await modern(route.url, 'server/discover');
    expect(json.result.capabilities).toEqual({ tools: {}, extensions: { [EXTENSION]: {} } });
    const { tools } = (await modern(route.url, 'tools/list')).json.result;
    for (const tool of tools) expect(tool).not.toHaveProperty('execution');
  });

  test('is nothing of tasks where the server has none for calls of tools', async () => {
    const other = await startLegacyTaskServer(undefined, {
      capabilities: { tools: {}, tasks: { list: {} } },
    });
    const second = await startGateway({ '/mcp': other.url });
    const { json } = await modern(second.url(), 'server/discover');
    expect(json.result.capabilities).toEqual({ tools: {} });
    const { status, json: refused } = await modern(
      second.url(),
      'tasks/get',
      { taskId: 'x' },
      { capabilities: TASKS },
    );
    expect([status, refused.error.code]).toEqual([404, -32601]);
    await second.close();
    await other.close();
  });
});

describe('a subscription to tasks', () => {
  const listen = (notifications: Loose, options: ModernOptions) =>
    openModern(route.url, 'subscriptions/listen', { notifications }, options);

  test('is acknowledged without them, and over where nothing else is wanted', async () => {
    const { id } = await begin();
    const stream = await listen({ taskIds: [id] }, knowing({ id: 'listen:1' }));
    expect((await stream.next()).json).toMatchObject({
      method: 'notifications/subscriptions/acknowledged',
      params: { notifications: {} },
    });
    await stream.done;
    expect(stream.events.at(-1)?.json).toMatchObject({ id: 'listen:1', result: { resultType: 'complete' } });
  });

  test('is refused to a client that knows none', async () => {
    const stream = await listen({ taskIds: ['x'] }, {});
    const { status, json } = await stream.done;
    expect([status, json.error.code, json.error.data]).toEqual([
      400,
      -32021,
      { requiredCapabilities: TASKS, eragate: 'ERAGATE_TASKS_UNDECLARED' },
    ]);
  });
});

describe('a tool that has to be a task', () => {
  test('gives a handle to a client that takes one', async () => {
    const { answer, task } = await begin();
    expect(answer.status).toBe(200);
    expect(answer.json.result).toEqual({
      resultType: 'task',
      taskId: expect.any(String),
      status: 'working',
      createdAt: '2026-01-01T00:00:00Z',
      lastUpdatedAt: '2026-01-01T00:00:00Z',
      ttlMs: 60_000,
      pollIntervalMs: 60,
      _meta: { 'io.modelcontextprotocol/serverInfo': expect.anything() },
    });
    expect(answer.json.result.taskId).not.toContain(task.taskId);
    expect(task.params).toMatchObject({ name: 'must', task: {} });
  });

  test('is run to its end for a client that takes none', async () => {
    const answer = call('must', {});
    (await route.server.task()).complete(text('at last'));
    const { result } = (await answer).json;
    expect(result).toMatchObject({ resultType: 'complete', ...text('at last') });
    expect(JSON.stringify(result)).not.toContain('related-task');
  });

  test('that fails does so for a client that takes none', async () => {
    route.work = () => Promise.reject({ code: -32050, message: 'no more', data: { left: 0 } });
    expect((await call('must', {})).json.error).toMatchObject({ message: 'no more', data: { left: 0 } });
  });

  test('asks a client that takes none in the way of a call', async () => {
    route.work = async (task) =>
      text(JSON.stringify((await task.ask('elicitation/create', form('Name?'))).result));
    const options = { capabilities: { elicitation: { form: {} } } };
    const params = { name: 'must', arguments: {} };
    const { json } = await modern(route.url, 'tools/call', params, options);
    const { inputRequests, requestState } = json.result;
    const [[key, request]] = Object.entries<Loose>(inputRequests) as [[string, Loose]];
    expect(request.params).toEqual(form('Name?'));
    const inputResponses = { [key]: { action: 'accept', content: { value: 'Ada' } } };
    const retry = { ...params, inputResponses, requestState };
    const told = await modern(route.url, 'tools/call', retry, options);
    expect(JSON.parse(told.json.result.content[0].text)).toEqual(inputResponses[key]);
  });

  test('is cancelled when a client that takes no handle leaves', async () => {
    const stream = openModern(route.url, 'tools/call', { name: 'must', arguments: {} });
    stream.catch(() => {});
    const controller = new AbortController();
    const other = modern(
      route.url,
      'tools/call',
      { name: 'must', arguments: {} },
      { signal: controller.signal },
    ).catch(() => {});
    const task = await route.server.task(1);
    await until(() => task.looks > 0, 'a look');
    controller.abort();
    await until(() => task.cancels > 0, 'the cancellation');
    await other;
    (await route.server.task(0)).complete(text('done'));
    await (await stream).done;
  });

  test('may answer at once nevertheless', async () => {
    const { json } = await call('must', knowing(), { atOnce: true });
    expect(json.result).toMatchObject({ resultType: 'complete', ...text('must at once') });
  });
});

describe('a tool that may be a task', () => {
  test('is called, unless the configuration says otherwise', async () => {
    expect((await call('may')).json.result).toMatchObject(text('may at once'));
    const eager = route.gateway.url('/eager');
    const params = { name: 'may', arguments: {} };
    const { json } = await modern(eager, 'tools/call', params, knowing());
    expect(json.result.resultType).toBe('task');
    const { result } = (await modern(eager, 'tools/call', params)).json;
    expect(result).toMatchObject(text('may at once'));
  });

  test.each(['plain', 'other'])('is not the tool %s, nor is a client’s own wish heard', async (name) => {
    const params = { name, arguments: {}, task: { ttl: 5 } };
    const { json } = await modern(route.url, 'tools/call', params, knowing());
    expect(json.result).toMatchObject(text(`${name} at once`));
    expect(route.server.received('tools/call').at(-1)?.json.params).not.toHaveProperty('task');
  });
});

describe('a task', () => {
  test('tells how it is, and in the end its result', async () => {
    const { id, task } = await begin();
    expect(await look(id)).toMatchObject({
      resultType: 'complete',
      taskId: id,
      status: 'working',
      ttlMs: 60_000,
    });
    task.complete({ ...text('done'), structuredContent: { n: 1.0 }, isError: true });
    const done = await look(id);
    expect(done).toMatchObject({ status: 'completed', result: { resultType: 'complete', isError: true } });
    expect(JSON.stringify(done)).not.toContain('related-task');
    expect(await look(id)).toEqual(done);
    expect(route.server.received('tasks/result')).toHaveLength(
      route.server.received('tasks/result').filter(({ json }) => json.params.taskId !== task.taskId).length +
        1,
    );
  });

  test('tells its error', async () => {
    const { id, task } = await begin();
    task.fail({ code: -32050, message: 'no more', data: { left: 0 } });
    const { status, error } = await look(id);
    expect(status).toBe('failed');
    expect(error).toMatchObject({ message: 'no more', data: { left: 0 } });
  });

  test('is failed where the server says so of a result', async () => {
    const { id, task } = await begin();
    task.complete({ ...text('no'), isError: true });
    task.status = 'failed';
    expect(await look(id)).toMatchObject({ status: 'completed', result: { isError: true } });
  });

  test('can be cancelled, as often as one likes', async () => {
    const { id, task } = await begin();
    for (let n = 0; n < 3; n++) {
      const { status, json } = await ask('cancel', id);
      expect([status, json.result]).toEqual([200, { resultType: 'complete' }]);
    }
    expect(task.cancels).toBe(1);
    const over = await look(id);
    expect(over.status).toBe('cancelled');
    expect(over).not.toHaveProperty('result');
  });

  test('that is over is not cancelled, which is no error', async () => {
    const { id, task } = await begin();
    task.complete(text('done'));
    expect((await ask('cancel', id)).json.result).toEqual({ resultType: 'complete' });
    expect((await look(id)).status).toBe('completed');
  });

  test('is looked at once for all who look at a time', async () => {
    const { id, task } = await begin();
    await Promise.all(Array.from({ length: 20 }, () => look(id)));
    expect(task.looks).toBeLessThan(10);
  });
});

describe('what a task asks', () => {
  test('is in the response to each look, and answered by an update', async () => {
    const options = { capabilities: ASKABLE };
    const { id, task } = await begin(options);
    const asked = task.ask('elicitation/create', { ...form('Name?'), _meta: { kept: 1 } });
    const { status, inputRequests } = await look(id, options);
    expect(status).toBe('input_required');
    const [[key, request]] = Object.entries<Loose>(inputRequests) as [[string, Loose]];
    expect(request).toEqual({
      method: 'elicitation/create',
      params: { ...form('Name?'), _meta: { kept: 1 } },
    });
    expect((await look(id, options)).inputRequests).toEqual(inputRequests);
    const answer = { action: 'accept', content: { value: 'Ada' } };
    const inputResponses = { [key]: answer, 'elicitation-99': { action: 'decline' }, nonsense: 5 };
    const { json } = await ask('update', id, options, { inputResponses });
    expect(json.result).toEqual({ resultType: 'complete' });
    expect((await asked).result).toEqual(answer);
    task.complete(text('Hello, Ada'));
    expect((await look(id, options)).result).toMatchObject(text('Hello, Ada'));
  });

  test('has a key that is never used again', async () => {
    const options = { capabilities: ASKABLE };
    const { id, task } = await begin(options);
    const keys: string[] = [];
    for (let n = 0; n < 3; n++) {
      const asked = task.ask('elicitation/create', form(`${n}?`));
      const [key] = Object.keys((await look(id, options)).inputRequests) as [string];
      keys.push(key);
      const inputResponses = Object.fromEntries(keys.map((one) => [one, { action: 'decline' }]));
      await ask('update', id, options, { inputResponses });
      expect((await asked).result).toEqual({ action: 'decline' });
    }
    expect(new Set(keys).size).toBe(3);
    task.complete(text('done'));
    expect((await look(id, options)).status).toBe('completed');
  });

  test('is asked no more once the server has taken it back', async () => {
    const options = { capabilities: ASKABLE };
    const { id, task } = await begin(options);
    void task.ask('sampling/createMessage', { messages: [], maxTokens: 1 });
    expect((await look(id, options)).status).toBe('input_required');
    task.takeBack();
    await until(async () => (await look(id, options)).status === 'working', 'the withdrawal');
  });

  test('of a client that did not declare it is refused to the server', async () => {
    const { id, task } = await begin();
    const asked = task.ask('elicitation/create', form('Name?'));
    expect((await look(id)).status).toBe('working');
    expect((await asked).error.code).toBe(-32601);
  });

  test.each([[undefined], [5], [[]], ['x']])('is not answered by %j', async (inputResponses) => {
    const { id } = await begin();
    const { json } = await ask('update', id, knowing(), { inputResponses });
    expect(json.error).toMatchObject({ code: -32602, message: expect.stringContaining('inputResponses') });
  });
});
