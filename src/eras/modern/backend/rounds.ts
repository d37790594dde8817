import type { Exchange } from '../../../exchange/exchange.js';
import { abortable, pause } from '../../../exchange/utils/abortable.js';
import { Backoff } from '../../../exchange/utils/backoff.js';
import { type Edits, getMember, type ResultFrame, Rope, textOf } from '../../../jsonrpc/index.js';
import { InputFailed, type InputRequest, readInputRequests } from '../wire/input-requests.js';
import { askInput, type InputResponse } from './ask-input.js';

/** Pauses before a round without server requests, the first as in the official clients. */
const EMPTY_ROUND = { firstMs: 250, longestMs: 1_000 };
/** Pauses before a URL is sent again: the client accepts it before the user has finished there. */
const SAME_URL = { firstMs: 1_000, longestMs: 5_000 };

/**
 * The rounds of one call whose results are `input_required`, for a client that answers server requests during the call
 * (basic/patterns/mrtr, "Client Requirements").
 */
export class Rounds {
  readonly #exchange: Exchange;
  readonly #maxRounds: number;
  readonly #nextId: () => number;
  #round = 0;
  readonly #emptyRound = new Backoff(EMPTY_ROUND);
  readonly #sameUrl = new Backoff(SAME_URL);
  #urls: ReadonlySet<string> = new Set();

  /** @param nextId makes ids that no other request of the gateway to a client has */
  constructor(exchange: Exchange, maxRounds: number, nextId: () => number) {
    this.#exchange = exchange;
    this.#maxRounds = maxRounds;
    this.#nextId = nextId;
  }

  /**
   * Sends the input requests of a result to the client.
   * @returns the members to add to the params when the request is sent again
   * @throws InputFailed if the requests are invalid or cannot be answered
   */
  async next({ bytes, result }: ResultFrame): Promise<Edits> {
    const requests = readInputRequests(bytes, getMember(bytes, result, 'inputRequests'), this.#nextId);
    if (++this.#round > this.#maxRounds) throw new InputFailed(this.#tooMany(requests));
    const state = getMember(bytes, result, 'requestState');
    if (requests.length === 0 && state?.kind !== 'string')
      throw new InputFailed('the server asked for nothing');
    await this.#pace(requests);
    const answers = await abortable(
      this.#exchange.signal,
      Promise.all(requests.map((request) => askInput(this.#exchange, request))),
    );
    const edits = new Map<string, Rope | string | undefined>([['inputResponses', undefined]]);
    if (requests.length > 0) edits.set('inputResponses', responsesOf(requests, answers));
    edits.set('requestState', state === undefined ? undefined : textOf(bytes, state));
    return edits;
  }

  #tooMany({ length }: readonly InputRequest[]): string {
    const rounds = `in more than ${this.#maxRounds} rounds of one call (limits.rounds)`;
    return length === 0
      ? `the server returned requestState without inputRequests ${rounds}`
      : `the server asks ${rounds}`;
  }

  async #pace(requests: readonly InputRequest[]): Promise<void> {
    const urls = new Set(requests.map(({ url }) => url).filter((url) => url !== undefined));
    const again = [...urls].some((url) => this.#urls.has(url));
    this.#urls = urls;
    if (requests.length === 0) await pause(this.#emptyRound.next(), this.#exchange.signal);
    else if (again) await pause(this.#sameUrl.next(), this.#exchange.signal);
  }
}

function responsesOf(requests: readonly InputRequest[], answers: readonly InputResponse[]): Rope {
  const out = new Rope().push('{');
  for (const [index, { key }] of requests.entries()) {
    out
      .push(`${index === 0 ? '' : ','}${JSON.stringify(key)}:`)
      .push((answers[index] as InputResponse).result);
  }
  return out.push('}');
}
