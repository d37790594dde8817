import type { Caller } from '../../../exchange/caller.js';
import type { Exchange } from '../../../exchange/exchange.js';
import { type ErrorOutcome, errorObject, type ResultOutcome } from '../../../exchange/outcome.js';
import { isRecord } from '../../../exchange/utils/is-record.js';
import { editedObject, errorObjectRope, Rope, resultRope } from '../../../jsonrpc/index.js';
import { encodeError } from '../wire/errors.js';
import { downgradeResult, encodeResult, normalizeResult } from '../wire/results.js';
import type { RevisionFeatures } from '../wire/revisions.js';
import { encodeTask, encodeTaskHandle, encodeTaskResult, namedTask } from '../wire/tasks.js';

/** Sends the response to one request: as the HTTP response, or as a part of that to a batch. */
export type Reply = (status: number, message: Rope, headers?: Readonly<Record<string, string>>) => void;

/** Requests whose result is a task, and the one whose result is that of the call. */
const RETURNS_TASK: ReadonlySet<string> = new Set(['tasks/get', 'tasks/cancel']);
const TASK_RESULT = 'tasks/result';

/** Sends a result as the response to a request. */
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

/** Sends an error as the response to a request. */
export function writeError(outcome: ErrorOutcome, exchange: Exchange, reply: Reply): void {
  const { id, method, name } = exchange.request;
  const { status, code } = encodeError(outcome, {
    uri: method === 'resources/read' ? name : undefined,
    urlElicitation: takesUrlElicitation(exchange.caller),
  });
  reply(status, errorObjectRope(id, errorObject(outcome, code)), outcome.headers);
}

function takesUrlElicitation({ neutralCapabilities }: Caller): boolean {
  const { elicitation } = neutralCapabilities.value;
  return isRecord(elicitation) && isRecord(elicitation['url']);
}
