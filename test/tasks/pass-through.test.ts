import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startGateway, type TestGateway } from '../support/gateway.js';
import { type Loose, until } from '../support/net.js';
import { legacy, type ModernOptions, modern, openModern } from '../support/raw.js';
import { type LegacyTaskServer, startLegacyTaskServer } from './legacy-task-server.js';
import { EXTENSION, form, startTaskServer, TASKS, type TaskServer, text } from './task-server.js';

const knowing: ModernOptions = { capabilities: { ...TASKS, elicitation: { form: {} } } };

describe('between a modern client and a modern server', () => {
  let server: TaskServer;
  let gateway: TestGateway;
  beforeAll(async () => {
    server = await startTaskServer();
    gateway = await startGateway({ '/mcp': server.url });
  });
  afterAll(async () => {
    await gateway.close();
    await server.close();
  });
  const call = (method: string, params: Loose, options: ModernOptions = knowing) =>
    modern(gateway.url(), method, params, options);

  test('the extension is declared as the server does', async () => {
    const { capabilities } = (await call('server/discover', {})).json.result;
    expect(capabilities).toEqual({ tools: {}, extensions: { [EXTENSION]: {} } });
  });

  test('handles, looks, updates and cancellations are the server’s own', async () => {
    const handle = (await call('tools/call', { name: 'slow', arguments: {} })).json.result;
    const task = server.tasks.at(-1);
    expect(handle).toMatchObject({
      resultType: 'task',
      taskId: task?.taskId,
      status: 'working',
      ttlMs: 60_000,
    });
    const { taskId } = handle;
    const asked = task?.ask('name', 'elicitation/create', form('Name?'));
    const { inputRequests } = (await call('tasks/get', { taskId })).json.result;
    expect(inputRequests).toEqual({ name: { method: 'elicitation/create', params: form('Name?') } });
    const inputResponses = { name: { action: 'decline' }, other: { action: 'accept' } };
    const ack = await call('tasks/update', { taskId, inputResponses });
    expect(ack.json.result).toEqual({ resultType: 'complete' });
    expect(await asked).toEqual({ action: 'decline' });
    task?.complete({ ...text('done'), structuredContent: 5 });
    const done = (await call('tasks/get', { taskId })).json.result;
    expect(done).toMatchObject({
      resultType: 'complete',
      status: 'completed',
      result: { structuredContent: 5 },
    });
    for (let n = 0; n < 2; n++) {
      const cancelled = await call('tasks/cancel', { taskId });
      expect(cancelled.json.result).toEqual({ resultType: 'complete' });
    }
    expect(task?.cancels).toBe(2);
  });

  test('the header names the task on its way to the server', async () => {
    const { taskId } = (await call('tools/call', { name: 'slow', arguments: {} })).json.result;
    for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel']) {
      await call(method, { taskId, inputResponses: {} });
      const { headers } = server.received(method).at(-1) as Loose;
      expect(headers).toMatchObject({ 'mcp-method': method, 'mcp-name': taskId });
    }
  });

  test.each(['tasks/get', 'tasks/update', 'tasks/cancel'])(
    'a header that does not name the task of %s is refused before the server hears of it',
    async (method) => {
      const before = server.received(method).length;
      for (const name of [undefined, 'other', '']) {
        const headers = { 'mcp-name': name };
        const params = { taskId: 'some-task', inputResponses: {} };
        const { status, json } = await call(method, params, { ...knowing, headers });
        expect([status, json.error.code]).toEqual([400, -32020]);
      }
      for (const taskId of [undefined, 5]) {
        const { status, json } = await call(method, { taskId });
        expect([status, json.error.code]).toEqual([400, -32602]);
      }
      expect(server.received(method)).toHaveLength(before);
    },
  );

  test('what the server says of tasks that it does not know, or to clients that know none, is passed on', async () => {
    for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel']) {
      const params = { taskId: 'none', inputResponses: {} };
      expect((await call(method, params)).json.error).toEqual({ code: -32602, message: 'Unknown task' });
      const { status, json } = await call(method, params, {});
      expect([status, json.error.code, json.error.data]).toEqual([
        400,
        -32021,
        { requiredCapabilities: TASKS },
      ]);
    }
    const { status, json } = await call('tools/call', { name: 'must', arguments: {} }, {});
    expect([status, json.error.code]).toEqual([400, -32021]);
  });

  test.each(['tasks/list', 'tasks/result'])('%s is no method', async (method) => {
    const { status, json } = await call(method, { taskId: 'x' });
    expect([status, json.error.code]).toEqual([404, -32601]);
    expect(server.received(method)).toEqual([]);
  });

  test('a handle for a client that takes none is an error, and not passed on', async () => {
    const odd = await startTaskServer();
    odd.on('tools/call', () => ({ result: { resultType: 'task', taskId: 't', status: 'working' } }));
    const second = await startGateway({ '/mcp': odd.url });
    const { json } = await modern(second.url(), 'tools/call', { name: 'slow', arguments: {} });
    await second.close();
    await odd.close();
    expect(json.error).toMatchObject({ code: -32603, message: expect.stringContaining('resultType') });
  });

  test('the status of a task comes on the stream of a subscription, from the acknowledgement on', async () => {
    const tag = (id: unknown) => ({ 'io.modelcontextprotocol/subscriptionId': id });
    const { taskId } = (await call('tools/call', { name: 'slow', arguments: {} })).json.result;
    const told: Loose = {
      taskId,
      status: 'completed',
      createdAt: '2026-01-01T00:00:00Z',
      lastUpdatedAt: '2026-01-01T00:00:00Z',
      ttlMs: null,
      result: text('done'),
    };
    server.on('subscriptions/listen', (step) => {
      const stream = step.stream();
      const notify = (method: string, params: Loose) =>
        stream.event({ jsonrpc: '2.0', method, params: { _meta: tag(step.id), ...params } });
      const { notifications } = step.params;
      notify('notifications/subscriptions/acknowledged', { notifications });
      notify('notifications/tasks', told);
      return undefined;
    });
    const stream = await openModern(
      gateway.url(),
      'subscriptions/listen',
      { notifications: { taskIds: [taskId] } },
      { ...knowing, id: 'listen:7' },
    );
    const first = (await stream.next()).json;
    expect(first).toMatchObject({
      method: 'notifications/subscriptions/acknowledged',
      params: { _meta: tag('listen:7'), notifications: { taskIds: [taskId] } },
    });
    const second = (await stream.next()).json;
    expect(second).toEqual({
      jsonrpc: '2.0',
      method: 'notifications/tasks',
      params: { _meta: tag('listen:7'), ...told },
    });
    stream.abort();
  });
});

describe('between a legacy client and a legacy server', () => {
  let server: LegacyTaskServer;
  let gateway: TestGateway;
  beforeAll(async () => {
    server = await startLegacyTaskServer();
    gateway = await startGateway({ '/mcp': server.url });
  });
  afterAll(async () => {
    await gateway.close();
    await server.close();
  });

  test('tasks are the server’s own, with their questions', async () => {
    const session = await legacy(gateway.url(), { capabilities: { elicitation: {}, tasks: { cancel: {} } } });
    expect(session.initialize.json.result.capabilities.tasks).toEqual({
      list: {},
      cancel: {},
      requests: { tools: { call: {} } },
    });
    expect(server.received('initialize').at(-1)?.json.params.capabilities.tasks).toEqual({ cancel: {} });
    const { tools } = (await session.request('tools/list')).json.result;
    expect(tools[0].execution).toEqual({ taskSupport: 'required' });
    const params = { name: 'must', arguments: {}, task: { ttl: 5_000 } };
    const { task: handle } = (await session.request('tools/call', params)).json.result;
    const task = server.tasks.at(-1);
    expect(handle.taskId).toBe(task?.taskId);
    expect(task?.params).toEqual(params);
    const asked = task?.ask('elicitation/create', form('Name?'));
    const stream = await session.open('tasks/result', { taskId: handle.taskId });
    const { json: question } = await stream.find(({ json }) => json?.method === 'elicitation/create');
    const related = { 'io.modelcontextprotocol/related-task': { taskId: handle.taskId } };
    expect(question.params._meta).toEqual(related);
    await session.post({ jsonrpc: '2.0', id: question.id, result: { action: 'decline' } });
    expect((await asked)?.result).toEqual({ action: 'decline' });
    task?.complete(text('done'));
    const { json: told } = await stream.find(({ json }) => json?.result !== undefined);
    expect(told.result).toEqual({ ...text('done'), _meta: related });
    const { json } = await session.request('tasks/cancel', { taskId: handle.taskId });
    expect(json.error).toMatchObject({ code: -32602, message: expect.stringContaining('terminal') });
  });

  test('the status of a task comes on the session’s stream, and a server may ask about the client’s own', async () => {
    const session = await legacy(gateway.url(), { capabilities: { elicitation: {}, tasks: { cancel: {} } } });
    const before = server.streams.length;
    const stream = await session.listen();
    const { stream: getStream } = await until(() => server.streams[before], 'the stream of the session');
    const params = { taskId: 't', status: 'working' };
    getStream.event({ jsonrpc: '2.0', method: 'notifications/tasks/status', params });
    expect((await stream.next()).json).toEqual({
      jsonrpc: '2.0',
      method: 'notifications/tasks/status',
      params,
    });
    getStream.event({ jsonrpc: '2.0', id: 900, method: 'tasks/get', params: { taskId: 'own' } });
    expect((await stream.next()).json).toMatchObject({ method: 'tasks/get', params: { taskId: 'own' } });
    stream.abort();
  });
});
