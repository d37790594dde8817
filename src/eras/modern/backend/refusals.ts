import type { BackendLabel } from '../../../exchange/backend-label.js';
import { CODE, ExchangeError } from '../../../exchange/errors.js';
import { refusalForClient } from '../../../exchange/http-refusal.js';
import {
  backendError,
  type ErrorOutcome,
  type GatewayErrorOutcome,
  gatewayError,
} from '../../../exchange/outcome.js';
import { WrongEra } from '../../../exchange/side-errors.js';
import { type ErrorFrame, elementsOf, getMember, stringOf, textOf } from '../../../jsonrpc/index.js';
import { BACKEND_ERRORS } from '../../../upstream/backend-errors.js';
import { answerOf, noResponseError } from '../../../upstream/no-response.js';
import type { RpcReply } from '../../../upstream/rpc-call.js';
import { MODERN_CODE, MODERN_VERSION } from '../wire/names.js';

/** Codes of refusals in this era; a 4xx with another code is not from a modern server. */
const MODERN_REFUSALS: ReadonlySet<number> = new Set([
  ...Object.values(MODERN_CODE),
  CODE.invalidParams,
  CODE.methodNotFound,
]);

/**
 * Whether a reply refuses the version of the request and lists the same one as supported. The request was not carried out
 * and is repeated (basic/versioning).
 */
export function namesOwnVersion(reply: RpcReply): boolean {
  if (reply.kind !== 'response' || reply.frame.type !== 'error') return false;
  const { code, bytes, data } = reply.frame;
  if (code !== MODERN_CODE.unsupportedVersion || data === undefined) return false;
  const supported = getMember(bytes, data, 'supported');
  if (supported?.kind !== 'array') return false;
  return elementsOf(bytes, supported).some((version) => stringOf(bytes, version) === MODERN_VERSION);
}

/**
 * The error for a 4xx with a code that is no refusal of this era, or for -32022 with other revisions: the backend may have
 * been replaced by one of another era.
 */
export function wrongEraOf(
  backend: BackendLabel,
  reply: ErrorReply,
  outcome?: ErrorOutcome,
): WrongEra | undefined {
  const { status, frame } = reply;
  const { code, message, bytes, data } = frame;
  if (status < 400 || status >= 500) return undefined;
  if (code === MODERN_CODE.unsupportedVersion) {
    const supported = data === undefined ? undefined : getMember(bytes, data, 'supported');
    if (supported !== undefined && !textOf(bytes, supported).includes(MODERN_VERSION)) {
      return new WrongEra(refused(backend, reply, `does not support ${MODERN_VERSION} any more`));
    }
  }
  if (MODERN_REFUSALS.has(code)) return undefined;
  // Texts of legacy servers without a session, on which a modern client falls back too.
  const certain = /session|not initialized|unsupported protocol version/i.test(message);
  const failure = refused(backend, reply, `answered HTTP ${status} ${code}: ${message}`);
  return new WrongEra(failure, { otherwise: certain ? undefined : outcome });
}

function refused({ route, name }: BackendLabel, reply: ErrorReply, what: string): GatewayErrorOutcome {
  return gatewayError(
    BACKEND_ERRORS.ERAGATE_BACKEND_REFUSED,
    { route, answer: answerOf(reply) },
    { detail: `${name} ${what}` },
  );
}

/** The error for a reply that is not a result. */
export function failureOf(backend: BackendLabel, reply: RpcReply): Error {
  if (reply.kind === 'failed') return noResponseError(backend, reply);
  const { status, headers } = reply;
  const text = reply.kind === 'no-response' ? reply.text : (reply.frame as ErrorFrame).message;
  const forClient = refusalForClient(backend, { status, headers, text });
  if (forClient !== undefined) return forClient;
  if (reply.kind === 'no-response') {
    const failure = noResponseError(backend, reply);
    return status >= 400 && status < 500 ? new WrongEra(failure.outcome) : failure;
  }
  if (!isErrorReply(reply)) throw new TypeError('the reply is a result');
  return wrongEraOf(backend, reply) ?? new ExchangeError(refused(backend, reply, `answered ${text}`));
}

/** The error for a reply that is not a result; an error of the backend is passed on. */
export function passedOnFailure(backend: BackendLabel, reply: RpcReply): Error {
  if (!isErrorReply(reply)) return failureOf(backend, reply);
  const { frame, status, headers } = reply;
  const outcome = backendError(frame, status, 'neutral');
  return (
    refusalForClient(backend, { status, headers, text: frame.message, error: outcome }) ??
    wrongEraOf(backend, reply, outcome) ??
    new ExchangeError(outcome)
  );
}

export type ErrorReply = RpcReply & { readonly kind: 'response'; readonly frame: ErrorFrame };

export function isErrorReply(reply: RpcReply): reply is ErrorReply {
  return reply.kind === 'response' && reply.frame.type === 'error';
}
