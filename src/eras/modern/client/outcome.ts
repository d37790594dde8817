import { CODE } from '../../../exchange/errors.js';
import type { Exchange } from '../../../exchange/exchange.js';
import { isPersonal } from '../../../exchange/forwarded-headers.js';
import {
  type ErrorOutcome,
  errorObject,
  type Outcome,
  type ResultOutcome,
} from '../../../exchange/outcome.js';
import type { CachedResult } from '../../../exchange/result-cache/cached-result.js';
import { MAY_ASK } from '../../../exchange/server-requests.js';
import { declaresTasks } from '../../../exchange/tasks.js';
import { errorObjectRope, errorRope, Rope, resultRope, writeObject } from '../../../jsonrpc/index.js';
import { encodeError } from '../wire/errors.js';
import { MODERN_CODE } from '../wire/names.js';
import { encodeResult, normalizeResult } from '../wire/results.js';
import { takesMode, urlElicitations } from '../wire/server-requests.js';
import type { PendingRequest } from './pending-requests.js';

const CLOSE_BRACE = 0x7d;
const DISCOVER = 'server/discover';

/** Methods of the revision; whether others exist is known to the backend only. */
const CORE_METHODS: ReadonlySet<string> = new Set([
  'tools/list',
  'tools/call',
  'prompts/list',
  'prompts/get',
  'resources/list',
  'resources/templates/list',
  'resources/read',
  'completion/complete',
]);

/**
 * Statuses of temporary failures, which become 503 for `server/discover`: clients find out the era from the response, and
 * SDK clients take 429, for example, as proof of an older revision.
 */
const TEMPORARY: ReadonlySet<number> = new Set([429, 502, 504]);

/** Legacy error: the user has to open a URL before the call is retried. Servers on Python's SDK also send it to modern requests. */
const URL_ELICITATION_REQUIRED = -32042;

/**
 * Writes the outcome of an exchange to one of the HTTP requests that wait for it.
 *
 * @param sealRetry makes the `requestState` of a retry that repeats the call
 */
export function writeOutcome(
  pending: PendingRequest,
  exchange: Exchange,
  outcome: Outcome,
  sealRetry: () => string,
): void {
  if (outcome.type === 'result') {
    if (outcome.kept === undefined) writeResult(pending, exchange, outcome);
    else writeCached(pending, exchange, outcome, outcome.kept);
  } else if (isUrlElicitation(outcome)) writeUrlElicitation(pending, exchange, outcome, sealRetry);
  else writeError(pending, exchange, outcome);
}

function isUrlElicitation({ code, origin }: ErrorOutcome): boolean {
  return code === URL_ELICITATION_REQUIRED && origin === 'backend';
}

function writeError({ response, id }: PendingRequest, exchange: Exchange, outcome: ErrorOutcome): void {
  const { method, name } = exchange.request;
  const { headers, form } = outcome;
  const uri = method === 'resources/read' ? name : undefined;
  const { status, code, data } = encodeError(outcome, { uri, knownMethod: CORE_METHODS.has(method) });
  const isTemporary = method === DISCOVER && form !== 'modern' && TEMPORARY.has(status);
  response.end(
    isTemporary ? 503 : status,
    errorObjectRope(id, errorObject(outcome, code, data)),
    isTemporary ? { 'retry-after': '1', ...headers } : headers,
  );
}

/**
 * Writes the URLs of a -32042 error as input requests (client/elicitation, "URL mode"). The client's retry repeats the
 * call, so nothing is kept for it.
 */
function writeUrlElicitation(
  pending: PendingRequest,
  exchange: Exchange,
  outcome: ErrorOutcome,
  sealRetry: () => string,
): void {
  const { response, id } = pending;
  const { request, caller } = exchange;
  if (!MAY_ASK.has(request.method) || !takesMode(caller.capabilities.value['elicitation'], 'url')) {
    const data = JSON.stringify({ requiredCapabilities: { elicitation: { url: {} } } });
    response.end(400, errorRope(id, MODERN_CODE.missingClientCapability, outcome.message, data));
    return;
  }
  const requests = typeof outcome.data === 'string' ? urlElicitations(outcome.data) : undefined;
  if (requests === undefined) {
    response.end(200, errorRope(id, CODE.internal, outcome.message, outcome.data));
    return;
  }
  const result = new Rope().push('{"resultType":"input_required","inputRequests":{');
  for (const [index, entry] of requests.entries())
    result.push(`${index === 0 ? '' : ','}"elicitation-${index + 1}":`).push(entry);
  response.end(200, resultRope(id, result.push(`},"requestState":"${sealRetry()}"}`)));
}

/** Writes a cached result, whose encoded text is cached too, with the rest of its time to live. */
function writeCached(
  { response, id }: PendingRequest,
  exchange: Exchange,
  outcome: ResultOutcome,
  kept: CachedResult,
): void {
  const forcePrivate = isPersonal(exchange.caller.forwarded);
  const scope = kept.freshness.shared && !forcePrivate ? 'public' : 'private';
  const text = kept.text(scope, () => {
    const own = { ...outcome, edits: new Map(outcome.edits) };
    if (own.form === 'neutral') encodeResult(exchange.request.method, own, { ttlMs: 0, scope });
    else
      normalizeResult(exchange.request.method, own, { takesTasks: false, forcePrivate: scope === 'private' });
    own.edits.set('ttlMs', undefined);
    const result = new Rope();
    writeObject(result, own.bytes, own.node, own.edits);
    const whole = result.toBuffer();
    return whole.subarray(0, whole.lastIndexOf(CLOSE_BRACE));
  });
  response.end(200, resultRope(id, new Rope().push(text).push(`,"ttlMs":${kept.hintMs}}`)));
}

function writeResult({ response, id }: PendingRequest, exchange: Exchange, outcome: ResultOutcome): void {
  const { method } = exchange.request;
  const forcePrivate = isPersonal(exchange.caller.forwarded);
  if (outcome.form === 'modern') {
    const takesTasks = declaresTasks(exchange.caller.capabilities);
    const problem = normalizeResult(method, outcome, { takesTasks, forcePrivate });
    if (problem !== undefined) {
      response.end(200, errorRope(id, CODE.internal, problem));
      return;
    }
  } else encodeResult(method, outcome, { ttlMs: 0, scope: 'private' });
  const { bytes, node, edits, frameId } = outcome;
  if (edits.size === 0 && frameId === id) {
    response.end(200, new Rope().push(bytes));
    return;
  }
  const result = new Rope();
  writeObject(result, bytes, node, edits);
  response.end(200, resultRope(id, result));
}
