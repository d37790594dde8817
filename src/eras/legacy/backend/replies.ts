import type { BackendLabel } from '../../../exchange/backend-label.js';
import { CODE, type ExchangeError } from '../../../exchange/errors.js';
import type { Exchange } from '../../../exchange/exchange.js';
import { refusalForClient } from '../../../exchange/http-refusal.js';
import {
  backendError,
  type ErrorOutcome,
  gatewayError,
  type Outcome,
  type ResultOutcome,
} from '../../../exchange/outcome.js';
import { repairResult } from '../../../exchange/repair-result.js';
import { CACHEABLE } from '../../../exchange/result-cache/cache-key.js';
import { OtherSide, WrongEra } from '../../../exchange/side-errors.js';
import { insistsOnTask } from '../../../exchange/tasks.js';
import type { ErrorFrame, ResultFrame, Rope } from '../../../jsonrpc/index.js';
import { BACKEND_ERRORS } from '../../../upstream/backend-errors.js';
import { answerOf, noResponseError } from '../../../upstream/no-response.js';
import type { RpcReply } from '../../../upstream/rpc-call.js';
import { decodeResult } from '../wire/results.js';
import { LEGACY_BACKEND_ERRORS } from './errors.js';
import { freshnessOf } from './freshness.js';
import type { HandshakeRefused } from './handshake.js';
import type { BackendSession } from './session.js';

/** What the replies of a legacy backend mean; lost sessions are in `lost-sessions.ts`. */

/** Codes of a 4xx that prove that the backend is modern, and did not carry out the request. */
const MODERN_CODES: ReadonlySet<number> = new Set([-32020, -32022]);
/** Codes of a 4xx that a modern backend uses for a legacy request, and any server for their own meaning. */
const AMBIGUOUS_CODES: ReadonlySet<number> = new Set([CODE.invalidParams, CODE.methodNotFound]);

type HttpReply = Exclude<RpcReply, { readonly kind: 'failed' }>;

/** The message of an error, or the text of the body. */
export function messageIn(reply: HttpReply): string {
  if (reply.kind === 'no-response') return reply.text;
  return reply.frame.type === 'error' ? reply.frame.message : '';
}

/** The error that is passed on to the client, such as a challenge; undefined for other replies. */
export function challengeIn(backend: BackendLabel, reply: HttpReply): ExchangeError | undefined {
  const { status, headers } = reply;
  return refusalForClient(backend, { status, headers, text: messageIn(reply) });
}

/** The error for a reply without a JSON-RPC response. */
export function missingResponse(session: BackendSession, reply: RpcReply): Error {
  const challenge = reply.kind === 'no-response' ? challengeIn(session.backend, reply) : undefined;
  return challenge ?? noResponseError(session.backend, reply);
}

/**
 * The outcome of a call.
 * @param ttlMs how long results may be kept, by method, if that is configured
 * @throws ExchangeError, WrongEra, OtherSide if the reply is not meant for the caller
 */
export function outcomeOf(
  exchange: Exchange,
  session: BackendSession,
  reply: RpcReply,
  ttlMs: ReadonlyMap<string, number>,
): Outcome {
  if (reply.kind !== 'response') throw missingResponse(session, reply);
  const { frame, status, headers } = reply;
  if (frame.type === 'result') return resultOutcome(exchange, session, frame, ttlMs);
  const outcome = backendError(frame, reply.status, exchange.caller.era === 'legacy' ? 'legacy' : 'neutral');
  const forClient = refusalForClient(session.backend, {
    status,
    headers,
    text: frame.message,
    error: outcome,
  });
  if (forClient !== undefined) throw forClient;
  // Servers that speak both eras may run tasks in the other one only.
  if (insistsOnTask(frame)) throw new OtherSide(outcome);
  if (reply.status >= 400 && reply.status < 500) rejectWrongEra(session, frame, outcome);
  return outcome;
}

/** The error for a handshake that the backend refused. */
export function refusedHandshake(backend: BackendLabel, { reply, message }: HandshakeRefused): Error {
  const challenge = challengeIn(backend, reply);
  if (challenge !== undefined) return challenge;
  const isProof = reply.kind === 'response' && MODERN_CODES.has((reply.frame as ErrorFrame).code);
  const failure = gatewayError(
    LEGACY_BACKEND_ERRORS.ERAGATE_HANDSHAKE_REFUSED,
    { route: backend.route, answer: answerOf(reply) },
    { detail: message },
  );
  return new WrongEra(failure, { proof: isProof });
}

/** @throws WrongEra if a refusal means, or may mean, that the backend now speaks the other era */
export function rejectWrongEra(session: BackendSession, frame: ErrorFrame, outcome: ErrorOutcome): void {
  const certain = isModernRefusal(frame);
  if (!certain && !AMBIGUOUS_CODES.has(frame.code)) return;
  if (certain) session.markLost();
  const { route, name } = session.backend;
  const answer = `${frame.code} ${frame.message}`;
  const detail = `${name} answered ${answer} to a legacy request`;
  const failure = gatewayError(BACKEND_ERRORS.ERAGATE_BACKEND_REFUSED, { route, answer }, { detail });
  throw new WrongEra(failure, { otherwise: certain ? undefined : outcome });
}

/** The error of a modern server about headers, version, or a missing envelope. */
function isModernRefusal({ code, message }: ErrorFrame): boolean {
  if (MODERN_CODES.has(code)) return true;
  return code === CODE.invalidParams && /_meta|envelope|io\.modelcontextprotocol/.test(message);
}

function resultOutcome(
  exchange: Exchange,
  session: BackendSession,
  frame: ResultFrame,
  ttlMs: ReadonlyMap<string, number>,
): ResultOutcome {
  const { method } = exchange.request;
  const sameEra = exchange.caller.era === 'legacy';
  const edits = new Map<string, Rope | string | undefined>();
  const { transport } = session.backend;
  const { bytes, node } = repairResult(method, frame.bytes, frame.result, (what) =>
    transport.reportDeviation(what),
  ) ?? { bytes: frame.bytes, node: frame.result };
  if (!sameEra) decodeResult(method, bytes, node, edits);
  return {
    type: 'result',
    bytes,
    node,
    edits,
    form: sameEra ? 'legacy' : 'neutral',
    serverInfo: session.info.serverInfo,
    frameId: undefined,
    freshness: CACHEABLE.has(method) ? freshnessOf(method, session, ttlMs) : undefined,
  };
}
