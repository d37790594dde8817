import type { ClientAnswer, ServerRequest } from '../../../exchange/channel.js';
import {
  badGateway,
  CODE,
  type ExchangeError,
  ServerRequestRefused,
  ServerRequestWithdrawn,
} from '../../../exchange/errors.js';
import { isFailure } from '../../../exchange/failures.js';
import type { ForwardedHeaders } from '../../../exchange/forwarded-headers.js';
import type { RequestFrame } from '../../../jsonrpc/index.js';
import type { RpcReply } from '../../../upstream/rpc-call.js';
import { featuresFor } from '../wire/revisions.js';
import { downgradeAnswer } from '../wire/server-requests.js';
import { challengeIn } from './replies.js';
import type { BackendSession } from './session.js';

const EMPTY_RESULT = Buffer.from('{}');

/** Whoever answers the requests of a server. */
export interface Answering {
  /** The credentials of now. */
  readonly forwarded: ForwardedHeaders;
  /** The server waits for no answer any more. */
  readonly over: boolean;
  /** @throws ServerRequestRefused where there is no answer to be had, ServerRequestWithdrawn where none is wanted any more */
  answerTo(question: ServerRequest): Promise<ClientAnswer>;
  /** The server will never have the answer, for which it waits on. */
  undelivered?(error: ExchangeError): void;
}

/** Answers a request of a server, one way or the other; never throws. */
export async function answerServer(
  session: BackendSession,
  { id, method, params, bytes }: RequestFrame,
  by: Answering,
): Promise<void> {
  if (method === 'ping') {
    session.answer(id, { result: EMPTY_RESULT }, by.forwarded);
    return;
  }
  try {
    const answer = await by.answerTo({ id, method, params, bytes });
    if (by.over) return;
    session.answer(
      id,
      downgradeAnswer(method, answer, featuresFor(session.info.revision)),
      by.forwarded,
      (reply) => {
        const refusal = refusalOf(session, reply);
        if (refusal !== undefined) by.undelivered?.(refusal);
      },
    );
  } catch (error) {
    const failed = isFailure(error);
    if (!failed) session.backend.onFault(error);
    if (by.over || error instanceof ServerRequestWithdrawn) return;
    const code = error instanceof ServerRequestRefused ? error.code : CODE.internal;
    const message = failed ? error.message : 'Internal error of the gateway';
    session.refuse(id, message, by.forwarded, code);
  }
}

/**
 * Why an answer did not reach its server. Servers say many things of answers that they do not wait for any longer, and
 * proxies of what they could not hand over in time; only what leaves no doubt counts.
 */
function refusalOf(session: BackendSession, reply: RpcReply): ExchangeError | undefined {
  if (reply.kind === 'failed') return undefined;
  const { name, losses } = session.backend;
  if (!losses.saysLost(reply, session.id)) return challengeIn(reply);
  session.drop();
  return badGateway(`${name} lost the session while the client was asked`);
}
