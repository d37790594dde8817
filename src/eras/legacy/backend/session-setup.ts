import { badGateway } from '../../../exchange/errors.js';
import type { ForwardedHeaders } from '../../../exchange/forwarded-headers.js';
import { Rope } from '../../../jsonrpc/index.js';
import { noResponseError } from '../../../upstream/no-response.js';
import { challengeIn } from './replies.js';
import type { BackendSession } from './session.js';

/** Requests under way at a time: after a restart there may be thousands of resources to subscribe to. */
const MAX_AT_ONCE = 16;

type SetUpMethod = 'resources/subscribe' | 'resources/unsubscribe' | 'logging/setLevel';

/** Requests of the gateway's own by which something is set up on a session for longer than the request. */
export class SetUp {
  /**
   * @returns whether the backend agreed
   * @throws ExchangeError when it refuses the credentials, cannot be asked, or has lost the session, which is dropped
   */
  async ask(
    session: BackendSession,
    method: SetUpMethod,
    params: Readonly<Record<string, string>>,
    forwarded: ForwardedHeaders,
  ): Promise<boolean> {
    const { name, losses } = session.backend;
    const reply = await session.ask(method, new Rope().push(JSON.stringify(params)), forwarded);
    if (losses.saysLost(reply, session.id)) {
      session.drop();
      throw badGateway(`${name} does not know the session any more`);
    }
    if (reply.kind === 'failed') throw noResponseError(name, reply);
    const forClient = challengeIn(reply);
    if (forClient !== undefined) throw forClient;
    if (reply.kind === 'no-response') throw noResponseError(name, reply);
    return reply.frame.type === 'result';
  }

  /**
   * Subscribes to resources, or unsubscribes (server/resources, "Subscriptions").
   * @param onAgreed called for each with which the backend agreed
   * @throws ExchangeError as {@link SetUp.ask}; what was agreed to before then stands
   */
  async askForEach(
    uris: Iterable<string>,
    session: BackendSession,
    method: 'resources/subscribe' | 'resources/unsubscribe',
    forwarded: ForwardedHeaders,
    onAgreed: (uri: string) => void = () => {},
  ): Promise<void> {
    const left = uris[Symbol.iterator]();
    let failed = false;
    const work = async (): Promise<void> => {
      for (let next = left.next(); next.done !== true && !failed; next = left.next()) {
        try {
          if (await this.ask(session, method, { uri: next.value }, forwarded)) onAgreed(next.value);
        } catch (error) {
          failed = true;
          throw error;
        }
      }
    };
    await Promise.all(Array.from({ length: MAX_AT_ONCE }, work));
  }
}
