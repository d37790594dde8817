import { LRUCache } from 'lru-cache';
import { identityOf } from '../../../exchange/caller.js';
import { EXCHANGE_ERRORS } from '../../../exchange/errors.js';
import type { Exchange } from '../../../exchange/exchange.js';
import { ignoreFailure } from '../../../exchange/failures.js';
import { gatewayError, type Outcome, ownResult } from '../../../exchange/outcome.js';
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
import { followTask } from './task-follower.js';
import { TaskRun } from './task-run.js';
import { readTaskSupport, type TaskSupport } from './task-support.js';

/** How tools that may run as tasks are called for clients that accept task handles. */
export type OptionalTasks = 'call' | 'task';

/** Limit of the lists of tools, of which there is one per principal and capabilities. */
const MAX_LISTS = 500;

/** Edits that make a call run as a task; the server chooses how long it keeps the task. */
const AS_TASK: Edits = new Map([
  ['task', '{}'],
  ['inputResponses', undefined],
  ['requestState', undefined],
]);

interface KnownSupport {
  readonly readAt: number;
  readonly tools: Promise<ReadonlyMap<string, TaskSupport>>;
}

/** A call that is to run as a task, and the lease of its session. */
export interface TaskCall {
  readonly lease: Lease;
  readonly call: LegacyCall;
  readonly onChange: (frame: NotificationFrame) => void;
}

/** How a call ended that was to run as a task. Without an outcome the server answered as to any other call. */
export type TaskCallEnd =
  /** `kept` if the task goes on, with the lease. */
  { readonly outcome: Outcome; readonly kept: boolean } | { readonly reply: RpcReply };

/** Tool calls of modern clients that a legacy server runs as tasks. */
export class LegacyTasks {
  readonly #roots: Roots;
  readonly #optional: OptionalTasks;
  readonly #support = new LRUCache<string, KnownSupport>({ max: MAX_LISTS });

  constructor(roots: Roots, optional: OptionalTasks) {
    this.#roots = roots;
    this.#optional = optional;
  }

  /** Whether a server runs tool calls as tasks. */
  supports({ info }: BackendSession): boolean {
    return info.toolTasks;
  }

  /** Forgets the lists of tools, which have changed. */
  forgetTools(): void {
    this.#support.clear();
  }

  /** Whether a call on this session must run as a task, or may and should. */
  async shouldRun({ request, caller, taskKeeper }: Exchange, session: BackendSession): Promise<boolean> {
    if (request.method !== 'tools/call' || request.name === undefined || !this.supports(session))
      return false;
    const key = `${identityOf(caller)} ${caller.neutralCapabilities.key}`;
    let known = this.#support.get(key);
    if (known === undefined || performance.now() - known.readAt > session.backend.times.taskSupportMs) {
      const tools = readTaskSupport(session, caller.forwarded);
      known = { readAt: performance.now(), tools };
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
   * Runs a call as a task. A client that accepts handles gets one, and the lease is released when the task is over; for
   * others the task is followed to its end.
   * @throws ExchangeError if there are too many tasks, or the exchange is cancelled, and the task with it
   */
  async run(exchange: Exchange, taskCall: TaskCall): Promise<TaskCallEnd> {
    const place = exchange.taskKeeper?.admit();
    let run: TaskRun | undefined;
    let reserved: Disposable | undefined;
    try {
      const reply = await taskCall.call.run(AS_TASK);
      const state =
        reply.kind === 'response' && reply.frame.type === 'result'
          ? createdTask(reply.frame.bytes, reply.frame.result, new Date())
          : undefined;
      if (state === undefined) return { reply };
      const { lease } = taskCall;
      run = this.#begin(exchange, state, taskCall, place, () => {
        reserved?.[Symbol.dispose]();
        if (place !== undefined) lease.release();
      });
      reserved = lease.use === 'shared' ? undefined : lease.session.reserveFor(run);
      if (place === undefined) {
        const result = followTask(exchange, run);
        const leave = (): void => void run?.end();
        return { outcome: await abortable(exchange.signal, result, { leave }), kept: false };
      }
      lease.park();
      const { info } = lease.session;
      return { outcome: handleOf(state, place.keep(run), info.serverInfo), kept: true };
    } finally {
      if (run === undefined) place?.giveBack();
      if (place === undefined) reserved?.[Symbol.dispose]();
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
      messageFor: (frame) =>
        place === undefined
          ? serverMessageFor(exchange, frame, String(call.id))
          : { method: frame.method, params: frame.params, bytes: frame.bytes },
      answerRoots: (ask) => this.#roots.answer(exchange.caller, ask),
      onChange,
      onOver,
    });
  }

  /** The error for a request about a task that the gateway does not keep. */
  unknown(exchange: Exchange, session: BackendSession): Outcome {
    const { method } = exchange.request;
    if (!this.supports(session)) return gatewayError(EXCHANGE_ERRORS.ERAGATE_METHOD_NOT_FOUND, { method });
    return exchange.taskKeeper === undefined ? tasksUndeclared() : taskNotFound();
  }
}

/** The result of a call that goes on as a task. */
function handleOf({ text }: TaskState, handle: KeptHandle, serverInfo: string | undefined): Outcome {
  const outcome = ownResult(text, scanJson(text, 1), serverInfo);
  outcome.edits.set('taskId', JSON.stringify(handle.taskId));
  outcome.edits.set('ttlMs', String(handle.ttlMs));
  return { ...outcome, isTask: true };
}
