import { badGateway } from '../../../exchange/errors.js';
import type { ForwardedHeaders } from '../../../exchange/forwarded-headers.js';
import { backendError } from '../../../exchange/outcome.js';
import { noResponseError } from '../../../upstream/no-response.js';
import { challengeIn, rejectWrongEra, saidIn } from './replies.js';
import type { BackendSession } from './session.js';

/**
 * Tries credentials on a session with `ping`, which every server answers (basic/utilities/ping).
 * @returns false where the session is lost
 * @throws ExchangeError with the backend's challenge where it refuses them
 */
export async function accepts(session: BackendSession, forwarded: ForwardedHeaders): Promise<boolean> {
  const { name, losses } = session.backend;
  const reply = await session.ask('ping', undefined, forwarded);
  if (reply.kind === 'failed') throw noResponseError(name, reply);
  const challenge = challengeIn(reply);
  if (challenge !== undefined) throw challenge;
  if (losses.saysLost(reply, session.id)) {
    session.drop();
    return false;
  }
  if (reply.status >= 500)
    throw badGateway(`${name} answered HTTP ${reply.status}: ${saidIn(reply).slice(0, 200)}`);
  if (reply.kind === 'response' && reply.frame.type === 'error' && reply.status >= 400) {
    rejectWrongEra(session, reply.frame, backendError(reply.frame, reply.status, 'neutral'));
  }
  return true;
}
