import type { ClientAnswer, ServerRequest } from '../../../exchange/channel.js';
import {
  CODE,
  type ExchangeError,
  ServerRequestRefused,
  ServerRequestWithdrawn,
} from '../../../exchange/errors.js';
import { isFailure } from '../../../exchange/failures.js';
import type { ForwardedHeaders } from '../../../exchange/forwarded-headers.js';
import type { RequestFrame } from '../../../jsonrpc/index.js';
import { BACKEND_ERRORS, backendFailure } from '../../../upstream/backend-errors.js';
import type { RpcReply } from '../../../upstream/rpc-call.js';
import { featuresFor } from '../wire/revisions.js';
import { downgradeAnswer } from '../wire/server-requests.js';
import { challengeIn } from './replies.js';
import type { BackendSession } from './session.js';

const EMPTY_RESULT = Buffer.from('{}');

/** Answers the requests of a server. */
export interface ServerRequestHandler {
  /** Headers for the response. */
  readonly forwarded: ForwardedHeaders;
  /** The server does not wait for a response any longer. */
  readonly over: boolean;
  /** @throws ServerRequestRefused if there is no answer, ServerRequestWithdrawn if none is needed any longer */
  answerTo(request: ServerRequest): Promise<ClientAnswer>;
  /** The answer did not reach the server, which still waits for it. */
  onUndelivered?(error: ExchangeError): void;
}

/** Sends the response to a request of a server, an answer or an error; never throws. */
export async function respondTo(
  session: BackendSession,
  { id, method, params, bytes }: RequestFrame,
  handler: ServerRequestHandler,
): Promise<void> {
  if (method === 'ping') {
    session.answer(id, { result: EMPTY_RESULT }, handler.forwarded);
    return;
  }
  try {
    const answer = await handler.answerTo({ id, method, params, bytes });
    if (handler.over) return;
    session.answer(
      id,
      downgradeAnswer(method, answer, featuresFor(session.info.revision)),
      handler.forwarded,
      (reply) => {
        const refusal = refusalOf(session, reply);
        if (refusal !== undefined) handler.onUndelivered?.(refusal);
      },
    );
  } catch (error) {
    const failed = isFailure(error);
    if (!failed) session.backend.onFault(error);
    if (handler.over || error instanceof ServerRequestWithdrawn) return;
    const code = error instanceof ServerRequestRefused ? error.code : CODE.internal;
    const message = failed ? error.message : 'Internal error of the gateway';
    session.refuse(id, message, handler.forwarded, code);
  }
}

/**
 * Why an answer did not reach its server; undefined if it did, or may have. Other statuses prove nothing: servers and
 * proxies also use them for answers that came too late.
 */
function refusalOf(session: BackendSession, reply: RpcReply): ExchangeError | undefined {
  if (reply.kind === 'failed') return undefined;
  const { backend } = session;
  if (!backend.lostSessions.isLost(reply, session.id)) return challengeIn(backend, reply);
  session.markLost();
  const { ERAGATE_BACKEND_SESSION_LOST } = BACKEND_ERRORS;
  return backendFailure(backend, ERAGATE_BACKEND_SESSION_LOST, 'lost the session while the client was asked');
}
