import { CODE } from '../../../exchange/errors.js';
import type { Exchange } from '../../../exchange/exchange.js';
import { type ErrorOutcome, errorObject, type ResultOutcome } from '../../../exchange/outcome.js';
import { isRecord } from '../../../exchange/utils/is-record.js';
import {
  editedObject,
  errorObjectRope,
  Rope,
  resultRope,
  scanJson,
  stringMember,
} from '../../../jsonrpc/index.js';
import { downgradeResult, encodeResult, normalizeResult } from '../wire/results.js';
import type { RevisionFeatures } from '../wire/revisions.js';
import { encodeTask, encodeTaskHandle, encodeTaskResult, namedTask } from '../wire/tasks.js';

/** Sends the response to one request: as the HTTP response, or as a part of that to a batch. */
export type Reply = (status: number, message: Rope, headers?: Readonly<Record<string, string>>) => void;

const RESOURCE_NOT_FOUND = -32002;
/** Requests whose result is a task, and the one whose result is that of the call. */
const RETURNS_TASK: ReadonlySet<string> = new Set(['tasks/get', 'tasks/cancel']);
const TASK_RESULT = 'tasks/result';

/**
 * Statuses that reach a legacy client as such: challenges, throttling, and a gateway or backend that is down. All
 * other errors ride on 200, since SDK clients of this era turn a 4xx into an error without code and message.
 */
const SHOWN_STATUSES: ReadonlySet<number> = new Set([401, 403, 429, 502, 503]);

export function writeResult(
  outcome: ResultOutcome,
  exchange: Exchange,
  features: RevisionFeatures,
  reply: Reply,
): void {
  const { id } = exchange.request;
  const { kept } = outcome;
  const { revision } = exchange.caller;
  const result =
    kept === undefined
      ? encoded(outcome, exchange, features)
      : new Rope().push(
          kept.text(revision, () =>
            encoded({ ...outcome, edits: new Map(outcome.edits) }, exchange, features).toBuffer(),
          ),
        );
  reply(200, resultRope(id, result));
}

function encoded(outcome: ResultOutcome, exchange: Exchange, features: RevisionFeatures): Rope {
  const { method } = exchange.request;
  if (outcome.form === 'neutral') encode(outcome, exchange, features);
  else {
    normalizeResult(method, outcome);
    // Clients of 2025-06-18 and later ignore what they do not know of a newer revision.
    if (!features.resourceLinks) downgradeResult(method, outcome, features);
  }
  return editedObject(outcome.bytes, outcome.node, outcome.edits);
}

function encode(outcome: ResultOutcome, { request }: Exchange, features: RevisionFeatures): void {
  if (outcome.isTask === true) encodeTaskHandle(outcome);
  else if (RETURNS_TASK.has(request.method)) encodeTask(outcome);
  else if (request.method === TASK_RESULT) {
    encodeResult('tools/call', outcome, features);
    encodeTaskResult(outcome, namedTask(request.params) ?? '');
  } else encodeResult(request.method, outcome, features);
}

export function writeError(outcome: ErrorOutcome, exchange: Exchange, reply: Reply): void {
  const { id, method, name } = exchange.request;
  const { headers } = outcome;
  const status = legacyStatus(outcome);
  const code = isForVisitors(outcome, exchange)
    ? CODE.internal
    : legacyCode(outcome, method === 'resources/read' ? name : undefined);
  reply(status, errorObjectRope(id, errorObject(outcome, code)), headers);
}

function legacyStatus(outcome: ErrorOutcome): number {
  if (outcome.origin === 'backend') return 200;
  if (outcome.origin === 'gateway' && outcome.declared !== undefined) return outcome.declared.status.legacy;
  return SHOWN_STATUSES.has(outcome.status ?? 200) ? (outcome.status as number) : 200;
}

/** Of 2025-11-25: the client is to visit pages first, which this one cannot do (client/elicitation). */
const URL_ELICITATION_REQUIRED = -32042;

function isForVisitors({ code }: ErrorOutcome, { caller }: Exchange): boolean {
  if (code !== URL_ELICITATION_REQUIRED) return false;
  const { elicitation } = caller.neutralCapabilities.value;
  return !isRecord(elicitation) || !isRecord(elicitation['url']);
}

/**
 * The code of an error as legacy clients know it.
 * @param uri the uri that a `resources/read` asked for
 */
export function legacyCode(error: ErrorOutcome, uri: string | undefined): number {
  const { code, form } = error;
  if (error.origin === 'gateway') return error.declared?.code.legacy ?? code;
  if (form === 'legacy' || error.origin === 'refusal') return code;
  if (uri !== undefined && isNotFound(error, uri)) return RESOURCE_NOT_FOUND;
  // The backend complains of a message that the gateway wrote: not the client's doing.
  if (code === CODE.parse || code === CODE.invalidRequest) return CODE.internal;
  return code;
}

/**
 * The modern era has no code of its own for a resource that is not there; it can be told from other invalid params by
 * the uri in the data (server/resources, "Error Handling").
 */
function isNotFound(error: ErrorOutcome, uri: string): boolean {
  if (error.code !== CODE.invalidParams || typeof error.data !== 'string') return false;
  const bytes = Buffer.from(error.data);
  return stringMember(bytes, scanJson(bytes, 1), 'uri') === uri;
}
