import type { Rope } from '../jsonrpc/index.js';
import type { HttpResponse } from './http-response.js';
import type { ClientResponse } from './response.js';
import type { Headers } from './response-writer.js';

const ACCEPTED = 202;
/** Statuses that the client has to see on its POST: it should log in, or is not allowed to do this. */
const SHOWN_ON_POST: ReadonlySet<number> = new Set([401, 403]);
/** How long the POST of a handshake waits for such a status: some clients give up on a POST after five seconds. */
const HANDSHAKE_HOLD_MS = 2_000;

export interface MessageTraits {
  /** Whether the client waits for a response: the message is a request, or a batch that may hold one. */
  readonly awaited: boolean;
  /** For a handshake: called with the id of the new session. The POST is then held a little, for a status of its own. */
  readonly onSession?: ((token: string) => void) | undefined;
}

/**
 * The response to one message of an HTTP+SSE client (2024-11-05, basic/transports): the POST gets 202, and all messages
 * go to the client's event stream.
 */
export class HttpSseResponse implements ClientResponse {
  readonly #post: ClientResponse;
  readonly #stream: HttpResponse;
  readonly #onSession: ((token: string) => void) | undefined;
  #awaited: boolean;
  #ended = false;
  #hold: NodeJS.Timeout | undefined;
  readonly #abortListeners: (() => void)[] = [];

  /**
   * @param post the response to the POST itself
   * @param stream the client's event stream
   */
  constructor(post: ClientResponse, stream: HttpResponse, { awaited, onSession }: MessageTraits) {
    this.#post = post;
    this.#stream = stream;
    this.#awaited = awaited;
    this.#onSession = onSession;
    if (onSession === undefined) this.#accept();
    else this.#hold = setTimeout(() => this.#accept(), HANDSHAKE_HOLD_MS).unref();
  }

  get status(): number {
    return this.#post.status >= 400 ? this.#post.status : 200;
  }

  get done(): boolean {
    return this.#ended || this.#stream.done;
  }

  get aborted(): boolean {
    return this.#stream.aborted;
  }

  get reachable(): boolean {
    return !this.aborted;
  }

  get acceptsEvents(): boolean {
    return true;
  }

  /** False, so that the responses to a batch are written together. */
  get streaming(): boolean {
    return false;
  }

  onAbort(listener: () => void): void {
    if (this.#ended) return;
    this.#abortListeners.push(listener);
    this.#stream.onAbort(listener);
  }

  offAbort(listener: () => void): void {
    this.#stream.offAbort(listener);
  }

  writeEvent(message: Rope): boolean {
    return this.#stream.writeEvent(message);
  }

  onDrain(resume: () => void): void {
    this.#stream.onDrain(resume);
  }

  allowStream(): void {}

  /** Does nothing: a new stream is a new session, so that events of an old one cannot be fetched. */
  makeResumable(): void {}

  detach(): void {}

  /** Sends no response to a request that its client has cancelled. */
  silence(): void {
    this.#awaited = false;
  }

  end(status: number, message: Rope, headers?: Headers): void {
    const token = headers?.['mcp-session-id'];
    if (token !== undefined) this.#onSession?.(token);
    if (!this.#ended && SHOWN_ON_POST.has(status) && this.#hold !== undefined) {
      clearTimeout(this.#hold);
      this.#hold = undefined;
      this.#close();
      this.#post.end(status, message, headers);
    } else this.#finish([message]);
  }

  endBatch(messages: readonly Rope[]): void {
    this.#finish(messages);
  }

  endEmpty(): void {
    this.#finish([]);
  }

  #finish(messages: readonly Rope[]): void {
    if (this.#ended) return;
    this.#close();
    this.#accept();
    if (!this.#awaited) return;
    for (const message of messages) this.#stream.writeEvent(message);
    this.#stream.limitUnread();
  }

  #close(): void {
    this.#ended = true;
    for (const listener of this.#abortListeners) this.#stream.offAbort(listener);
  }

  #accept(): void {
    clearTimeout(this.#hold);
    this.#hold = undefined;
    this.#post.endEmpty(ACCEPTED);
  }
}
