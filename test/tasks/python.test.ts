import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Rig, startRig } from '../questions/rig.js';
import { startGateway } from '../support/gateway.js';
import { type Loose, until } from '../support/net.js';
import { hasPython, PYTHON_NEEDED, startPythonTasks } from '../support/peers/index.js';
import { legacy, type ModernOptions, modern } from '../support/raw.js';
import { TASKS, text } from './task-server.js';

const ELICITATION = { elicitation: { form: {} } };
const ADA = { action: 'accept', content: { value: 'Ada' } };
const knowing: ModernOptions = { capabilities: { ...TASKS, ...ELICITATION } };

// The server speaks both eras, and has tasks in the modern one alone.
describe.skipIf(!hasPython)(`FastMCP with its extension of tasks${PYTHON_NEEDED}`, () => {
  let rig: Rig;
  beforeAll(async () => {
    rig = await startRig(startPythonTasks, { backend: { leg: 'modern' } });
  });
  afterAll(async () => {
    await rig?.close();
    expect(rig?.recording.violations).toEqual([]);
  });

  describe('and a modern client', () => {
    const call = async (method: string, params: Loose, options = knowing): Promise<Loose> =>
      (await modern(rig.url, method, params, options)).json;
    const begin = async (name: string, args: Loose = {}): Promise<string> =>
      (await call('tools/call', { name, arguments: args })).result.taskId;
    const end = (taskId: string) =>
      until(async () => {
        const { result } = await call('tasks/get', { taskId });
        return ['completed', 'failed', 'cancelled'].includes(result.status) && result;
      }, 'the end of the task');

    test('that takes a handle', async () => {
      expect(await end(await begin('count', { to: 3 }))).toMatchObject({
        status: 'completed',
        result: text('counted to 3'),
      });
      const refused = await end(await begin('refuse'));
      expect(refused).toMatchObject({ status: 'completed', result: { isError: true } });
    });

    test('that is asked', async () => {
      const taskId = await begin('greet');
      const { inputRequests } = await until(async () => {
        const { result } = await call('tasks/get', { taskId });
        return result.status === 'input_required' && result;
      }, 'the question');
      const inputResponses = Object.fromEntries(Object.keys(inputRequests).map((key) => [key, ADA]));
      expect((await call('tasks/update', { taskId, inputResponses })).result.resultType).toBe('complete');
      expect((await end(taskId)).result).toMatchObject(text('accept Ada'));
    });

    test('that cancels', async () => {
      const taskId = await begin('wait');
      expect((await call('tasks/cancel', { taskId })).result.resultType).toBe('complete');
      expect((await end(taskId)).status).toBe('cancelled');
    });

    test('that takes none', async () => {
      const { result } = await call('tools/call', { name: 'count', arguments: { to: 4 } }, {});
      expect(result).toMatchObject(text('counted to 4'));
      const { error } = await call('tools/call', { name: 'crunch', arguments: { dataset: 'x' } }, {});
      expect(error.code).toBe(-32021);
    });
  });

  test('and a legacy client that is served on its legacy side, which has none', async () => {
    const gateway = await startGateway({ '/mcp': rig.peer.url });
    const session = await legacy(gateway.url());
    expect(session.initialize.json.result.capabilities.tasks).toBeUndefined();
    const { json } = await session.request('tools/call', { name: 'crunch', arguments: { dataset: 'x' } });
    await gateway.close();
    expect(json.result).toMatchObject(text('crunched x'));
  });

  describe('and a legacy client', () => {
    test('that wants a task', async () => {
      const session = await legacy(rig.url);
      const params = { name: 'count', arguments: { to: 5 }, task: {} };
      const { task } = (await session.request('tools/call', params)).json.result;
      expect(task).toMatchObject({ status: 'working', pollInterval: 100 });
      const { json } = await session.request('tasks/result', { taskId: task.taskId });
      expect(json.result).toMatchObject(text('counted to 5'));
      expect((await session.request('tasks/get', { taskId: task.taskId })).json.result.status).toBe(
        'completed',
      );
    });

    test('that is asked', async () => {
      const session = await legacy(rig.url, { capabilities: ELICITATION });
      const params = { name: 'greet', arguments: {}, task: {} };
      const { task } = (await session.request('tools/call', params)).json.result;
      const stream = await session.open('tasks/result', { taskId: task.taskId });
      const { json: question } = await stream.find(({ json }) => json?.method === 'elicitation/create');
      await session.post({ jsonrpc: '2.0', id: question.id, result: ADA });
      const { json: told } = await stream.find(({ json }) => json?.result !== undefined);
      expect(told.result).toMatchObject(text('accept Ada'));
    });

    test('that cancels', async () => {
      const session = await legacy(rig.url);
      const params = { name: 'wait', arguments: {}, task: {} };
      const { task } = (await session.request('tools/call', params)).json.result;
      const { json } = await session.request('tasks/cancel', { taskId: task.taskId });
      expect(json.result.status).toBe('cancelled');
    });

    test.each(['2025-11-25', '2025-06-18'])('of %s that wants none', async (version) => {
      const session = await legacy(rig.url, { version, capabilities: ELICITATION });
      const crunch = { name: 'crunch', arguments: { dataset: 'x' } };
      expect((await session.request('tools/call', crunch)).json.result).toMatchObject(text('crunched x'));
      const stream = await session.open('tools/call', { name: 'greet', arguments: {} });
      const { json: question } = await stream.find(({ json }) => json?.method === 'elicitation/create');
      await session.post({ jsonrpc: '2.0', id: question.id, result: ADA });
      const { json: told } = await stream.find(({ json }) => json?.result !== undefined);
      expect(told.result).toMatchObject(text('accept Ada'));
    });
  });
});
