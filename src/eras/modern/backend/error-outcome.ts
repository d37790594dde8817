import { badGateway, CODE } from '../../../exchange/errors.js';
import type { Exchange } from '../../../exchange/exchange.js';
import { refusalForClient } from '../../../exchange/http-refusal.js';
import { backendError, type Outcome } from '../../../exchange/outcome.js';
import type { RpcReply } from '../../../upstream/rpc-call.js';
import { MODERN_CODE } from '../wire/names.js';
import type { ModernBackend } from './modern-backend.js';
import { failureOf, wrongEraOf } from './refusals.js';

/** Message of Python's SDK when a handler sends a server request as in the legacy era. The handler has begun to run. */
const NO_BACK_CHANNEL = /no back-channel/i;

/**
 * The outcome for a reply that is not a result.
 *
 * @throws ExchangeError or WrongEra if it is not an error for the client
 */
export function errorOutcome(exchange: Exchange, backend: ModernBackend, reply: RpcReply): Outcome {
  if (reply.kind !== 'response' || reply.frame.type === 'result') throw failureOf(backend.name, reply);
  const { frame, status } = reply;
  const sameEra = exchange.caller.era === 'modern';
  const outcome = backendError(frame, status, sameEra ? 'modern' : 'neutral');
  const forClient = refusalForClient(status, reply.headers, frame.message, outcome);
  if (forClient !== undefined) throw forClient;
  if (frame.code === CODE.invalidRequest && NO_BACK_CHANNEL.test(frame.message)) {
    return { ...outcome, cannotAsk: true };
  }
  const wrongEra = wrongEraOf(backend.name, frame, status, outcome);
  if (wrongEra !== undefined) throw wrongEra;
  const isOfGateway =
    frame.code === MODERN_CODE.headerMismatch || frame.code === MODERN_CODE.unsupportedVersion;
  if (!sameEra && isOfGateway)
    throw badGateway(`${backend.name} refused the gateway's request: ${frame.code} ${frame.message}`, 200);
  return outcome;
}
