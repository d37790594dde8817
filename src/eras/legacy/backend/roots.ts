import { LRUCache } from 'lru-cache';
import { type Caller, identityOf } from '../../../exchange/caller.js';
import type { ClientAnswer } from '../../../exchange/channel.js';
import { ServerRequestRefused } from '../../../exchange/errors.js';
import { keyText } from '../../../exchange/utils/hash.js';

/** Whether a client's roots are declared to legacy servers, and whether the client is asked for them each time. */
export type RootsPolicy = 'off' | 'cached' | 'ask';

const MAX_CLIENTS = 1_000;
const MAX_BYTES = 16 * 1024 * 1024;
const NO_ROOTS: ClientAnswer = { result: Buffer.from('{"roots":[]}') };

/**
 * The last known roots of clients without a session. Legacy servers request them at any time, also when no call of the
 * client is in flight that could carry the request.
 */
export class Roots {
  readonly policy: RootsPolicy;
  readonly #known = new LRUCache<string, ClientAnswer>({
    max: MAX_CLIENTS,
    maxSize: MAX_BYTES,
    sizeCalculation: (answer, key) => key.length + ('result' in answer ? answer.result : answer.error).length,
  });

  constructor(policy: RootsPolicy) {
    this.policy = policy;
  }

  /**
   * The answer to `roots/list`, for which the client is asked if necessary.
   * @throws ServerRequestRefused if roots are not declared, or the client cannot be asked
   */
  async answer(caller: Caller, ask: () => Promise<ClientAnswer>): Promise<ClientAnswer> {
    if (this.policy === 'off') throw new ServerRequestRefused('the client did not declare roots');
    const known = this.withoutAsking(caller);
    if (known !== undefined) return known;
    const answer = await ask();
    this.remember(caller, answer);
    return answer;
  }

  /** The answer that needs no request to the client; undefined if the client has to be asked. */
  withoutAsking(caller: Caller): ClientAnswer | undefined {
    return this.policy === 'cached' ? this.#known.get(keyOf(caller)) : undefined;
  }

  /** The answer if the client cannot be asked. */
  lastKnown(key: string): ClientAnswer {
    return this.#known.get(key) ?? NO_ROOTS;
  }

  remember(caller: Caller, answer: ClientAnswer): void {
    if ('result' in answer) this.#known.set(keyOf(caller), answer);
  }
}

/** Under which the roots of a caller are kept. */
export function keyOf(caller: Caller): string {
  return `${identityOf(caller)} ${keyText(caller.clientInfo ?? '')}`;
}
