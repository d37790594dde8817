import { exchangeError } from '../../../exchange/errors.js';
import type { ForwardedHeaders } from '../../../exchange/forwarded-headers.js';
import { backendError } from '../../../exchange/outcome.js';
import { BACKEND_ERRORS } from '../../../upstream/backend-errors.js';
import { httpDetail, noResponseError } from '../../../upstream/no-response.js';
import { challengeIn, messageIn, rejectWrongEra } from './replies.js';
import type { BackendSession } from './session.js';

/**
 * Tries credentials on a session with `ping`, which every server answers (basic/utilities/ping).
 * @returns false if the session is lost
 * @throws ExchangeError with the backend's challenge if it refuses the credentials
 */
export async function accepts(session: BackendSession, forwarded: ForwardedHeaders): Promise<boolean> {
  const { backend } = session;
  const { route, name, lostSessions } = backend;
  const reply = await session.timedRequest('ping', undefined, forwarded);
  if (reply.kind === 'failed') throw noResponseError(backend, reply);
  const challenge = challengeIn(backend, reply);
  if (challenge !== undefined) throw challenge;
  if (lostSessions.isLost(reply, session.id)) {
    session.markLost();
    return false;
  }
  if (reply.status >= 500)
    throw exchangeError(
      BACKEND_ERRORS.ERAGATE_BACKEND_HTTP_ERROR,
      { route, status: reply.status },
      { detail: httpDetail(name, reply.status, messageIn(reply)) },
    );
  if (reply.kind === 'response' && reply.frame.type === 'error' && reply.status >= 400) {
    rejectWrongEra(session, reply.frame, backendError(reply.frame, reply.status, 'neutral'));
  }
  return true;
}
