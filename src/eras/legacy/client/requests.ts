import type { HttpCall } from '../../../downstream/http-call.js';
import { CODE } from '../../../exchange/errors.js';
import type { RouteService } from '../../../exchange/route-service.js';
import { errorRope, type RequestFrame } from '../../../jsonrpc/index.js';
import { CallChannel } from './call-channel.js';
import { exchangeRequest, paramsProblem } from './exchange-request.js';
import { isChallenge } from './one-way.js';
import { type Reply, writeError, writeResult } from './outcome.js';
import { OWN_METHODS } from './own-methods.js';
import type { LegacyClientSession } from './session.js';

/** Carries out a request on a session. @param reply sends its response */
export async function carryOut(
  route: RouteService,
  call: HttpCall,
  session: LegacyClientSession,
  frame: RequestFrame,
  reply: Reply,
): Promise<void> {
  const { id, method } = frame;
  const { features } = session;
  const problem = paramsProblem(frame);
  if (problem !== undefined) {
    reply(400, errorRope(id, CODE.invalidParams, `Invalid params: ${problem}`));
    return;
  }
  const channel = new CallChannel(session, call.response, exchangeRequest(frame, features), call.forwarded);
  const { exchange } = channel;
  exchange.notes.requestId = call.requestId;
  const own = OWN_METHODS.get(method)?.(session, frame);
  if (own !== undefined) {
    reply(200, own);
    return;
  }
  if (!session.begin(id, exchange)) {
    const message = `Invalid Request: id ${id} is in use by a request in flight`;
    reply(200, errorRope(id, CODE.invalidRequest, message));
    return;
  }
  const outcome = await route.run(exchange);
  session.finish(id);
  channel.finish();
  // A cancelled request has no response (basic/utilities/cancellation), but its HTTP response has to end.
  if (exchange.cancelled !== undefined && !exchange.timedOut) {
    if (!call.response.done)
      reply(200, errorRope(id, CODE.internal, `Request cancelled: ${exchange.cancelled}`));
  } else if (outcome.type === 'error') {
    if (isChallenge(outcome)) session.owner.noteChallenge();
    writeError(outcome, exchange, reply);
  } else writeResult(outcome, exchange, features, reply);
  route.record(exchange, call.response.status || 200, outcome);
}
