import { CODE, ServerRequestRefused, ServerRequestWithdrawn } from '../../../exchange/errors.js';
import type { Answer, ServerMessage, ServerRequest } from '../../../exchange/types.js';
import { getMember, type JsonNode, Rope, textOf } from '../../../jsonrpc/index.js';
import { answerOf, inputRequest } from '../wire/server-requests.js';

/** JoinedServerRequests that one call, or one task, has open at a time. */
const MAX_QUESTIONS = 100;

interface OpenServerRequest {
  /** When the client was first told of it, on the monotonic clock. */
  toldAt: number | undefined;
  readonly question: ServerRequest;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: Error) => void;
}

/** The questions of a server that wait for the client to fetch them and to come back with answers. */
export class OpenServerRequests {
  readonly #questions = new Map<string, OpenServerRequest>();
  #asked = 0;

  get size(): number {
    return this.#questions.size;
  }

  /** Why one more cannot be taken; undefined where it can. */
  get full(): ServerRequestRefused | undefined {
    if (this.size < MAX_QUESTIONS) return undefined;
    return new ServerRequestRefused(`limit of ${MAX_QUESTIONS} open questions reached`, CODE.internal);
  }

  /**
   * Takes a question, under a key that no other has for as long as the call lasts.
   * @param kind what the key begins with
   */
  add(kind: string, question: ServerRequest): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#questions.set(`${kind}-${++this.#asked}`, { toldAt: undefined, question, resolve, reject });
    });
  }

  /** Since when the client has known of what it has not answered. */
  get openSince(): number {
    let since = performance.now();
    for (const { toldAt = since } of this.#questions.values()) since = Math.min(since, toldAt);
    return since;
  }

  /** The members of `inputRequests`, in braces, for the client. */
  inputRequests(): Rope {
    const out = new Rope().push('{');
    let separator = '';
    for (const [key, open] of this.#questions) {
      open.toldAt ??= performance.now();
      out.push(`${separator}${JSON.stringify(key)}:`).push(inputRequest(open.question));
      separator = ',';
    }
    return out.push('}');
  }

  /** Takes the client's answers; those to what is not asked, or not any more, are none. */
  answer(bytes: Buffer, responses: JsonNode): void {
    for (const [key, { resolve }] of this.#questions) {
      const response = getMember(bytes, responses, key);
      if (response?.kind !== 'object') continue;
      this.#questions.delete(key);
      resolve(answerOf(bytes, response));
    }
  }

  /** The server takes a question back, with a message that names its request. */
  withdraw({ bytes, params }: ServerMessage): void {
    const id = params === undefined ? undefined : getMember(bytes, params, 'requestId');
    if (id === undefined) return;
    for (const [key, { question, reject }] of this.#questions) {
      if (question.id !== textOf(bytes, id)) continue;
      this.#questions.delete(key);
      reject(new ServerRequestWithdrawn());
    }
  }

  /** Ends each question by what `settle` makes of it: an answer, or an error. */
  settleAll(settle: (question: ServerRequest) => Answer | Error): void {
    for (const [key, { question, resolve, reject }] of this.#questions) {
      this.#questions.delete(key);
      const settled = settle(question);
      if (settled instanceof Error) reject(settled);
      else resolve(settled);
    }
  }
}
