import { badGateway, CODE, ExchangeError } from '../../../exchange/errors.js';
import { refusalForClient } from '../../../exchange/http-refusal.js';
import { backendError, type ErrorOutcome } from '../../../exchange/outcome.js';
import { WrongEra } from '../../../exchange/side-errors.js';
import { type ErrorFrame, elementsOf, getMember, stringOf, textOf } from '../../../jsonrpc/index.js';
import { noResponseError } from '../../../upstream/no-response.js';
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
  name: string,
  frame: ErrorFrame,
  status: number,
  outcome?: ErrorOutcome,
): WrongEra | undefined {
  const { code, message, bytes, data } = frame;
  if (status < 400 || status >= 500) return undefined;
  if (code === MODERN_CODE.unsupportedVersion) {
    const supported = data === undefined ? undefined : getMember(bytes, data, 'supported');
    if (supported !== undefined && !textOf(bytes, supported).includes(MODERN_VERSION)) {
      return new WrongEra(`${name} does not support ${MODERN_VERSION} any more`);
    }
  }
  if (MODERN_REFUSALS.has(code)) return undefined;
  // Texts of legacy servers without a session, on which a modern client falls back too.
  const certain = /session|not initialized|unsupported protocol version/i.test(message);
  const what = `${name} answered HTTP ${status} ${code}: ${message}`;
  return new WrongEra(what, { otherwise: certain ? undefined : outcome });
}

/** The error for a reply that is not a result. */
export function failureOf(name: string, reply: RpcReply): Error {
  if (reply.kind === 'failed') return noResponseError(name, reply);
  const text = reply.kind === 'no-response' ? reply.text : (reply.frame as ErrorFrame).message;
  const forClient = refusalForClient(reply.status, reply.headers, text);
  if (forClient !== undefined) return forClient;
  const wrongEra =
    reply.kind === 'response' ? wrongEraOf(name, reply.frame as ErrorFrame, reply.status) : undefined;
  if (wrongEra !== undefined) return wrongEra;
  if (reply.kind === 'no-response') {
    if (reply.status >= 400 && reply.status < 500) {
      return new WrongEra(noResponseError(name, reply).message);
    }
    return noResponseError(name, reply);
  }
  return badGateway(`${name}: ${text}`);
}

/** The error for a reply that is not a result; an error of the backend is passed on. */
export function passedOnFailure(name: string, reply: RpcReply): Error {
  if (reply.kind !== 'response' || reply.frame.type === 'result') return failureOf(name, reply);
  const { frame, status, headers } = reply;
  const outcome = backendError(frame, status, 'neutral');
  return (
    refusalForClient(status, headers, frame.message, outcome) ??
    wrongEraOf(name, frame, status, outcome) ??
    new ExchangeError(outcome)
  );
}
