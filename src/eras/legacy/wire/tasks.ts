import type { Params } from '../../../exchange/exchange.js';
import { type PendingEdits, pendingMember, type ResultOutcome } from '../../../exchange/outcome.js';
import { isRecord } from '../../../exchange/record.js';
import { numberOf, readTask, TASKS_EXTENSION, type TaskState } from '../../../exchange/tasks.js';
import {
  elementsOf,
  getMember,
  type JsonNode,
  membersOf,
  Rope,
  scanJson,
  stringOf,
  writeObject,
} from '../../../jsonrpc/index.js';

/** Member of `_meta` by which what belongs to a task names it (2025-11-25, basic/utilities/tasks). */
export const RELATED_TASK = 'io.modelcontextprotocol/related-task';

/** How members of a task are called here, and in the neutral form. */
const RENAMED = { ttl: 'ttlMs', pollInterval: 'pollIntervalMs' } as const;
/** Members of the neutral form in which a task brings along what this era asks for by `tasks/result`. */
const INLINE = ['result', 'error', 'inputRequests'] as const;

/** The task that a request names. */
export function namedTask({ bytes, node }: Params): string | undefined {
  return node === undefined ? undefined : stringOf(bytes, getMember(bytes, node, 'taskId'));
}

/** Whether a call is to become a task. */
export function asksForTask(bytes: Buffer, params: JsonNode | undefined): boolean {
  return params !== undefined && getMember(bytes, params, 'task')?.kind === 'object';
}

/** Whether a server runs tool calls as tasks when it is asked to. */
export function runsTasks(capabilities: string): boolean {
  if (!capabilities.includes('"tasks"')) return false;
  const { tasks } = JSON.parse(capabilities) as Record<string, unknown>;
  const requests = isRecord(tasks) ? tasks['requests'] : undefined;
  const tools = isRecord(requests) ? requests['tools'] : undefined;
  return isRecord(tools) && isRecord(tools['call']);
}

/**
 * A task of a legacy server in the neutral form; undefined for what is none.
 * @param now stands for times that the server leaves out
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
  const out = new Rope();
  writeObject(out, bytes, node, edits);
  return readTask(out.toBuffer());
}

/** The task in the result of a call that was to become one; see {@link neutralTask}. */
export function createdTask(bytes: Buffer, result: JsonNode, now: Date): TaskState | undefined {
  const task = getMember(bytes, result, 'task');
  return task === undefined ? undefined : neutralTask(bytes, task, now);
}

/** Takes off a result what binds it to the server's own task. */
export function dropRelatedTask(bytes: Buffer, result: JsonNode, edits: PendingEdits): void {
  const meta = getMember(bytes, result, '_meta');
  if (meta === undefined || getMember(bytes, meta, RELATED_TASK) === undefined) return;
  const kept = new Rope();
  writeObject(kept, bytes, meta, new Map([[RELATED_TASK, undefined]]));
  edits.set('_meta', membersOf(bytes, meta).length === 1 ? undefined : kept);
}

/** A neutral result as the answer to a call that was to become a task: the task within it. */
export function encodeTaskHandle(outcome: ResultOutcome): void {
  const task = legacyTask(outcome);
  dropMembers(outcome);
  outcome.edits.set('task', task);
}

/** A neutral result as the answer to `tasks/get` and `tasks/cancel`, which is the task itself. */
export function encodeTask(outcome: ResultOutcome): void {
  const text = legacyTask(outcome).toBuffer();
  dropMembers(outcome);
  for (const { key, value } of membersOf(text, scanJson(text, 1)))
    outcome.edits.set(key, new Rope().pushSlice(text, value.start, value.end));
}

/** Takes all off a result but what is said about the result itself. */
function dropMembers({ bytes, node, edits }: ResultOutcome): void {
  const meta = edits.get('_meta');
  const edited = edits.has('_meta');
  edits.clear();
  for (const { key } of membersOf(bytes, node)) if (key !== '_meta') edits.set(key, undefined);
  if (edited) edits.set('_meta', meta);
}

/** Says of the result of a task whose it is. */
export function encodeTaskResult(outcome: ResultOutcome, taskId: string): void {
  const meta = pendingMember(outcome, '_meta');
  const bound = new Rope();
  const related = new Map([[RELATED_TASK, JSON.stringify({ taskId })]]);
  if (meta?.node.kind === 'object') writeObject(bound, meta.bytes, meta.node, related);
  else writeObject(bound, Buffer.from('{}'), undefined, related);
  outcome.edits.set('_meta', bound);
}

/**
 * JSON text of a task as this era has it, from one in the neutral form: without what is inline there, and failed where the
 * tool has failed ("Task Status Lifecycle").
 */
function legacyTask({ bytes, node, edits }: ResultOutcome): Rope {
  const whole = new Rope();
  writeObject(whole, bytes, node, edits);
  const text = whole.toBuffer();
  const task = scanJson(text, 2);
  const changes: PendingEdits = new Map([['_meta', undefined]]);
  for (const [key, neutral] of Object.entries(RENAMED)) {
    const value = numberOf(text, getMember(text, task, neutral));
    changes.set(neutral, undefined);
    changes.set(key, value === undefined ? undefined : String(value));
  }
  if (changes.get('ttl') === undefined) changes.set('ttl', 'null');
  const said = failureOf(text, task);
  if (said !== undefined) changes.set('status', '"failed"');
  // Clients of this era show the message of a task that failed, and not all of them fetch its result.
  if (said !== undefined && getMember(text, task, 'statusMessage') === undefined && said !== '')
    changes.set('statusMessage', JSON.stringify(said));
  for (const key of INLINE) changes.set(key, undefined);
  const out = new Rope();
  writeObject(out, text, task, changes);
  return out;
}

/** What a task failed with: its error, or the first words of a tool that failed; undefined for one that did not. */
function failureOf(text: Buffer, task: JsonNode): string | undefined {
  const status = stringOf(text, getMember(text, task, 'status'));
  const error = getMember(text, task, 'error');
  if (status === 'failed')
    return (error?.kind === 'object' ? stringOf(text, getMember(text, error, 'message')) : undefined) ?? '';
  const result = getMember(text, task, 'result');
  if (status !== 'completed' || result?.kind !== 'object') return undefined;
  if (getMember(text, result, 'isError')?.kind !== 'true') return undefined;
  const content = getMember(text, result, 'content');
  const [first] = content?.kind === 'array' ? elementsOf(text, content) : [];
  return (first?.kind === 'object' ? stringOf(text, getMember(text, first, 'text')) : undefined) ?? '';
}

/** Server capabilities in the neutral form: the core tasks of tool calls are the extension there. */
export function neutralTaskCapabilities(text: string): string {
  const bytes = Buffer.from(text);
  const root = scanJson(bytes, 2);
  const edits: PendingEdits = new Map([['tasks', undefined]]);
  if (runsTasks(text))
    edits.set('extensions', withExtension(bytes, getMember(bytes, root, 'extensions'), '{}'));
  const out = new Rope();
  writeObject(out, bytes, root, edits);
  return out.toBuffer().toString();
}

/** What a server declares for the tasks that the gateway runs with it. There is no list of them. */
const CORE_TASKS = '{"cancel":{},"requests":{"tools":{"call":{}}}}';

/**
 * Neutral server capabilities as a legacy client reads them.
 * @param tasks the client's revision has tasks
 */
export function legacyTaskCapabilities(text: string, tasks: boolean): string {
  const bytes = Buffer.from(text);
  const root = scanJson(bytes, 2);
  const extensions = getMember(bytes, root, 'extensions');
  const edits: PendingEdits = new Map([['tasks', undefined]]);
  if (extensions !== undefined && getMember(bytes, extensions, TASKS_EXTENSION) !== undefined) {
    edits.set('extensions', withExtension(bytes, extensions, undefined));
    if (tasks) edits.set('tasks', CORE_TASKS);
  }
  const out = new Rope();
  writeObject(out, bytes, root, edits);
  return out.toBuffer().toString();
}

function withExtension(bytes: Buffer, extensions: JsonNode | undefined, value: string | undefined): Rope {
  const out = new Rope();
  const node = extensions?.kind === 'object' ? extensions : undefined;
  writeObject(out, bytes, node, new Map([[TASKS_EXTENSION, value]]));
  return out;
}
