import { LRUCache } from 'lru-cache';
import type { Caller } from '../../../exchange/caller.js';
import type { ClientAnswer } from '../../../exchange/channel.js';
import { ServerRequestRefused } from '../../../exchange/errors.js';
import { keyText } from '../../../exchange/utils/hash.js';

/** Whether legacy servers are told of a client's roots, and whether it is asked for them anew each time. */
export type RootsPolicy = 'off' | 'cached' | 'ask';

const REMEMBERED = 1_000;
const REMEMBERED_BYTES = 16 * 1024 * 1024;
const NO_ROOTS: ClientAnswer = { result: Buffer.from('{"roots":[]}') };

/**
 * The roots of clients without a session, as they were last told. Legacy servers ask for them whenever they like,
 * also when no call of the client is there to carry the question.
 */
export class Roots {
  readonly policy: RootsPolicy;
  readonly #known = new LRUCache<string, ClientAnswer>({
    max: REMEMBERED,
    maxSize: REMEMBERED_BYTES,
    sizeCalculation: (answer, key) => key.length + ('result' in answer ? answer.result : answer.error).length,
  });

  constructor(policy: RootsPolicy) {
    this.policy = policy;
  }

  /**
   * What a server is told that asks for the roots, for which the client is asked if need be.
   * @throws ServerRequestRefused where servers are not to know them, or the client cannot be asked
   */
  async answer(caller: Caller, ask: () => Promise<ClientAnswer>): Promise<ClientAnswer> {
    if (this.policy === 'off') throw new ServerRequestRefused('the client did not declare roots');
    const known = this.withoutAsking(caller);
    if (known !== undefined) return known;
    const answer = await ask();
    this.remember(caller, answer);
    return answer;
  }

  /** What can be answered without the client; undefined where it has to be asked. */
  withoutAsking(caller: Caller): ClientAnswer | undefined {
    return this.policy === 'cached' ? this.#known.get(keyOf(caller)) : undefined;
  }

  /** What is answered where nobody can be asked. */
  lastKnown(key: string): ClientAnswer {
    return this.#known.get(key) ?? NO_ROOTS;
  }

  remember(caller: Caller, answer: ClientAnswer): void {
    if ('result' in answer) this.#known.set(keyOf(caller), answer);
  }
}

export function keyOf({ principal, clientInfo }: Caller): string {
  return `${principal} ${keyText(clientInfo ?? '')}`;
}
