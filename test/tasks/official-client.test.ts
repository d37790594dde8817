import { createRequire } from 'node:module';
import {
  createTaskSessionFromClient,
  type ToolExecutionSettlement,
  toolDeclarationFromMcpTool,
} from '@modelcontextprotocol/ext-tasks/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { person, type Rig, startRig, textOf } from '../questions/rig.js';
import { startGateway } from '../support/gateway.js';
import { type Loose, until } from '../support/net.js';
import { startEverything } from '../support/peers/index.js';
import { CLIENT_INFO, MODERN, modern } from '../support/raw.js';
import { form, startTaskServer, TASKS, text } from './task-server.js';

const ELICITATION = { elicitation: { form: {} } };

/** The official client of tasks, which drives those of either era. */
async function tasksOf(rig: Rig, kind: 'v2 legacy' | 'v2 auto', answer?: Loose) {
  const capabilities = answer === undefined ? {} : ELICITATION;
  const client = await rig.connect(kind, { capabilities });
  const declared = new Map(
    (await client.listTools()).map((tool) => [tool.name, toolDeclarationFromMcpTool(tool)]),
  );
  const asked: Loose[] = [];
  const options: Loose = {
    endpointId: 'test',
    tools: { currentTool: (name: string) => declared.get(name) },
    onInputRequest: async (request: Loose) => {
      asked.push(request);
      return answer;
    },
    ...(kind === 'v2 auto' && {
      // The SDK's own codecs refuse what the extension brings.
      rawDispatch: async ({ method, params }: Loose) =>
        (await modern(rig.url, method, params, { capabilities: { ...capabilities, ...TASKS } })).json,
      v2RequestFraming: {
        protocolVersion: MODERN,
        clientInfo: CLIENT_INFO,
        clientCapabilities: capabilities,
      },
    }),
  };
  const session = createTaskSessionFromClient(client.sdk, options as never);
  return {
    asked,
    session,
    async call(name: string, args: Loose, preference?: 'require') {
      const execution = await session.callTool(name, args, preference && { task: { preference } });
      const states: string[] = [];
      const settled: ToolExecutionSettlement<Loose> = await execution.settle({
        onEvent: (event) => void (event.type === 'task' && states.push(event.task.status)),
      });
      return { kind: execution.kind, outcome: settled.outcome as Loose, states };
    },
    close: () => session.close(),
  };
}

/** The task that a client of the older SDK follows: what it was told of, and the result. */
async function streamed(sdk: Loose, name: string, args: Loose, task?: Loose) {
  await sdk.listTools();
  const messages: string[] = [];
  const params = { name, arguments: args };
  for await (const message of sdk.experimental.tasks.callToolStream(params, undefined, { task })) {
    if (message.type === 'error') throw message.error;
    if (message.type === 'result') return { messages, result: message.result as Loose };
    messages.push(message.type === 'taskStatus' ? message.task.status : message.type);
  }
  return expect.fail('no result');
}

const EVERYTHING = createRequire(import.meta.url).resolve(
  '@modelcontextprotocol/server-everything/dist/index.js',
);
const TOOL = 'simulate-research-query';
const KINDS = ['v2 legacy', 'v2 auto'] as const;

describe('server-everything', () => {
  let rig: Rig;
  beforeAll(async () => {
    rig = await startRig(startEverything);
  });
  afterAll(async () => {
    await rig?.close();
    expect(rig?.recording.violations).toEqual([]);
  });

  const CHOICE = { action: 'accept', content: { interpretation: 'historical' } };

  test.concurrent('and a modern client that takes handles', async () => {
    const client = await tasksOf(rig, 'v2 auto', CHOICE);
    const { outcome, ...rest } = await client.call(TOOL, { topic: 'bees', ambiguous: true });
    expect(rest.kind).toBe('task');
    expect(outcome.status).toBe('completed');
    expect(textOf(outcome.result)).toContain('# Research Report: bees (historical)');
    expect(client.asked).toHaveLength(1);
    expect(client.asked[0]).toMatchObject({
      kind: 'elicitation',
      params: { message: expect.stringContaining('could have multiple interpretations') },
    });
    await client.close();
  }, 30_000);

  test.concurrent('and a modern client that knows no tasks', async () => {
    const client = await rig.connect('v2 auto', { capabilities: {} });
    expect(textOf(await client.callTool(TOOL, { topic: 'wasps' }))).toContain('# Research Report: wasps');
  }, 30_000);

  test.concurrent('and such a client that can be asked', async () => {
    const someone = person({ form: () => CHOICE });
    const client = await rig.connect('v2 auto', { handlers: someone.handlers });
    const result = await client.callTool(TOOL, { topic: 'ants', ambiguous: true });
    expect(textOf(result)).toContain('# Research Report: ants (historical)');
    expect(someone.asked).toHaveLength(1);
  }, 30_000);

  test.concurrent('on standard streams, and a modern client', async () => {
    const command = { command: process.execPath, args: [EVERYTHING, 'stdio'] };
    const gateway = await startGateway({ '/mcp': { backend: command } });
    const params = { name: TOOL, arguments: { topic: 'bugs', ambiguous: true } };
    const options = { capabilities: { ...ELICITATION, ...TASKS } };
    const { taskId } = (await modern(gateway.url(), 'tools/call', params, options)).json.result;
    const look = async (status: string): Promise<Loose> =>
      until(
        async () => {
          const { result } = (await modern(gateway.url(), 'tasks/get', { taskId }, options)).json;
          return result.status === status && result;
        },
        `the task to be ${status}`,
        20_000,
      );
    const keys = Object.keys((await look('input_required')).inputRequests);
    const inputResponses = Object.fromEntries(keys.map((key) => [key, CHOICE]));
    await modern(gateway.url(), 'tasks/update', { taskId, inputResponses }, options);
    expect(textOf((await look('completed')).result)).toContain('# Research Report: bugs (historical)');
    await gateway.close();
  }, 30_000);

  // This client polls to the end before it asks for the result, so that a server cannot ask it anything.
  test.concurrent('and a legacy client', async () => {
    const client = await tasksOf(rig, 'v2 legacy');
    const { outcome, ...rest } = await client.call(TOOL, { topic: 'moths' });
    expect(rest.kind).toBe('task');
    expect(textOf(outcome.result)).toContain('# Research Report: moths');
    await client.close();
  }, 30_000);

  test.concurrent('and a client of the older SDK, which is asked', async () => {
    const someone = person({ form: () => CHOICE });
    const client = await rig.connect('v1', { handlers: someone.handlers });
    const { messages, result } = await streamed(client.sdk, TOOL, { topic: 'flies', ambiguous: true });
    expect(messages).toEqual(expect.arrayContaining(['taskCreated', 'working', 'input_required']));
    expect(textOf(result)).toContain('# Research Report: flies (historical)');
    // It is asked for its roots as well.
    expect(someone.asked.filter(({ method }) => method === 'elicitation/create')).toHaveLength(1);
  }, 30_000);
});

describe('a modern server with the extension', () => {
  let rig: Rig;
  beforeAll(async () => {
    const start = async () =>
      startTaskServer(async (task) => {
        if (task.args?.fails === true) throw { code: -32050, message: 'no more' };
        if (task.args?.waits === true) return new Promise<Loose>(() => {});
        const { action, content } = await task.ask('name', 'elicitation/create', form('Name?'));
        return text(`${action} ${content?.value}`);
      });
    rig = await startRig(start as never);
  });
  afterAll(async () => {
    await rig?.close();
    expect(rig?.recording.violations).toEqual([]);
  });

  describe.each(KINDS)('and client %s', (kind) => {
    test('whose task fails', async () => {
      const client = await tasksOf(rig, kind, { action: 'decline' });
      const { outcome } = await client.call('slow', { fails: true }, 'require');
      expect(outcome.status).toBe('failed');
      expect(outcome.error.message).toContain('no more');
      await client.close();
    });

    test('whose task is cancelled', async () => {
      const client = await tasksOf(rig, kind);
      const execution = await client.session.callTool(
        'slow',
        { waits: true },
        { task: { preference: 'require' } },
      );
      await execution.cancel();
      const { outcome } = await execution.settle();
      expect(outcome.status).toBe('cancelled');
      await client.close();
    });

    test('that answers at once', async () => {
      const client = await tasksOf(rig, kind);
      const { outcome } = await client.call('now', { n: 1 });
      expect(outcome).toMatchObject({ status: 'completed', result: text('at once: {"n":1}') });
      await client.close();
    });
  });

  test.each(KINDS)('that asks client %s', async (kind) => {
    const client = await tasksOf(rig, kind, { action: 'accept', content: { value: 'Ada' } });
    const { outcome, ...rest } = await client.call('slow', {}, 'require');
    expect(rest.kind).toBe('task');
    expect(outcome).toMatchObject({ status: 'completed', result: text('accept Ada') });
    expect(client.asked).toEqual([expect.objectContaining({ kind: 'elicitation' })]);
    await client.close();
  });

  test('that asks a client of the older SDK', async () => {
    const someone = person({ form: () => ({ action: 'accept', content: { value: 'Ada' } }) });
    const client = await rig.connect('v1', { handlers: someone.handlers });
    const { messages, result } = await streamed(client.sdk, 'slow', {}, {});
    expect(messages).toContain('input_required');
    expect(result).toMatchObject(text('accept Ada'));
    expect(someone.asked).toHaveLength(1);
  });

  test('that answers at once gives a legacy client a task that is done, where it insists on one', async () => {
    const client = await tasksOf(rig, 'v2 legacy');
    const { kind, outcome } = await client.call('now', { n: 2 }, 'require');
    expect(kind).toBe('task');
    expect(outcome).toMatchObject({ status: 'completed', result: text('at once: {"n":2}') });
    await client.close();
  });
});
