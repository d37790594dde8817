import { CODE } from '../../exchange/errors.js';
import type { Exchange } from '../../exchange/exchange.js';
import type { ErrorOutcome, ResultOutcome } from '../../exchange/outcome.js';
import {
  errorRope,
  getMember,
  Rope,
  resultRope,
  scanJson,
  stringOf,
  writeObject,
} from '../../jsonrpc/index.js';
import { dressResult } from './codec.js';
import type { RevisionFeatures } from './revisions.js';

type Reply = (status: number, message: Rope, headers?: Readonly<Record<string, string>>) => void;

const RESOURCE_NOT_FOUND = -32002;

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
  const { id, method } = exchange.request;
  if (outcome.dress === 'none') dressResult(method, outcome, features);
  const { bytes, node, edits } = outcome;
  const result = new Rope();
  writeObject(result, bytes, node, edits);
  reply(200, resultRope(id, result));
}

export function writeError(outcome: ErrorOutcome, exchange: Exchange, reply: Reply): void {
  const { id, method, name } = exchange.request;
  const { code, message, data, raw, headers, origin } = outcome;
  const status =
    origin === 'gateway' && SHOWN_STATUSES.has(outcome.status ?? 200) ? (outcome.status as number) : 200;
  if (outcome.dress !== 'legacy' && method === 'resources/read' && isNotFound(outcome, name)) {
    reply(200, errorRope(id, RESOURCE_NOT_FOUND, message, data));
  } else if (raw !== undefined) {
    reply(status, new Rope().push(`{"jsonrpc":"2.0","id":${id},"error":`).push(raw).push('}'), headers);
  } else reply(status, errorRope(id, code, message, data), headers);
}

/**
 * The modern era has no code of its own for a resource that is not there; it can be told from other invalid params by
 * the uri in the data (server/resources, "Error Handling").
 */
function isNotFound(outcome: ErrorOutcome, uri: string | undefined): boolean {
  if (outcome.code !== CODE.invalidParams || typeof outcome.data !== 'string' || uri === undefined)
    return false;
  const bytes = Buffer.from(outcome.data);
  return stringOf(bytes, getMember(bytes, scanJson(bytes, 1), 'uri')) === uri;
}
