import type { ClientAnswer, ServerMessage, ServerRequest } from '../../../exchange/channel.js';
import { CODE, ServerRequestRefused, ServerRequestWithdrawn } from '../../../exchange/errors.js';
import { getMember, type JsonNode, Rope, textOf } from '../../../jsonrpc/index.js';
import { answerOf, inputRequest } from '../wire/server-requests.js';

/** Limit of the server requests that one call, or one task, has open. */
const MAX_OPEN = 100;

interface OpenServerRequest {
  /** When the client first received it, on the monotonic clock. */
  sentAt: number | undefined;
  readonly request: ServerRequest;
  readonly resolve: (answer: ClientAnswer) => void;
  readonly reject: (error: Error) => void;
}

/** Server requests that wait to be sent to the client as `inputRequests`, and for its answers in a later request. */
export class OpenServerRequests {
  /** By key in `inputRequests`. */
  readonly #open = new Map<string, OpenServerRequest>();
  #count = 0;

  get size(): number {
    return this.#open.size;
  }

  /** The error for a further request at the limit; undefined below it. */
  get full(): ServerRequestRefused | undefined {
    if (this.size < MAX_OPEN) return undefined;
    return new ServerRequestRefused(`limit of ${MAX_OPEN} open questions reached`, CODE.internal);
  }

  /**
   * Adds a request under a key that is unique within the call.
   * @param kind prefix of the key
   */
  add(kind: string, request: ServerRequest): Promise<ClientAnswer> {
    return new Promise((resolve, reject) => {
      this.#open.set(`${kind}-${++this.#count}`, { sentAt: undefined, request, resolve, reject });
    });
  }

  /** When the client received the oldest request that it has not answered, on the monotonic clock; now if it has none. */
  get openSince(): number {
    let since = performance.now();
    for (const { sentAt = since } of this.#open.values()) since = Math.min(since, sentAt);
    return since;
  }

  /** The value of `inputRequests`. */
  inputRequests(): Rope {
    const out = new Rope().push('{');
    let separator = '';
    for (const [key, open] of this.#open) {
      open.sentAt ??= performance.now();
      out.push(`${separator}${JSON.stringify(key)}:`).push(inputRequest(open.request));
      separator = ',';
    }
    return out.push('}');
  }

  /** Resolves requests with the client's answers; answers to other keys are ignored. */
  answer(bytes: Buffer, responses: JsonNode): void {
    for (const [key, { resolve }] of this.#open) {
      const response = getMember(bytes, responses, key);
      if (response?.kind !== 'object') continue;
      this.#open.delete(key);
      resolve(answerOf(bytes, response));
    }
  }

  /** Withdraws the request that a `notifications/cancelled` of the server names. */
  withdraw({ bytes, params }: ServerMessage): void {
    const id = params === undefined ? undefined : getMember(bytes, params, 'requestId');
    if (id === undefined) return;
    for (const [key, { request, reject }] of this.#open) {
      if (request.id !== textOf(bytes, id)) continue;
      this.#open.delete(key);
      reject(new ServerRequestWithdrawn());
    }
  }

  /** Settles each request with what `settle` returns for it: an answer, or an error. */
  settleAll(settle: (request: ServerRequest) => ClientAnswer | Error): void {
    for (const [key, { request, resolve, reject }] of this.#open) {
      this.#open.delete(key);
      const settled = settle(request);
      if (settled instanceof Error) reject(settled);
      else resolve(settled);
    }
  }
}
