import type { Params } from '../../../exchange/exchange.js';
import { type PendingEdits, pendingMember, type ResultOutcome } from '../../../exchange/outcome.js';
import { numberOf, readTask, type TaskState } from '../../../exchange/tasks.js';
import {
  editedObject,
  elementsOf,
  getMember,
  type JsonNode,
  membersOf,
  type Rope,
  scanJson,
  sliceOf,
  stringMember,
} from '../../../jsonrpc/index.js';

/** Member of `_meta` that names the task that a message belongs to (2025-11-25, basic/utilities/tasks). */
export const RELATED_TASK = 'io.modelcontextprotocol/related-task';

/** Names of members of a task in this era, and in the neutral form. */
const RENAMED = { ttl: 'ttlMs', pollInterval: 'pollIntervalMs' } as const;
/** Members of the neutral form that this era has only in the result of `tasks/result`. */
const INLINE = ['result', 'error', 'inputRequests'] as const;

/** The id of the task that a request is about. */
export function namedTask({ bytes, node }: Params): string | undefined {
  return stringMember(bytes, node, 'taskId');
}

/** Whether the client asks that a call run as a task. */
export function asksForTask(bytes: Buffer, params: JsonNode | undefined): boolean {
  return params !== undefined && getMember(bytes, params, 'task')?.kind === 'object';
}

/**
 * A task of a legacy server in the neutral form; undefined if it is not a task.
 * @param now used for times that the server leaves out
 */
export function neutralTask(bytes: Buffer, node: JsonNode, now: Date): TaskState | undefined {
  if (node.kind !== 'object') return undefined;
  const edits: PendingEdits = new Map();
  for (const [key, neutral] of Object.entries(RENAMED)) {
    const value = numberOf(bytes, getMember(bytes, node, key));
    edits.set(key, undefined);
    edits.set(neutral, value === undefined ? undefined : String(value));
  }
  if (edits.get('ttlMs') === undefined) edits.set('ttlMs', 'null');
  for (const key of ['createdAt', 'lastUpdatedAt'])
    if (getMember(bytes, node, key)?.kind !== 'string') edits.set(key, JSON.stringify(now));
  edits.set('_meta', undefined);
  return readTask(editedObject(bytes, node, edits).toBuffer());
}

/** The task in the result of a call that was to run as one; see {@link neutralTask}. */
export function createdTask(bytes: Buffer, result: JsonNode, now: Date): TaskState | undefined {
  const task = getMember(bytes, result, 'task');
  return task === undefined ? undefined : neutralTask(bytes, task, now);
}

/** Removes the server's own id of the task from a result. */
export function dropRelatedTask(bytes: Buffer, result: JsonNode, edits: PendingEdits): void {
  const meta = getMember(bytes, result, '_meta');
  if (meta === undefined || getMember(bytes, meta, RELATED_TASK) === undefined) return;
  const isOnly = membersOf(bytes, meta).length === 1;
  edits.set('_meta', isOnly ? undefined : editedObject(bytes, meta, new Map([[RELATED_TASK, undefined]])));
}

/** A neutral task as the result of the call that runs as a task: its member `task`. */
export function encodeTaskHandle(outcome: ResultOutcome): void {
  const task = legacyTask(outcome);
  removeMembers(outcome);
  outcome.edits.set('task', task);
}

/** A neutral task as the result of `tasks/get` and `tasks/cancel`, which is the task itself. */
export function encodeTask(outcome: ResultOutcome): void {
  const text = legacyTask(outcome).toBuffer();
  removeMembers(outcome);
  for (const { key, value } of membersOf(text, scanJson(text, 1)))
    outcome.edits.set(key, sliceOf(text, value));
}

/** Removes all members of a result but `_meta`. */
function removeMembers({ bytes, node, edits }: ResultOutcome): void {
  const meta = edits.get('_meta');
  const edited = edits.has('_meta');
  edits.clear();
  for (const { key } of membersOf(bytes, node)) if (key !== '_meta') edits.set(key, undefined);
  if (edited) edits.set('_meta', meta);
}

/** Names the task in the result of `tasks/result`. */
export function encodeTaskResult(outcome: ResultOutcome, taskId: string): void {
  const meta = pendingMember(outcome, '_meta');
  const node = meta?.node.kind === 'object' ? meta.node : undefined;
  const related = new Map([[RELATED_TASK, JSON.stringify({ taskId })]]);
  outcome.edits.set('_meta', editedObject(meta?.bytes ?? EMPTY, node, related));
}

const EMPTY = Buffer.alloc(0);

/**
 * JSON text of a neutral task in the form of this era: without the result, and with the status `failed` if the tool failed
 * ("Task Status Lifecycle").
 */
function legacyTask({ bytes, node, edits }: ResultOutcome): Rope {
  const text = editedObject(bytes, node, edits).toBuffer();
  const task = scanJson(text, 2);
  const changes: PendingEdits = new Map([['_meta', undefined]]);
  for (const [key, neutral] of Object.entries(RENAMED)) {
    const value = numberOf(text, getMember(text, task, neutral));
    changes.set(neutral, undefined);
    changes.set(key, value === undefined ? undefined : String(value));
  }
  if (changes.get('ttl') === undefined) changes.set('ttl', 'null');
  const failure = failureOf(text, task);
  if (failure !== undefined) changes.set('status', '"failed"');
  // Clients of this era show the message of a failed task, and not all of them fetch its result.
  if (failure !== undefined && getMember(text, task, 'statusMessage') === undefined && failure !== '')
    changes.set('statusMessage', JSON.stringify(failure));
  for (const key of INLINE) changes.set(key, undefined);
  return editedObject(text, task, changes);
}

/** Why a task failed: the message of its error, or the first text of a failed tool; undefined if it did not fail. */
function failureOf(text: Buffer, task: JsonNode): string | undefined {
  const status = stringMember(text, task, 'status');
  if (status === 'failed') return stringMember(text, getMember(text, task, 'error'), 'message') ?? '';
  const result = getMember(text, task, 'result');
  if (status !== 'completed' || result?.kind !== 'object') return undefined;
  if (getMember(text, result, 'isError')?.kind !== 'true') return undefined;
  const content = getMember(text, result, 'content');
  const [first] = content?.kind === 'array' ? elementsOf(text, content) : [];
  return stringMember(text, first, 'text') ?? '';
}
