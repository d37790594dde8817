import { CODE, exchangeError } from '../../../exchange/errors.js';
import type { Exchange } from '../../../exchange/exchange.js';
import { refusalForClient } from '../../../exchange/http-refusal.js';
import { backendError, type Outcome } from '../../../exchange/outcome.js';
import { answerOf } from '../../../upstream/no-response.js';
import type { RpcReply } from '../../../upstream/rpc-call.js';
import { MODERN_CODE } from '../wire/names.js';
import { MODERN_BACKEND_ERRORS } from './errors.js';
import type { ModernBackend } from './modern-backend.js';
import { failureOf, isErrorReply, wrongEraOf } from './refusals.js';

/** Message of Python's SDK when a handler sends a server request as in the legacy era. The handler has begun to run. */
const NO_BACK_CHANNEL = /no back-channel/i;

/**
 * The outcome for a reply that is not a result.
 *
 * @throws ExchangeError or WrongEra if it is not an error for the client
 */
export function errorOutcome(exchange: Exchange, backend: ModernBackend, reply: RpcReply): Outcome {
  if (!isErrorReply(reply)) throw failureOf(backend, reply);
  const { frame, status, headers } = reply;
  const sameEra = exchange.caller.era === 'modern';
  const outcome = backendError(frame, status, sameEra ? 'modern' : 'neutral');
  const forClient = refusalForClient(backend, {
    status,
    headers,
    text: frame.message,
    error: outcome,
  });
  if (forClient !== undefined) throw forClient;
  if (frame.code === CODE.invalidRequest && NO_BACK_CHANNEL.test(frame.message)) {
    return { ...outcome, cannotAsk: true };
  }
  const wrongEra = wrongEraOf(backend, reply, outcome);
  if (wrongEra !== undefined) throw wrongEra;
  const isOfGateway =
    frame.code === MODERN_CODE.headerMismatch || frame.code === MODERN_CODE.unsupportedVersion;
  if (!sameEra && isOfGateway)
    throw exchangeError(
      MODERN_BACKEND_ERRORS.ERAGATE_REQUEST_REFUSED,
      { route: backend.route, answer: answerOf(reply) },
      { detail: `${backend.name} refused the gateway's request: ${frame.code} ${frame.message}` },
    );
  return outcome;
}
