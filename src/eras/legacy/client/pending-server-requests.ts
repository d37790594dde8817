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

/** Limit of the open requests of one client. */
const MAX_OPEN = 1_000;

interface Pending {
  readonly stream: ClientResponse;
  readonly resolve: (answer: ClientAnswer) => void;
  readonly reject: (error: Error) => void;
  readonly timer: NodeJS.Timeout;
}

/** The server requests that a legacy client has not answered yet. Each is sent on a stream, and answered by a POST. */
export class PendingServerRequests {
  readonly #timeoutMs: number;
  readonly #otherStream: () => ClientResponse | undefined;
  readonly #open = new Map<RequestId, Pending>();

  /**
   * @param timeoutMs longest time for an answer
   * @param otherStream returns the stream to notify a cancellation on, if that of the request has ended
   */
  constructor(timeoutMs: number, otherStream: () => ClientResponse | undefined) {
    this.#timeoutMs = timeoutMs;
    this.#otherStream = otherStream;
  }

  /**
   * Sends a server's request to the client, under the server's own id.
   * @throws ServerRequestRefused
   */
  ask(request: ServerRequest, stream: ClientResponse): Promise<ClientAnswer> {
    const { id, bytes } = request;
    if (this.#open.size >= MAX_OPEN) {
      return Promise.reject(
        new ServerRequestRefused(`limit of ${MAX_OPEN} open questions reached`, CODE.internal),
      );
    }
    // Servers count ids from 0, so a server with a new session uses the ids of the one before again.
    this.withdraw(id, 'the server asks something else under this id');
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => this.withdraw(id, 'Request timed out'), this.#timeoutMs).unref();
      this.#open.set(id, { stream, resolve, reject, timer });
      stream.writeEvent(new Rope().push(bytes));
    });
  }

  /** Whether a server waits for this answer. */
  expects({ id }: ResultFrame | ErrorFrame): boolean {
    const open = this.#idOf(id);
    return open !== undefined && this.#open.has(open);
  }

  /** Resolves the request that the client answers; an unexpected answer is dropped. */
  answer(frame: ResultFrame | ErrorFrame, forwarded: ForwardedHeaders): void {
    const { id, bytes } = frame;
    const node = frame.type === 'result' ? frame.result : frame.error;
    const text = bytes.subarray(node.start, node.end);
    const answer = frame.type === 'result' ? { result: text, forwarded } : { error: text, forwarded };
    this.#close(this.#idOf(id))?.resolve(answer);
  }

  /** Rejects a request, and notifies the client of that (basic/utilities/cancellation). */
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

  /** Rejects a request that its server cancels. */
  noteCancellation({ bytes, params }: ServerMessage): void {
    const id = params === undefined ? undefined : getMember(bytes, params, 'requestId');
    if (id !== undefined) this.#close(textOf(bytes, id) as RequestId)?.reject(new ServerRequestWithdrawn());
  }

  /** The id of the request that an answer is for, as its server wrote it. */
  #idOf(id: RequestId | undefined): RequestId | undefined {
    if (id === undefined || this.#open.has(id)) return id;
    return [...this.#open.keys()].find((open) => isSameId(open, id));
  }

  #close(id: RequestId | undefined): Pending | undefined {
    const pending = id === undefined ? undefined : this.#open.get(id);
    if (id === undefined || pending === undefined) return undefined;
    this.#open.delete(id);
    clearTimeout(pending.timer);
    return pending;
  }
}
