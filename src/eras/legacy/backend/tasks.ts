import { LRUCache } from 'lru-cache';
import { CODE, ExchangeError } from '../../../exchange/errors.js';
import type { Exchange } from '../../../exchange/exchange.js';
import { ignoreFailure } from '../../../exchange/failures.js';
import { type Outcome, ownError, ownResult } from '../../../exchange/outcome.js';
import { serverMessageFor } from '../../../exchange/progress.js';
import {
  type KeptHandle,
  type TaskPlace,
  type TaskState,
  taskNotFound,
  tasksUndeclared,
} from '../../../exchange/tasks.js';
import { abortable } from '../../../exchange/utils/abortable.js';
import { type Edits, type NotificationFrame, scanJson } from '../../../jsonrpc/index.js';
import type { RpcReply } from '../../../upstream/rpc-call.js';
import { createdTask } from '../wire/tasks.js';
import type { LegacyCall } from './legacy-call.js';
import type { Roots } from './roots.js';
import type { BackendSession } from './session.js';
import type { Lease } from './session-lease.js';
import { TaskRun } from './task-run.js';
import { readTaskSupport, type TaskSupport } from './task-support.js';

/** How a tool is called that may run as a task, but need not: by a client that would take a handle. */
export type OptionalTasks = 'call' | 'task';

const KEPT_MS = 60_000;
const MAX_INDEXES = 500;
const USUAL_POLL_MS = 1_000;
const SHORTEST_POLL_MS = 50;
const LONGEST_POLL_MS = 10_000;
/** Looks in a row that may fail before the task is given up. */
const MAX_FAILURES = 3;

/** What makes a call one that is to become a task; the server settles on the time that it is kept. */
const AS_TASK: Edits = new Map([
  ['task', '{}'],
  ['inputResponses', undefined],
  ['requestState', undefined],
]);

interface KnownSupport {
  readonly at: number;
  readonly tools: Promise<ReadonlyMap<string, TaskSupport>>;
}

/** A call that is to become a task, and the lease of the session that it is made on. */
export interface TaskCall {
  readonly lease: Lease;
  readonly call: LegacyCall;
  readonly onChange: (frame: NotificationFrame) => void;
}

/** How a call went that was to become a task: with an outcome, or with an answer as any other call. */
export type CarriedOut =
  | { readonly outcome: Outcome; readonly kept: boolean }
  | { readonly outcome: undefined; readonly kept: false; readonly reply: RpcReply };

/** Tool calls that a legacy server runs as tasks, for clients of the other era. */
export class LegacyTasks {
  readonly #roots: Roots;
  readonly #optional: OptionalTasks;
  readonly #support = new LRUCache<string, KnownSupport>({ max: MAX_INDEXES });

  constructor(roots: Roots, optional: OptionalTasks) {
    this.#roots = roots;
    this.#optional = optional;
  }

  /** Whether a server runs tool calls as tasks at all. */
  runs({ info }: BackendSession): boolean {
    return info.toolTasks;
  }

  /** The lists of tools have changed. */
  forget(): void {
    this.#support.clear();
  }

  /** Whether an exchange on this session has to be carried out as a task, or had better be. */
  async wants({ request, caller, taskKeeper }: Exchange, session: BackendSession): Promise<boolean> {
    if (request.method !== 'tools/call' || request.name === undefined || !this.runs(session)) return false;
    const key = `${caller.principal} ${caller.neutralCapabilities.key}`;
    let known = this.#support.get(key);
    if (known === undefined || performance.now() - known.at > KEPT_MS) {
      const tools = readTaskSupport(session, caller.forwarded);
      known = { at: performance.now(), tools };
      this.#support.set(key, known);
      tools.catch(() => this.#support.delete(key));
    }
    const support = (await known.tools.catch(ignoreFailure))?.get(request.name);
    return (
      support === 'required' ||
      (support === 'optional' && taskKeeper !== undefined && this.#optional === 'task')
    );
  }

  /**
   * Carries out a call as a task. A client that takes handles gets one; the session is kept for it, and the lease released
   * once the task is over. For others the task is followed to its end.
   * @throws ExchangeError when the exchange is cancelled first, and the task with it, or when there are too many
   */
  async carryOut(exchange: Exchange, taskCall: TaskCall): Promise<CarriedOut> {
    const place = exchange.taskKeeper?.admit();
    let run: TaskRun | undefined;
    let held: Disposable | undefined;
    try {
      const reply = await taskCall.call.run(AS_TASK);
      const state =
        reply.kind === 'response' && reply.frame.type === 'result'
          ? createdTask(reply.frame.bytes, reply.frame.result, new Date())
          : undefined;
      if (state === undefined) return { outcome: undefined, kept: false, reply };
      const { lease } = taskCall;
      run = this.#begin(exchange, state, taskCall, place, () => {
        held?.[Symbol.dispose]();
        if (place !== undefined) lease.release();
      });
      held = lease.use === 'shared' ? undefined : lease.session.hold(run);
      if (place === undefined) {
        const result = follow(exchange, run);
        const leave = (): void => void run?.end();
        return { outcome: await abortable(exchange.signal, result, { leave }), kept: false };
      }
      lease.park();
      const { info } = lease.session;
      return { outcome: handleOf(state, place.keep(run), info.serverInfo), kept: true };
    } finally {
      if (run === undefined) place?.giveBack();
      if (place === undefined) held?.[Symbol.dispose]();
    }
  }

  #begin(
    exchange: Exchange,
    state: TaskState,
    taskCall: TaskCall,
    place: TaskPlace | undefined,
    onOver: () => void,
  ): TaskRun {
    const { lease, call, onChange } = taskCall;
    const { session } = lease;
    return new TaskRun({
      session,
      state,
      caller: exchange.caller,
      channel: place ?? exchange,
      tell: (frame) =>
        place === undefined
          ? serverMessageFor(exchange, frame, String(call.id))
          : { method: frame.method, params: frame.params, bytes: frame.bytes },
      answerRoots: (ask) => this.#roots.answer(exchange.caller, ask),
      onChange,
      onOver,
    });
  }

  /** Requests about tasks of a client whose own they are not: the gateway knows those that are. */
  unknown(exchange: Exchange, session: BackendSession): Outcome {
    const { method } = exchange.request;
    if (!this.runs(session))
      return ownError({ code: CODE.methodNotFound, message: `Method not found: ${method}` });
    return exchange.taskKeeper === undefined ? tasksUndeclared() : taskNotFound();
  }
}

/** The handle that a client gets in place of the result. */
function handleOf({ text }: TaskState, handle: KeptHandle, serverInfo: string | undefined): Outcome {
  const outcome = ownResult(text, scanJson(text, 1), serverInfo);
  outcome.edits.set('taskId', JSON.stringify(handle.taskId));
  outcome.edits.set('ttlMs', String(handle.ttlMs));
  return { ...outcome, isTask: true };
}

async function follow(exchange: Exchange, run: TaskRun): Promise<Outcome> {
  let failures = 0;
  while (exchange.cancelled === undefined) {
    try {
      await run.look(exchange.caller);
      failures = 0;
    } catch (error) {
      const passing = error instanceof ExchangeError && (error.outcome.status ?? 200) >= 500;
      if (!passing || ++failures >= MAX_FAILURES) {
        void run.end();
        throw error;
      }
    }
    if (run.outcome !== undefined) return run.outcome;
    if (run.state.status === 'cancelled') break;
    await nextLook(run, exchange.signal);
    if (run.outcome !== undefined) return run.outcome;
  }
  return ownError({ code: CODE.internal, message: 'The task was cancelled' });
}

/** Resolves when it is time to look again, or the call is cancelled. */
function nextLook(run: TaskRun, signal: AbortSignal): Promise<void> {
  const asked = run.state.pollIntervalMs ?? USUAL_POLL_MS;
  return new Promise((resolve) => {
    const over = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', over);
      run.onNews(undefined);
      resolve();
    };
    const timer = setTimeout(over, Math.min(Math.max(asked, SHORTEST_POLL_MS), LONGEST_POLL_MS));
    run.onNews(over);
    signal.addEventListener('abort', over);
  });
}
