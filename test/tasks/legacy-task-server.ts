import { randomUUID } from 'node:crypto';
import type { BackendStream } from '../support/backend.js';
import { type LegacyScript, type ScriptedBackend, startLegacyBackend } from '../support/misbehave.js';
import { type Loose, until } from '../support/net.js';

const RELATED = 'io.modelcontextprotocol/related-task';

/** A task at the server, to be moved on by the test. */
export interface LegacyTask {
  readonly taskId: string;
  readonly session: string | undefined;
  readonly params: Loose;
  readonly authorization: string | undefined;
  status: string;
  /** `tasks/cancel` came. */
  cancels: number;
  /** `tasks/get` came. */
  looks: number;
  /** Streams of `tasks/result` that are open. */
  readonly waiting: { readonly id: Loose; readonly stream: BackendStream }[];
  /** Puts a question on the stream of `tasks/result`, as soon as there is one; gives the whole answer. */
  ask(method: string, params: Loose): Promise<Loose>;
  /** Takes the last question back. */
  takeBack(): void;
  complete(result: Loose): void;
  fail(error: Loose): void;
}

export interface LegacyTaskServer extends ScriptedBackend {
  readonly tasks: LegacyTask[];
  task(index?: number): Promise<LegacyTask>;
}

export interface LegacyTaskScript extends LegacyScript {
  /** Members of each task beside or instead of the usual ones. */
  readonly task?: Loose;
  /** `tasks/result` refuses before the end, as some servers do, rather than to wait. */
  readonly refusesResult?: boolean;
}

const tool = (name: string, taskSupport?: string) => ({
  name,
  inputSchema: { type: 'object' },
  ...(taskSupport === undefined ? {} : { execution: { taskSupport } }),
});

/**
 * A server of 2025-11-25 that runs calls as tasks: `must` and `may` as their names say, `plain` never. `work`, where it is
 * given, moves each task on.
 */
export async function startLegacyTaskServer(
  work?: (task: LegacyTask) => Promise<Loose>,
  script: LegacyTaskScript = {},
): Promise<LegacyTaskServer> {
  const tasks: LegacyTask[] = [];
  const outcomes = new Map<string, Loose>();
  const answers = new Map<string, (answer: Loose) => void>();
  let nextQuestion = 0;

  const shown = (task: LegacyTask): Loose => ({
    taskId: task.taskId,
    status: task.status,
    ttl: 60_000,
    createdAt: '2026-01-01T00:00:00Z',
    lastUpdatedAt: '2026-01-01T00:00:00Z',
    pollInterval: 60,
    ...script.task,
  });

  function settle(task: LegacyTask, status: string, outcome: Loose) {
    task.status = status;
    outcomes.set(task.taskId, outcome);
    for (const { id, stream } of task.waiting.splice(0)) {
      stream.event({ jsonrpc: '2.0', id, ...outcome });
      stream.end();
    }
  }

  function begin(params: Loose, session: string | undefined, authorization: string | undefined): LegacyTask {
    const task: LegacyTask = {
      taskId: randomUUID(),
      session,
      params,
      authorization,
      status: 'working',
      cancels: 0,
      looks: 0,
      waiting: [],
      async ask(method, asked) {
        const id = nextQuestion++;
        task.status = 'input_required';
        const { stream } = await until(() => task.waiting[0], 'a request for the result');
        const _meta = { ...asked._meta, [RELATED]: { taskId: task.taskId } };
        const answer = new Promise<Loose>((resolve) => answers.set(`${session} ${id}`, resolve));
        stream.event({ jsonrpc: '2.0', id, method, params: { ...asked, _meta } });
        const given = await answer;
        task.status = 'working';
        return given;
      },
      takeBack() {
        const params = { requestId: nextQuestion - 1 };
        task.waiting[0]?.stream.event({ jsonrpc: '2.0', method: 'notifications/cancelled', params });
        task.status = 'working';
      },
      complete(result) {
        const _meta = { ...result._meta, [RELATED]: { taskId: task.taskId } };
        settle(task, 'completed', { result: { ...result, _meta } });
      },
      fail: (error) => settle(task, 'failed', { error }),
    };
    tasks.push(task);
    if (work !== undefined)
      work(task).then(
        (result) => task.status !== 'cancelled' && task.complete(result),
        (error) => task.fail(error),
      );
    return task;
  }

  const find = (session: string | undefined, taskId: string) =>
    tasks.find((task) => task.taskId === taskId && task.session === session);
  const notFound = { error: { code: -32602, message: 'Failed to retrieve task: Task not found' } };

  const backend = await startLegacyBackend({
    capabilities: { tools: {}, tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } } },
    tools: [tool('must', 'required'), tool('may', 'optional'), tool('plain', 'forbidden'), tool('other')],
    ...script,
    intercept(exchange) {
      const { json } = exchange;
      const session = exchange.headers['mcp-session-id'];
      if (json?.method === undefined && (json?.result ?? json?.error) !== undefined)
        answers.get(`${session} ${json.id}`)?.(json);
      return script.intercept?.(exchange) ?? false;
    },
    on: {
      'tools/call': ({ params, session, headers }) => {
        if (params.name === 'must' && params.task === undefined)
          return { error: { code: -32601, message: 'Tool must requires task augmentation' } };
        if (params.task === undefined || params.arguments?.atOnce)
          return { result: { content: [{ type: 'text', text: `${params.name} at once` }] } };
        return { result: { task: shown(begin(params, session, headers.authorization)) } };
      },
      'tasks/get': ({ session, params }) => {
        const task = find(session, params.taskId);
        if (task === undefined) return notFound;
        task.looks++;
        return { result: shown(task) };
      },
      'tasks/result': (step) => {
        const task = find(step.session, step.params.taskId);
        if (task === undefined) return notFound;
        const outcome = outcomes.get(task.taskId);
        if (outcome !== undefined) return outcome as { result: Loose };
        if (script.refusesResult)
          return {
            error: { code: -32600, message: `Task not completed yet (current state: ${task.status})` },
          };
        const waiter = { id: step.id, stream: step.stream() };
        task.waiting.push(waiter);
        step.res.on('close', () => task.waiting.splice(task.waiting.indexOf(waiter) >>> 0, 1));
        return undefined;
      },
      'tasks/cancel': ({ session, params }) => {
        const task = find(session, params.taskId);
        if (task === undefined) return notFound;
        if (['completed', 'failed', 'cancelled'].includes(task.status))
          return {
            error: { code: -32602, message: `Cannot cancel task in terminal status: ${task.status}` },
          };
        task.cancels++;
        settle(task, 'cancelled', { error: { code: -32603, message: 'no result' } });
        return { result: shown(task) };
      },
      ...script.on,
    },
  });
  return { ...backend, tasks, task: (index = 0) => until(() => tasks[index], `task ${index}`) };
}
