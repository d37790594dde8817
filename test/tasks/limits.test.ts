import { describe, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../support/gateway.js';
import { keeper } from '../support/keeper.js';
import type { Step } from '../support/misbehave.js';
import { type Loose, sleep, until } from '../support/net.js';
import { legacy, type ModernOptions, modern } from '../support/raw.js';
import { useVirtualTime } from '../support/virtual-time.js';
import { type LegacyTaskScript, type LegacyTaskServer, startLegacyTaskServer } from './legacy-task-server.js';
import { form, startTaskServer, TASKS, type TaskServer, text } from './task-server.js';

useVirtualTime();

const keep = keeper();

const KEY = { sealKeys: ['a-key-of-enough-characters'] };
const knowing: ModernOptions = { capabilities: TASKS };
const AT_AN_END = {
  status: 'completed',
  ttl: 60_000,
  createdAt: '2026-01-01T00:00:00Z',
  lastUpdatedAt: '2026-01-01T00:00:00Z',
};
const as = (name: string): ModernOptions => ({ ...knowing, headers: { authorization: `Bearer ${name}` } });

interface Setting {
  readonly server: LegacyTaskServer;
  readonly gateway: TestGateway;
  begin(options?: ModernOptions, path?: string): Promise<string>;
  ask(method: string, taskId: string, options?: ModernOptions, path?: string): Promise<Loose>;
}

async function start(tasks: Loose = {}, script: LegacyTaskScript = {}, route: Loose = {}): Promise<Setting> {
  const server = await keep(startLegacyTaskServer(undefined, script));
  const given = { backend: { url: server.url }, tasks, ...route };
  const gateway = await keep(startGateway({ '/mcp': given, '/other': given }, KEY));
  const call = async (method: string, params: Loose, options: ModernOptions, path?: string) =>
    (await modern(gateway.url(path), method, params, options)).json;
  return {
    server,
    gateway,
    async begin(options = knowing, path) {
      const json = await call('tools/call', { name: 'must', arguments: {} }, options, path);
      return json.result?.taskId ?? Promise.reject(Object.assign(new Error('no task'), json.error));
    },
    ask: (method, taskId, options = knowing, path) =>
      call(`tasks/${method}`, { taskId, inputResponses: {} }, options, path),
  };
}

const NOT_FOUND = {
  code: -32602,
  message: 'Failed to retrieve task: Task not found',
  data: { eragate: 'ERAGATE_TASK_NOT_FOUND' },
};
const METHODS = ['get', 'update', 'cancel'];

describe('the name of a task is good', () => {
  test('for nobody else, however it was come by', async () => {
    const { server, begin, ask } = await start();
    const id = await begin(as('ada'));
    for (const method of METHODS) {
      for (const other of [as('bob'), knowing]) {
        expect((await ask(method, id, other)).error).toEqual(NOT_FOUND);
      }
    }
    expect(server.tasks[0]).toMatchObject({ cancels: 0, looks: 0 });
    expect((await ask('get', id, as('ada'))).result.status).toBe('working');
  });

  test('on no other route, though it leads to the same server', async () => {
    const { server, begin, ask } = await start();
    const id = await begin();
    for (const method of METHODS) expect((await ask(method, id, knowing, '/other')).error).toEqual(NOT_FOUND);
    expect(server.tasks[0]).toMatchObject({ cancels: 0, looks: 0 });
  });

  test('as it is alone: what is made up, or the server’s own, names nothing', async () => {
    const { server, begin, ask } = await start();
    const id = await begin();
    const flipped = `${id.slice(0, -2)}${id.at(-2) === 'A' ? 'B' : 'A'}${id.at(-1)}`;
    for (const name of [flipped, server.tasks[0]?.taskId ?? '', 'x', 'é', `${id}=`, 'x'.repeat(9_000)])
      for (const method of METHODS) expect((await ask(method, name)).error).toEqual(NOT_FOUND);
    expect(server.tasks[0]).toMatchObject({ cancels: 0, looks: 0 });
  });

  test.each(METHODS)('for tasks/%s of clients that know tasks alone', async (method) => {
    const { server, begin, ask } = await start();
    const id = await begin();
    for (const name of [id, 'x'])
      expect((await ask(method, name, {})).error).toMatchObject({
        code: -32021,
        data: { requiredCapabilities: TASKS },
      });
    expect(server.tasks[0]).toMatchObject({ cancels: 0, looks: 0 });
  });

  test('in the process that holds the task alone', async () => {
    const { gateway, begin, ask } = await start();
    const id = await begin();
    await gateway.restart();
    expect((await ask('get', id)).error).toEqual(NOT_FOUND);
  });

  test('for a session’s principal, for the tasks of a modern server', async () => {
    const server: TaskServer = await keep(startTaskServer());
    const gateway = await keep(startGateway({ '/mcp': server.url, '/other': server.url }, KEY));
    const session = (name: string, path?: string) =>
      legacy(gateway.url(path), { headers: { authorization: `Bearer ${name}` } });
    const ada = await session('ada');
    const ids: string[] = [];
    for (const name of ['slow', 'now']) {
      const { json } = await ada.request('tools/call', { name, arguments: {}, task: {} });
      ids.push(json.result.task.taskId);
    }
    for (const stranger of [await session('bob'), await session('ada', '/other')])
      for (const taskId of [...ids, server.tasks[0]?.taskId, 'x'])
        for (const method of ['tasks/get', 'tasks/result', 'tasks/cancel'])
          expect((await stranger.request(method, { taskId })).json.error).toEqual(NOT_FOUND);
    expect(server.tasks[0]).toMatchObject({ cancels: 0, looks: 0 });
    for (const method of ['tasks/list', 'tasks/update', 'tasks/nonsense'])
      expect((await ada.request(method, { taskId: ids[0] })).json.error.code).toBe(-32601);
    await gateway.restart();
    const again = await session('ada');
    expect((await again.request('tasks/get', { taskId: ids[0] })).json.result.status).toBe('working');
    expect((await again.request('tasks/get', { taskId: ids[1] })).json.error).toEqual(NOT_FOUND);
  });
});

test('the names of tasks are in no log', async () => {
  const { server, gateway, begin, ask } = await start();
  const id = await begin();
  for (const method of METHODS) await ask(method, id);
  const modernServer = await keep(startTaskServer());
  const other = await keep(startGateway({ '/mcp': modernServer.url }));
  const session = await legacy(other.url());
  const params = { name: 'slow', arguments: {}, task: {} };
  const { taskId } = (await session.request('tools/call', params)).json.result.task;
  await session.request('tasks/get', { taskId });
  const own = modernServer.tasks[0]?.taskId ?? '';
  await modern(other.url(), 'tasks/get', { taskId: own }, knowing);
  const logs = JSON.stringify([...gateway.logs, ...other.logs]);
  expect(logs).toContain('"method":"tasks/get"');
  for (const name of [id, taskId, own, server.tasks[0]?.taskId]) expect(logs).not.toContain(name);
});

describe('a task is kept', () => {
  test('no longer than its server says, and is then cancelled, and its session given back', async () => {
    const { server, begin, ask } = await start({}, { task: { ttl: 300 } }, { sessions: { idle: '50ms' } });
    const id = await begin();
    expect((await ask('get', id)).result.ttlMs).toBe(300);
    await until(() => server.tasks[0]?.cancels === 1, 'the end of the task');
    expect((await ask('get', id)).error).toEqual(NOT_FOUND);
    await until(() => server.sessions.size === 0, 'the end of the session', 10_000);
  });

  test('no longer than the configuration says, which the client is told', async () => {
    const { server, begin, ask } = await start({ ttl: '400ms' }, { task: { ttl: null } });
    const id = await begin();
    expect((await ask('get', id)).result.ttlMs).toBe(400);
    await until(() => server.tasks[0]?.cancels === 1, 'the end of the task');
    expect((await ask('get', id)).error).toEqual(NOT_FOUND);
  });

  test('on its session, which nobody else gets, and which does not count meanwhile', async () => {
    const { server, begin, ask, gateway } = await start({}, {}, { sessions: { max: 1, idle: '1h' } });
    const options = { capabilities: { ...TASKS, elicitation: { form: {} } } };
    const ids = [await begin(options), await begin(options)];
    expect(new Set(server.tasks.map(({ session }) => session)).size).toBe(2);
    const other = await modern(gateway.url(), 'tools/call', { name: 'plain', arguments: {} }, options);
    expect(other.json.result).toMatchObject(text('plain at once'));
    for (const [n, id] of ids.entries()) {
      server.tasks[n]?.complete(text(`${n}`));
      expect((await ask('get', id, options)).result.result).toMatchObject(text(`${n}`));
    }
    await until(() => server.sessions.size === 1, 'the end of the sessions above the limit');
  });

  test('on a session of its own, where each call has one, which ends with it', async () => {
    const { server, begin, ask } = await start({}, {}, { sessions: { isolation: 'call' } });
    const ids = [await begin(), await begin()];
    expect(new Set(server.tasks.map(({ session }) => session)).size).toBe(2);
    server.tasks[0]?.complete(text('done'));
    expect((await ask('get', ids[0] as string)).result.result).toMatchObject(text('done'));
    await until(() => !server.sessions.has(server.tasks[0]?.session ?? ''), 'the end of the session');
    expect(server.sessions.has(server.tasks[1]?.session ?? '')).toBe(true);
    expect((await ask('get', ids[1] as string)).result.status).toBe('working');
  });

  test('with the credentials of now', async () => {
    const { server, begin, ask } = await start();
    const id = await begin(as('ada'));
    await ask('get', id, as('ada'));
    const { headers } = server.received('tasks/get').at(-1) as Loose;
    expect(headers.authorization).toBe('Bearer ada');
  });
});

describe('a crowd', () => {
  test('is told where the limit of a principal is, before a task is made, and others are not', async () => {
    const { server, begin, ask } = await start({ maxPerPrincipal: 2 });
    const ids = [await begin(as('ada')), await begin(as('ada'))];
    await expect(begin(as('ada'))).rejects.toMatchObject({
      code: -32603,
      message: expect.stringContaining('limit of 2 tasks of one principal reached'),
      data: { eragate: 'ERAGATE_QUOTA' },
    });
    expect(server.tasks).toHaveLength(2);
    await begin(as('bob'));
    server.tasks[0]?.complete(text('done'));
    await expect(begin(as('ada'))).rejects.toThrow();
    // What was told can make way.
    expect((await ask('get', ids[0] as string, as('ada'))).result.status).toBe('completed');
    await begin(as('ada'));
    expect((await ask('get', ids[0] as string, as('ada'))).error).toEqual(NOT_FOUND);
    expect((await ask('get', ids[1] as string, as('ada'))).result.status).toBe('working');
  });

  test('finds no more tasks than the limit of the route, over all principals', async () => {
    const { server, begin, gateway } = await start({ max: 5 });
    const all = await Promise.allSettled(Array.from({ length: 40 }, (_, n) => begin(as(`p${n}`))));
    expect(all.filter(({ status }) => status === 'fulfilled')).toHaveLength(5);
    const refused = all.find((one) => one.status === 'rejected') as PromiseRejectedResult;
    expect(refused.reason.message).toContain('limit of 5 tasks reached');
    expect(server.tasks).toHaveLength(5);
    // What needs no handle needs no place.
    const plain = await modern(gateway.url(), 'tools/call', { name: 'plain', arguments: {} }, as('p39'));
    expect(plain.json.result).toMatchObject(text('plain at once'));
  });

  test('of legacy clients is held to the same limits where results are kept for them', async () => {
    const server = await keep(startTaskServer());
    const gateway = await keep(startGateway({ '/mcp': { backend: { url: server.url }, tasks: { max: 3 } } }));
    const session = await legacy(gateway.url());
    const ids: string[] = [];
    for (let n = 0; n < 3; n++) {
      const { json } = await session.request('tools/call', { name: 'now', arguments: { n }, task: {} });
      ids.push(json.result.task.taskId);
    }
    const calls = server.received('tools/call').length;
    const { json } = await session.request('tools/call', { name: 'now', arguments: {}, task: {} });
    expect(json.error.message).toMatch(/limit of 3 tasks/);
    expect(server.received('tools/call')).toHaveLength(calls);
    const told = await session.request('tasks/result', { taskId: ids[0] });
    expect(told.json.result).toMatchObject(text('at once: {"n":0}'));
  });
});

describe('a server', () => {
  test('that is down for a while has its tasks when it is back', async () => {
    const { server, begin, ask } = await start();
    const id = await begin();
    await server.stop();
    expect((await ask('get', id)).error.code).toBe(-32603);
    expect((await ask('cancel', id)).error.code).toBe(-32603);
    await server.start();
    expect((await ask('get', id)).result.status).toBe('working');
    server.tasks[0]?.complete(text('done'));
    expect((await ask('get', id)).result.result).toMatchObject(text('done'));
  });

  test('that loses the session loses the task, which has failed', async () => {
    const { server, begin, ask } = await start();
    const id = await begin();
    server.forget();
    for (let n = 0; n < 2; n++) {
      const { result } = await ask('get', id);
      expect(result).toMatchObject({ status: 'failed', error: { code: -32603 } });
      expect(result.error.message).toMatch(/lost the session/);
    }
    expect((await ask('cancel', id)).result).toEqual({ resultType: 'complete' });
    await begin();
  });

  test('that loses the session of a task that somebody waits for tells so', async () => {
    const { server, gateway } = await start();
    const waiting = modern(gateway.url(), 'tools/call', { name: 'must', arguments: {} });
    const task = await server.task();
    await until(() => task.looks > 0, 'a look');
    server.forget();
    expect((await waiting).json.error.message).toMatch(/lost the session/);
  });

  test('that breaks the stream on which a result is waited for is asked again', async () => {
    const { server, begin, ask } = await start();
    const options = { capabilities: { ...TASKS, elicitation: { form: {} } } };
    const id = await begin(options);
    const task = server.tasks[0];
    void task?.ask('elicitation/create', form('Name?'));
    expect((await ask('get', id, options)).result.status).toBe('input_required');
    task?.waiting[0]?.stream.destroy();
    await until(() => task?.waiting.length === 0, 'the break');
    task?.complete(text('done'));
    expect((await ask('get', id, options)).result.result).toMatchObject(text('done'));
  });

  test('that does not wait for the end where its result is asked for is asked once more then', async () => {
    const { server, begin, ask } = await start({}, { refusesResult: true });
    const id = await begin();
    const task = server.tasks[0];
    if (task) task.status = 'input_required';
    expect((await ask('get', id)).result.status).toBe('working');
    task?.complete(text('done'));
    expect((await ask('get', id)).result.result).toMatchObject(text('done'));
  });

  test('that knows a task no more says so itself', async () => {
    const { server, begin, ask } = await start();
    const id = await begin();
    server.tasks.length = 0;
    expect((await ask('get', id)).error).toMatchObject({ code: -32602 });
  });

  test.each([[{ task: {} }], [{ task: 5 }], [{ task: { taskId: 5, status: 'working' } }], [{ task: null }]])(
    'that answers with %j has answered the call',
    async (result) => {
      const { server, gateway } = await start();
      server.on('tools/call', () => ({ result }));
      const { json } = await modern(gateway.url(), 'tools/call', { name: 'must', arguments: {} }, knowing);
      expect(json.result).toMatchObject({ resultType: 'complete' });
      expect(json.result).not.toHaveProperty('task');
      expect(json.result.content).toEqual([]);
    },
  );

  test('that holds back the result of a task that is over does not hold up a look', async () => {
    const { server, gateway, begin, ask } = await start();
    const late: Step[] = [];
    server.on('tasks/get', ({ params }) => ({ result: { ...AT_AN_END, taskId: params.taskId } }));
    server.on('tasks/result', (step) => void late.push(step) as undefined);
    const id = await begin();
    expect((await ask('get', id)).result).toMatchObject({ resultType: 'complete', status: 'working' });
    const [step] = late;
    step?.sendJson(step.frame({ result: { content: [{ type: 'text', text: 'at last' }] } }));
    await until(async () => (await ask('get', id)).result.status === 'completed', 'the result');
    expect((await ask('get', id)).result.result.content[0].text).toBe('at last');
    // The same for a client that knows no tasks, whose call goes on until the result is there.
    const call = modern(gateway.url(), 'tools/call', { name: 'must', arguments: {} });
    await until(() => late.length === 2, 'the call to ask for its result');
    await sleep(2_500);
    const second = late[1] as Step;
    second.sendJson(second.frame({ result: { content: [{ type: 'text', text: 'as well' }] } }));
    expect((await call).json.result.content[0].text).toBe('as well');
  });

  test('whose list cannot be had is called as if there were no tasks', async () => {
    const { server, gateway } = await start();
    server.on('tools/list', () => ({ error: { code: -32603, message: 'not now' } }));
    const { json } = await modern(gateway.url(), 'tools/call', { name: 'must', arguments: {} }, knowing);
    expect(json.error.message).toMatch(/task augmentation/);
    server.on('tools/list', undefined);
    const again = await modern(gateway.url(), 'tools/call', { name: 'must', arguments: {} }, knowing);
    expect(again.json.result.resultType).toBe('task');
  });
});

describe('the end of the gateway', () => {
  test('is that of the tasks that it keeps, and of their sessions', async () => {
    const { server, begin, gateway } = await start();
    const options = { capabilities: { ...TASKS, elicitation: { form: {} } } };
    await begin(options);
    await begin();
    await gateway.stop();
    expect(server.tasks.map(({ cancels }) => cancels)).toEqual([1, 1]);
    expect(server.sessions.size).toBe(0);
  });
});
