import { type ErrorFrame, getMember, type JsonNode, scanJson, stringOf, textOf } from '../jsonrpc/index.js';
import type { Caller } from './caller.js';
import type { Channel } from './channel.js';
import type { ClientCapabilities } from './client-capabilities.js';
import { EXCHANGE_ERRORS } from './errors.js';
import { gatewayError, type Outcome } from './outcome.js';
import { isRecord } from './utils/is-record.js';

/** The extension by which the modern era has tasks. The neutral form of tasks is that of the extension. */
export const TASKS_EXTENSION = 'io.modelcontextprotocol/tasks';

/** Declares that a client accepts handles of tasks, or that a server returns them. */
export const TASKS_CAPABILITY = { extensions: { [TASKS_EXTENSION]: {} } } as const;

/** Whether a client or a server declares tasks. */
export function declaresTasks({ value }: ClientCapabilities): boolean {
  return isRecord(value['extensions']) && isRecord(value['extensions'][TASKS_EXTENSION]);
}

export const TASK_STATUSES = ['working', 'input_required', 'completed', 'failed', 'cancelled'] as const;
export type TaskStatus = (typeof TASK_STATUSES)[number];

/** Whether a task in this state can have no other state later. */
export function isFinal(status: TaskStatus): boolean {
  return status === 'completed' || status === 'failed' || status === 'cancelled';
}

/** A task as its server describes it. */
export interface TaskState {
  /** The server's own id. */
  readonly taskId: string;
  readonly status: TaskStatus;
  /** JSON text in the neutral form, with `ttlMs` and `pollIntervalMs`. */
  readonly text: Buffer;
  /** From its creation, in milliseconds; null for no limit. */
  readonly ttlMs: number | null;
  readonly pollIntervalMs: number | undefined;
}

/** @returns undefined for text that is no task in the neutral form */
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

/** A number of milliseconds, rounded; undefined for anything else. */
export function numberOf(bytes: Buffer, node: JsonNode | undefined): number | undefined {
  if (node?.kind !== 'number') return undefined;
  const value = Math.round(Number(textOf(bytes, node)));
  return Number.isSafeInteger(value) && value >= 0 ? value : undefined;
}

/** The client lacks a capability (2026-07-28, "Error Codes"). */
const MISSING_CAPABILITY = -32021;

/** Whether a server refuses a call because its client does not declare tasks (extension, "Capability Negotiation"). */
export function insistsOnTask({ code, bytes, data }: ErrorFrame): boolean {
  if (code !== MISSING_CAPABILITY || data?.kind !== 'object') return false;
  const required = getMember(bytes, data, 'requiredCapabilities');
  const extensions = required?.kind === 'object' ? getMember(bytes, required, 'extensions') : undefined;
  return extensions?.kind === 'object' && getMember(bytes, extensions, TASKS_EXTENSION) !== undefined;
}

/** The error for a request about tasks of a client that does not declare them (extension, "Error Handling"). */
export function tasksUndeclared(): Outcome {
  const data = { requiredCapabilities: TASKS_CAPABILITY };
  return gatewayError(EXCHANGE_ERRORS.ERAGATE_TASKS_UNDECLARED, {}, { data });
}

export function taskNotFound(): Outcome {
  return gatewayError(EXCHANGE_ERRORS.ERAGATE_TASK_NOT_FOUND);
}

/** A task at a backend, followed after the response to the request that created it. */
export interface BackendTask {
  /** As the backend described it last. */
  readonly state: TaskState;
  /** The result of a completed task, or the error of a failed one. */
  readonly outcome: Outcome | undefined;
  /**
   * Updates the state from the backend, which may send server requests meanwhile.
   * @param caller with the credentials of the client's latest request
   * @throws ExchangeError when the backend cannot be asked, or does not have the task any more
   */
  look(caller: Caller): Promise<void>;
  /**
   * Cancels the task at the backend.
   * @throws ExchangeError when the backend cannot be asked
   */
  cancel(caller: Caller): Promise<void>;
  /** Releases what is held for the task, and cancels it if it is not in a final state; never throws. */
  end(): Promise<void>;
}

/** What the client gets in the handle of a task that is kept for it. */
export interface KeptHandle {
  readonly taskId: string;
  readonly ttlMs: number;
}

/** A place for one task. It is the channel of its server requests, which wait there until the client polls. */
export interface TaskPlace extends Channel {
  /** Fills the place. */
  keep(task: BackendTask): KeptHandle;
  /** Frees the place: the call was no task. */
  giveBack(): void;
}

/** Keeps tasks for a client that accepts handles of them. */
export interface TaskKeeper {
  /** @throws ExchangeError when there are too many */
  admit(): TaskPlace;
}

/** Limits of the tasks that are kept on one route. */
export interface TaskLimits {
  /** Longest time for which a task is kept, in milliseconds. */
  readonly ttlMs: number;
  readonly max: number;
  readonly maxPerPrincipal: number;
  /** Of all callers without a credential together. */
  readonly maxAnonymous: number;
}
