import { abortable } from '../../exchange/abortable.js';
import { CODE, ExchangeError, QuestionRefused } from '../../exchange/errors.js';
import type { Exchange } from '../../exchange/exchange.js';
import { ownError } from '../../exchange/outcome.js';
import type { Answer } from '../../exchange/types.js';
import {
  type Edits,
  getMember,
  type JsonNode,
  membersOf,
  parseFrame,
  type RequestFrame,
  type RequestId,
  type ResultFrame,
  Rope,
  requestRope,
  stringOf,
  textOf,
} from '../../jsonrpc/index.js';
import { questionKind } from './questions.js';

/** Pause before a round that has nothing to ask, growing from round to round (as the official clients pace it). */
const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 5_000;
/** Pause before a page that was accepted already is asked for again: accepting is not yet having done it. */
const SAME_URL_PAUSE_MS = 1_000;

/** What becomes of a question that the client answers with an error, which this era has no words for. */
const INSTEAD_OF_ERROR: Readonly<Record<string, string>> = {
  'elicitation/create': '{"action":"cancel"}',
  'roots/list': '{"roots":[]}',
};

interface InputRequest {
  readonly key: string;
  readonly frame: RequestFrame;
  readonly url: string | undefined;
}

/**
 * Carries the rounds of a modern server's `input_required` results to a client that is asked while its one request
 * lasts (basic/patterns/mrtr, "Client Requirements").
 */
export class Rounds {
  readonly #exchange: Exchange;
  readonly #maxRounds: number;
  readonly #nextId: () => number;
  #round = 0;
  #pauseMs = FIRST_PAUSE_MS;
  #urlPauseMs = SAME_URL_PAUSE_MS;
  #urls: ReadonlySet<string> = new Set();

  /** @param nextId makes ids for the questions, unique among all that the gateway asks */
  constructor(exchange: Exchange, maxRounds: number, nextId: () => number) {
    this.#exchange = exchange;
    this.#maxRounds = maxRounds;
    this.#nextId = nextId;
  }

  /**
   * Asks what one result asks for.
   * @returns what is to be added to the params of the request when it is sent again
   * @throws RoundsFailed when the round cannot be brought to an end
   */
  async next({ bytes, result }: ResultFrame): Promise<Edits> {
    if (++this.#round > this.#maxRounds)
      throw new RoundsFailed(`more than ${this.#maxRounds} rounds of questions`);
    const requests = this.#read(bytes, getMember(bytes, result, 'inputRequests'));
    const state = getMember(bytes, result, 'requestState');
    if (requests.length === 0 && state?.kind !== 'string')
      throw new RoundsFailed('the server asked for nothing');
    await this.#pace(requests);
    const answers = await abortable(
      this.#exchange,
      Promise.all(requests.map((request) => this.#ask(request))),
    );
    const edits = new Map<string, Rope | string | undefined>([['inputResponses', undefined]]);
    if (requests.length > 0) edits.set('inputResponses', responsesOf(requests, answers));
    edits.set('requestState', state === undefined ? undefined : textOf(bytes, state));
    return edits;
  }

  #read(bytes: Buffer, node: JsonNode | undefined): InputRequest[] {
    if (node === undefined) return [];
    if (node.kind !== 'object') throw new RoundsFailed("the server's inputRequests are not an object");
    return membersOf(bytes, node).map(({ key, value }) => {
      const method = value.kind === 'object' ? stringOf(bytes, getMember(bytes, value, 'method')) : undefined;
      if (method === undefined) throw new RoundsFailed(`the server's input request ${key} has no method`);
      if (questionKind(method) === undefined)
        throw new RoundsFailed(`the server asks for ${method}, which is no question for a client`);
      const params = getMember(bytes, value, 'params');
      if (params !== undefined && params.kind !== 'object')
        throw new RoundsFailed(`the params of the server's input request ${key} are not an object`);
      const id = `"eragate:${this.#nextId()}"` as RequestId;
      const text = params === undefined ? undefined : new Rope().pushSlice(bytes, params.start, params.end);
      const frame = parseFrame(requestRope(id, method, text).toBuffer()) as RequestFrame;
      return {
        key,
        frame,
        url: params === undefined ? undefined : stringOf(bytes, getMember(bytes, params, 'url')),
      };
    });
  }

  async #ask({ frame }: InputRequest): Promise<Answer> {
    const { id, method, bytes, params } = frame;
    try {
      const answer = await this.#exchange.ask({ id, method, bytes, params });
      if ('result' in answer) return answer;
      const instead = INSTEAD_OF_ERROR[method];
      if (instead === undefined)
        throw new RoundsFailed(`the client answered ${method} with an error: ${messageOf(answer.error)}`);
      return { result: Buffer.from(instead) };
    } catch (error) {
      if (!(error instanceof QuestionRefused)) throw error;
      throw new RoundsFailed(`${method} could not be asked: ${error.message}`);
    }
  }

  async #pace(requests: readonly InputRequest[]): Promise<void> {
    const urls = new Set(requests.map(({ url }) => url).filter((url) => url !== undefined));
    const again = [...urls].some((url) => this.#urls.has(url));
    this.#urls = urls;
    if (requests.length === 0) {
      await this.#pause(this.#pauseMs);
      this.#pauseMs = Math.min(this.#pauseMs * 2, LONGEST_PAUSE_MS);
    } else if (again) {
      await this.#pause(this.#urlPauseMs);
      this.#urlPauseMs = Math.min(this.#urlPauseMs * 2, LONGEST_PAUSE_MS);
    }
  }

  #pause(ms: number): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const over = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, ms);
    });
    return abortable(this.#exchange, over, { leave: () => clearTimeout(timer) });
  }
}

/** The questions of a server could not be carried to the client and back. */
export class RoundsFailed extends Error {
  /** The outcome for a request that has no better place for it. */
  toExchangeError(): ExchangeError {
    return new ExchangeError(
      ownError({ code: CODE.internal, message: `Cannot request input: ${this.message}` }),
    );
  }
}

function responsesOf(requests: readonly InputRequest[], answers: readonly Answer[]): Rope {
  const out = new Rope().push('{');
  for (const [index, { key }] of requests.entries()) {
    out
      .push(`${index === 0 ? '' : ','}${JSON.stringify(key)}:`)
      .push((answers[index] as { result: Buffer }).result);
  }
  return out.push('}');
}

function messageOf(error: Buffer): string {
  const { message } = JSON.parse(error.toString()) as { message?: unknown };
  return typeof message === 'string' ? message : 'no message';
}
