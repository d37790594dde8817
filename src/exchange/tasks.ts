import { type ErrorFrame, getMember, type JsonNode, scanJson, stringOf, textOf } from '../jsonrpc/index.js';
import type { Caller } from './caller.js';
import type { Channel } from './channel.js';
import type { ClientCapabilities } from './client-capabilities.js';
import { EXCHANGE_ERRORS } from './errors.js';
import { gatewayError, type Outcome } from './outcome.js';
import { isRecord } from './utils/is-record.js';

/** The extension under which the modern era has tasks, and the name that they go by in the neutral form. */
export const TASKS_EXTENSION = 'io.modelcontextprotocol/tasks';

/** Where a client says that it takes handles of tasks, and a server that it gives them. */
export const TASKS_CAPABILITY = { extensions: { [TASKS_EXTENSION]: {} } } as const;

/** Whether a client says that it takes handles of tasks. */
export function declaresTasks({ value }: ClientCapabilities): boolean {
  return isRecord(value['extensions']) && isRecord(value['extensions'][TASKS_EXTENSION]);
}

export const TASK_STATUSES = ['working', 'input_required', 'completed', 'failed', 'cancelled'] as const;
export type TaskStatus = (typeof TASK_STATUSES)[number];

/** A task in a final state does not leave it any more. */
export function isFinal(status: TaskStatus): boolean {
  return status === 'completed' || status === 'failed' || status === 'cancelled';
}

/** What a server said of a task. */
export interface TaskState {
  /** The server's own name for it. */
  readonly taskId: string;
  readonly status: TaskStatus;
  /** JSON text in the neutral form: that of the extension, with `ttlMs` and `pollIntervalMs`. */
  readonly text: Buffer;
  /** From its creation on, in milliseconds; null for as long as it likes. */
  readonly ttlMs: number | null;
  readonly pollIntervalMs: number | undefined;
}

/** @returns undefined for what is no task in the neutral form */
export function readTask(text: Buffer): TaskState | undefined {
  const node = scanJson(text, 1);
  if (node.kind !== 'object') return undefined;
  const taskId = stringOf(text, getMember(text, node, 'taskId'));
  const status = stringOf(text, getMember(text, node, 'status'));
  if (taskId === undefined || !isStatus(status)) return undefined;
  return {
    taskId,
    status,
    text,
    ttlMs: numberOf(text, getMember(text, node, 'ttlMs')) ?? null,
    pollIntervalMs: numberOf(text, getMember(text, node, 'pollIntervalMs')),
  };
}

function isStatus(status: string | undefined): status is TaskStatus {
  return (TASK_STATUSES as readonly (string | undefined)[]).includes(status);
}

/** A whole number of milliseconds; undefined for what is none. */
export function numberOf(bytes: Buffer, node: JsonNode | undefined): number | undefined {
  if (node?.kind !== 'number') return undefined;
  const value = Math.round(Number(textOf(bytes, node)));
  return Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}

/** Code by which servers say that a client lacks a capability (2026-07-28, "Error Codes"). */
const MISSING_CAPABILITY = -32021;

/** Whether a server refuses a call because its client takes no handles of tasks ("Capability Negotiation"). */
export function insistsOnTask({ code, bytes, data }: ErrorFrame): boolean {
  if (code !== MISSING_CAPABILITY || data?.kind !== 'object') return false;
  const required = getMember(bytes, data, 'requiredCapabilities');
  const extensions = required?.kind === 'object' ? getMember(bytes, required, 'extensions') : undefined;
  return extensions?.kind === 'object' && getMember(bytes, extensions, TASKS_EXTENSION) !== undefined;
}

/** The client has to say that it knows tasks before it asks for them ("Error Handling" of the extension). */
export function tasksUndeclared(): Outcome {
  const data = { requiredCapabilities: TASKS_CAPABILITY };
  return gatewayError(EXCHANGE_ERRORS.ERAGATE_TASKS_UNDECLARED, {}, { data });
}

export function taskNotFound(): Outcome {
  return gatewayError(EXCHANGE_ERRORS.ERAGATE_TASK_NOT_FOUND);
}

/** A task that an outbound side looks after at its backend, after the request that made it was answered. */
export interface BackendTask {
  /** As it was seen last. */
  readonly state: TaskState;
  /** What became of the call: a result of a task that completed, an error of one that failed. */
  readonly outcome: Outcome | undefined;
  /**
   * Sees how the task goes on, and has the backend ask what it wants to ask.
   * @param caller who looks, with the credentials of now
   * @throws ExchangeError when the backend cannot be asked, or has no such task any more
   */
  look(caller: Caller): Promise<void>;
  /**
   * Asks the backend to cancel it.
   * @throws ExchangeError when the backend cannot be asked
   */
  cancel(caller: Caller): Promise<void>;
  /** Lets go of it: one that still runs is cancelled, and what was held for it given back; never throws. */
  end(): Promise<void>;
}

/** What the client is told of a task that is kept for it. */
export interface KeptHandle {
  readonly taskId: string;
  readonly ttlMs: number;
}

/** A place for one task, and the way for its questions: they wait there until the client looks. */
export interface TaskPlace extends Channel {
  /** Gives the place to a task. */
  keep(task: BackendTask): KeptHandle;
  /** There is no task after all. */
  giveBack(): void;
}

/** Keeps tasks for a client that takes handles of them. */
export interface TaskKeeper {
  /** @throws ExchangeError when there are too many */
  admit(): TaskPlace;
}

/** Bounds of what is kept of tasks on one route. */
export interface TaskLimits {
  /** Longest time that anything is kept for a task, in milliseconds. */
  readonly ttlMs: number;
  readonly max: number;
  readonly maxPerPrincipal: number;
  /** Of all callers without a credential. */
  readonly maxAnonymous: number;
}
