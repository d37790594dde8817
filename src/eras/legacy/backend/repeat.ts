import type { Exchange } from '../../../exchange/exchange.js';
import { abortable } from '../../../exchange/utils/abortable.js';
import { backendFailure } from '../../../upstream/backend-errors.js';
import { httpDetail } from '../../../upstream/no-response.js';
import type { RpcReply } from '../../../upstream/rpc-call.js';
import { LEGACY_BACKEND_ERRORS } from './errors.js';
import { messageIn } from './replies.js';
import type { BackendSession } from './session.js';

/**
 * Whether a request is sent again on a new session: once, and only if it was refused before it was carried out, which a
 * `ping` on the session proves where the reply does not.
 * @param attempt 0 for the first
 * @throws ExchangeError if the backend does not know the new session either
 */
export async function mustRepeat(
  reply: RpcReply,
  session: BackendSession,
  attempt: number,
  { caller, signal }: Exchange,
): Promise<boolean> {
  const { lostSessions, name } = session.backend;
  if (!lostSessions.isLost(reply, session.id)) return false;
  if (attempt === 0) return abortable(signal, session.isLostBy(reply, caller.forwarded));
  // With status 200 the tool reported about a session of its own; other refusals may be about anything.
  if (reply.kind === 'failed' || reply.status < 400 || !isAboutSession(reply)) return false;
  session.markLost();
  const answered = httpDetail(name, reply.status, messageIn(reply));
  throw backendFailure(
    session.backend,
    LEGACY_BACKEND_ERRORS.ERAGATE_SESSION_NOT_KEPT,
    `does not know the session that it has just opened: ${answered}`,
  );
}

/** Whether a refusal is about the session, by its status or its message. */
function isAboutSession(reply: Exclude<RpcReply, { readonly kind: 'failed' }>): boolean {
  return reply.status === 404 || /session|not initialized/i.test(messageIn(reply));
}
