import type { ForwardedHeaders } from '../../../exchange/forwarded-headers.js';
import { Rope } from '../../../jsonrpc/index.js';
import { BACKEND_ERRORS, backendFailure } from '../../../upstream/backend-errors.js';
import { noResponseError } from '../../../upstream/no-response.js';
import { challengeIn } from './replies.js';
import type { BackendSession } from './session.js';

/** Requests that change a session for longer than they last, which the gateway makes itself. */

/** Limit of the requests at a time: after a restart there may be thousands of resources to subscribe to. */
const MAX_CONCURRENT = 16;

type SubscriptionMethod = 'resources/subscribe' | 'resources/unsubscribe';

/**
 * Sends one such request.
 * @returns whether the backend accepted it
 * @throws ExchangeError if the backend refuses the credentials, cannot be reached, or has lost the session
 */
export async function configure(
  session: BackendSession,
  method: SubscriptionMethod | 'logging/setLevel',
  params: Readonly<Record<string, string>>,
  forwarded: ForwardedHeaders,
): Promise<boolean> {
  const { backend } = session;
  const reply = await session.timedRequest(method, new Rope().push(JSON.stringify(params)), forwarded);
  if (await session.isLostBy(reply, forwarded)) {
    const { ERAGATE_BACKEND_SESSION_LOST } = BACKEND_ERRORS;
    throw backendFailure(backend, ERAGATE_BACKEND_SESSION_LOST, 'does not know the session any more');
  }
  if (reply.kind === 'failed') throw noResponseError(backend, reply);
  const challenge = challengeIn(backend, reply);
  if (challenge !== undefined) throw challenge;
  if (reply.kind === 'no-response') throw noResponseError(backend, reply);
  return reply.frame.type === 'result';
}

/**
 * Subscribes to resources, or unsubscribes (server/resources, "Subscriptions").
 * @param onAccepted called for each resource for which the backend accepted the request
 * @throws ExchangeError as {@link configure}; requests that were accepted before stay in effect
 */
export async function configureEach(
  session: BackendSession,
  method: SubscriptionMethod,
  uris: Iterable<string>,
  forwarded: ForwardedHeaders,
  onAccepted: (uri: string) => void = () => {},
): Promise<void> {
  const left = uris[Symbol.iterator]();
  let failed = false;
  const work = async (): Promise<void> => {
    for (let next = left.next(); next.done !== true && !failed; next = left.next()) {
      try {
        if (await configure(session, method, { uri: next.value }, forwarded)) onAccepted(next.value);
      } catch (error) {
        failed = true;
        throw error;
      }
    }
  };
  await Promise.all(Array.from({ length: MAX_CONCURRENT }, work));
}
