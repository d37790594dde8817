import { randomUUID } from 'node:crypto';
import {
  type ScriptedBackend,
  type Step,
  type StepHandler,
  startModernBackend,
} from '../support/misbehave.js';
import { type Loose, until } from '../support/net.js';

export const EXTENSION = 'io.modelcontextprotocol/tasks';
/** What a modern client declares that takes handles of tasks. */
export const TASKS = { extensions: { [EXTENSION]: {} } };

/** A task at the server, to be moved on by the test. */
export interface ServerTask {
  readonly taskId: string;
  readonly args: Loose;
  /** Keys of questions open, and what they are. */
  readonly inputRequests: Record<string, Loose>;
  /** Answers by key, in the order in which they came. */
  readonly inputResponses: [string, Loose][];
  status: string;
  /** `tasks/cancel` came. */
  cancels: number;
  /** Looks so far. */
  looks: number;
  ask(key: string, method: string, params?: Loose): Promise<Loose>;
  complete(result: Loose): void;
  fail(error: Loose): void;
  cancelled(): void;
}

export interface TaskServer extends ScriptedBackend {
  readonly tasks: ServerTask[];
  /** The first task that there is, or the next. */
  task(index?: number): Promise<ServerTask>;
}

const tool = (name: string, more: Loose = {}) => ({
  name,
  description: `The tool ${name}`,
  inputSchema: { type: 'object' },
  ...more,
});
const OUTPUT = { outputSchema: { type: 'array', items: { type: 'number' } } };

const declares = ({ params }: Step): boolean =>
  params._meta?.['io.modelcontextprotocol/clientCapabilities']?.extensions?.[EXTENSION] !== undefined;

function missing(step: Step): undefined {
  const error = {
    code: -32021,
    message: 'Missing required client capability',
    data: { requiredCapabilities: TASKS },
  };
  step.sendJson(step.frame({ error }), 400);
  return undefined;
}

/**
 * A modern server with the tasks extension: `slow` becomes a task for clients that take handles and is answered at once
 * for others, `must` is a task or nothing, `now` never is one. `work`, where it is given, moves each task on.
 * @param both the server has a legacy side, with sessions and without tasks, as FastMCP's
 */
export async function startTaskServer(
  work?: (task: ServerTask) => Promise<Loose>,
  capabilities: Loose = { tools: {}, ...TASKS },
  both = false,
): Promise<TaskServer> {
  const tasks: ServerTask[] = [];
  const details = new Map<string, Loose>();

  function begin(args: Loose): ServerTask {
    const waiting = new Map<string, (answer: Loose) => void>();
    const detail: Loose = {
      createdAt: new Date().toISOString(),
      ttlMs: 60_000,
      pollIntervalMs: 60,
      inputRequests: {},
      waiting,
    };
    const task: ServerTask = {
      taskId: randomUUID(),
      args,
      inputRequests: detail.inputRequests,
      inputResponses: [],
      status: 'working',
      cancels: 0,
      looks: 0,
      ask(key, method, params) {
        detail.inputRequests[key] = params === undefined ? { method } : { method, params };
        task.status = 'input_required';
        return new Promise((resolve) => waiting.set(key, resolve));
      },
      complete(result) {
        detail.result = { resultType: 'complete', ...result };
        task.status = 'completed';
      },
      fail(error) {
        detail.error = error;
        task.status = 'failed';
      },
      cancelled: () => {
        task.status = 'cancelled';
      },
    };
    details.set(task.taskId, detail);
    tasks.push(task);
    if (work !== undefined) {
      work(task).then(
        (result) => task.status !== 'cancelled' && task.complete(result),
        (error) => task.fail(error),
      );
    }
    return task;
  }

  const shared = (task: ServerTask): Loose => {
    const { createdAt, ttlMs, pollIntervalMs } = details.get(task.taskId);
    const { taskId, status } = task;
    return { taskId, status, createdAt, lastUpdatedAt: createdAt, ttlMs, pollIntervalMs };
  };
  const describe = (task: ServerTask): Loose => {
    const { inputRequests, result, error } = details.get(task.taskId);
    const inline = { input_required: { inputRequests }, completed: { result }, failed: { error } }[
      task.status
    ];
    return { resultType: 'complete', ...shared(task), ...inline };
  };
  const about =
    (answer: (task: ServerTask, params: Loose) => Loose): StepHandler =>
    (step) => {
      if (!declares(step)) return missing(step);
      const task = tasks.find(({ taskId }) => taskId === step.params.taskId);
      if (task === undefined) {
        const error = { code: -32602, message: `Unknown task` };
        step.sendJson(step.frame({ error }), 400);
        return undefined;
      }
      return { result: answer(task, step.params) };
    };

  const backend = await startModernBackend({
    capabilities,
    tools: [tool('slow'), tool('must'), tool('now'), tool('numbers', OUTPUT)],
    on: {
      'tools/call': (step) => {
        const { name, arguments: args } = step.params;
        if (name === 'now' || (name !== 'must' && !declares(step))) {
          const content = [{ type: 'text', text: `at once: ${JSON.stringify(args ?? {})}` }];
          return { result: { resultType: 'complete', content, ...(args?.fails ? { isError: true } : {}) } };
        }
        if (!declares(step)) return missing(step);
        if (args?.asksFirst && step.params.inputResponses === undefined) {
          const inputRequests = { sure: { method: 'elicitation/create', params: form('Sure?') } };
          return { result: { resultType: 'input_required', inputRequests, requestState: 'asked' } };
        }
        return {
          result: { resultType: 'task', ...shared(begin({ ...args, ...step.params.inputResponses })) },
        };
      },
      'tasks/get': about((task) => {
        task.looks++;
        return describe(task);
      }),
      'tasks/update': about((task, { inputResponses }) => {
        const { inputRequests, waiting } = details.get(task.taskId);
        for (const [key, answer] of Object.entries<Loose>(inputResponses)) {
          if (inputRequests[key] === undefined) continue;
          delete inputRequests[key];
          task.inputResponses.push([key, answer]);
          if (Object.keys(inputRequests).length === 0) task.status = 'working';
          waiting.get(key)?.(answer);
        }
        return { resultType: 'complete' };
      }),
      'tasks/cancel': about((task) => {
        task.cancels++;
        if (task.args?.stubborn !== true && !['completed', 'failed'].includes(task.status)) task.cancelled();
        return { resultType: 'complete' };
      }),
    },
  });
  if (both) {
    const session = { 'mcp-session-id': randomUUID() };
    backend.on('initialize', (step) => {
      const { protocolVersion } = step.params;
      const serverInfo = { name: 'both', version: '1' };
      const result = { protocolVersion, capabilities: { tools: {} }, serverInfo };
      step.sendJson(step.frame({ result }), 200, session);
      return undefined;
    });
    backend.on('GET', ({ res }) => void res.writeHead(405).end() as undefined);
    backend.on('DELETE', ({ res }) => void res.writeHead(200).end() as undefined);
  }
  return { ...backend, tasks, task: (index = 0) => until(() => tasks[index], `task ${index}`) };
}

export const text = (value: string): Loose => ({ content: [{ type: 'text', text: value }] });

/** Params of a form with one field, `value`. */
export const form = (message: string): Loose => ({
  mode: 'form',
  message,
  requestedSchema: { type: 'object', properties: { value: { type: 'string' } }, required: ['value'] },
});
