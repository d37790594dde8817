import type { ClientResponse } from '../../../downstream/response.js';
import type { ClientAnswer, ServerMessage, ServerRequest } from '../../../exchange/channel.js';
import { CODE, ServerRequestRefused, ServerRequestWithdrawn } from '../../../exchange/errors.js';
import type { ForwardedHeaders } from '../../../exchange/forwarded-headers.js';
import {
  type ErrorFrame,
  getMember,
  isSameId,
  notificationRope,
  type RequestId,
  type ResultFrame,
  Rope,
  textOf,
} from '../../../jsonrpc/index.js';

/** JoinedServerRequests that a client has open at a time. */
const MAX_QUESTIONS = 1_000;

interface Pending {
  readonly stream: ClientResponse;
  readonly resolve: (answer: ClientAnswer) => void;
  readonly reject: (error: Error) => void;
  readonly timer: NodeJS.Timeout;
}

/** The questions that a legacy client has open: each came on one of its streams, and is answered by a POST of its own. */
export class PendingServerRequests {
  readonly #timeoutMs: number;
  readonly #otherStream: () => ClientResponse | undefined;
  readonly #open = new Map<RequestId, Pending>();

  /**
   * @param timeoutMs the time that a person has for an answer
   * @param otherStream where the client hears of a question whose own stream has ended
   */
  constructor(timeoutMs: number, otherStream: () => ClientResponse | undefined) {
    this.#timeoutMs = timeoutMs;
    this.#otherStream = otherStream;
  }

  /**
   * Puts a server's request to the client, under the server's own id.
   * @throws ServerRequestRefused
   */
  ask(question: ServerRequest, stream: ClientResponse): Promise<ClientAnswer> {
    const { id, bytes } = question;
    if (this.#open.size >= MAX_QUESTIONS) {
      return Promise.reject(
        new ServerRequestRefused(`limit of ${MAX_QUESTIONS} open questions reached`, CODE.internal),
      );
    }
    // Servers count from 0: the one that took a lost session's place uses the same ids again.
    this.withdraw(id, 'the server asks something else under this id');
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => this.withdraw(id, 'Request timed out'), this.#timeoutMs).unref();
      this.#open.set(id, { stream, resolve, reject, timer });
      stream.writeEvent(new Rope().push(bytes));
    });
  }

  /** Whether somebody waits for an answer. */
  expects({ id }: ResultFrame | ErrorFrame): boolean {
    const asked = this.#asked(id);
    return asked !== undefined && this.#open.has(asked);
  }

  /** Takes the client's answer, and what it came with; one that nobody waits for is dropped. */
  answer(frame: ResultFrame | ErrorFrame, forwarded: ForwardedHeaders): void {
    const { id, bytes } = frame;
    const node = frame.type === 'result' ? frame.result : frame.error;
    const text = bytes.subarray(node.start, node.end);
    const answer = frame.type === 'result' ? { result: text, forwarded } : { error: text, forwarded };
    this.#close(this.#asked(id))?.resolve(answer);
  }

  /** Stops waiting for an answer, and tells the client so (basic/utilities/cancellation). */
  withdraw(id: RequestId, reason: string): void {
    const pending = this.#close(id);
    if (pending === undefined) return;
    const stream = pending.stream.done ? this.#otherStream() : pending.stream;
    const params = new Rope().push(`{"requestId":${id},"reason":${JSON.stringify(reason)}}`);
    stream?.writeEvent(notificationRope('notifications/cancelled', params));
    pending.reject(new ServerRequestRefused(reason, CODE.notFoundOrTimeout));
  }

  withdrawAll(reason: string): void {
    for (const id of [...this.#open.keys()]) this.withdraw(id, reason);
  }

  /** The server itself tells the client that it takes a question back; no answer is waited for any longer. */
  noteCancellation({ bytes, params }: ServerMessage): void {
    const id = params === undefined ? undefined : getMember(bytes, params, 'requestId');
    if (id !== undefined) this.#close(textOf(bytes, id) as RequestId)?.reject(new ServerRequestWithdrawn());
  }

  /** The id of the question that an answer is to, as its server wrote it. */
  #asked(id: RequestId | undefined): RequestId | undefined {
    if (id === undefined || this.#open.has(id)) return id;
    return [...this.#open.keys()].find((asked) => isSameId(asked, id));
  }

  #close(id: RequestId | undefined): Pending | undefined {
    const pending = id === undefined ? undefined : this.#open.get(id);
    if (id === undefined || pending === undefined) return undefined;
    this.#open.delete(id);
    clearTimeout(pending.timer);
    return pending;
  }
}
