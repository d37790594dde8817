import type { Caller } from '../../../exchange/caller.js';
import type { ClientCapabilities } from '../../../exchange/client-capabilities.js';
import { readCapabilities } from '../../../exchange/client-capabilities.js';
import type { Params } from '../../../exchange/exchange.js';
import { type ErrorOutcome, ownResult, type ResultOutcome } from '../../../exchange/outcome.js';
import { numberOf, TASKS_EXTENSION, type TaskState } from '../../../exchange/tasks.js';
import {
  getMember,
  type JsonNode,
  type ResultFrame,
  Rope,
  scanJson,
  stringOf,
  textOf,
  writeObject,
} from '../../../jsonrpc/index.js';
import { decodeResult } from '../wire/results.js';

/** `pollIntervalMs` of a completed task, whose result is available at once. */
const COMPLETED_POLL_MS = 100;

/** By the capabilities without it: most callers share one object. */
const declared = new WeakMap<ClientCapabilities, ClientCapabilities>();

/** The caller with the tasks extension among its capabilities: the gateway handles the tasks for it. */
export function withTasksExtension(caller: Caller): Caller {
  const { neutralCapabilities } = caller;
  let known = declared.get(neutralCapabilities);
  if (known === undefined) {
    known = addTasksExtension(neutralCapabilities.text);
    declared.set(neutralCapabilities, known);
  }
  return { ...caller, neutralCapabilities: known };
}

function addTasksExtension(text: string): ClientCapabilities {
  const bytes = Buffer.from(text);
  const root = scanJson(bytes, 2);
  const extensions = getMember(bytes, root, 'extensions');
  const extended = new Rope();
  const node = extensions?.kind === 'object' ? extensions : undefined;
  writeObject(extended, bytes, node, new Map([[TASKS_EXTENSION, '{}']]));
  const out = new Rope();
  writeObject(out, bytes, root, new Map([['extensions', extended]]));
  return readCapabilities(out.toBuffer().toString());
}

/** The time to live that a task-augmented call requests (2025-11-25), in milliseconds. */
export function requestedTtl({ bytes, node }: Params): number | undefined {
  const task = node === undefined ? undefined : getMember(bytes, node, 'task');
  return task?.kind === 'object' ? numberOf(bytes, getMember(bytes, task, 'ttl')) : undefined;
}

/** JSON text of a task that is already completed; its id is still empty. */
export function completedTask(ttlMs: number): string {
  const now = new Date().toISOString();
  return JSON.stringify({
    taskId: '',
    status: 'completed',
    createdAt: now,
    lastUpdatedAt: now,
    ttlMs,
    pollIntervalMs: COMPLETED_POLL_MS,
  });
}

/** The outcome of the call in a task that has ended; undefined if the server does not state it. */
export function callOutcome(
  { bytes, result }: ResultFrame,
  { status }: TaskState,
): ResultOutcome | ErrorOutcome | undefined {
  const node = getMember(bytes, result, status === 'completed' ? 'result' : 'error');
  if (node?.kind !== 'object') return undefined;
  if (status !== 'completed') return errorOf(bytes, node);
  const outcome = ownResult(bytes, node);
  decodeResult(bytes, node, outcome.edits);
  return outcome;
}

function errorOf(bytes: Buffer, node: JsonNode): ErrorOutcome | undefined {
  const code = getMember(bytes, node, 'code');
  const message = stringOf(bytes, getMember(bytes, node, 'message'));
  if (code?.kind !== 'number' || message === undefined) return undefined;
  const data = getMember(bytes, node, 'data');
  return {
    type: 'error',
    origin: 'backend',
    form: 'neutral',
    code: Number(textOf(bytes, code)),
    message,
    data: data === undefined ? undefined : textOf(bytes, data),
    raw: bytes.subarray(node.start, node.end),
    status: 200,
    headers: undefined,
  };
}
