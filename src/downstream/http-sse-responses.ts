import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Rope } from '../jsonrpc/index.js';
import { ClientResponse, type Headers, type ResponseOptions } from './response.js';

const ACCEPTED = 202;
/** The statuses that a client has to see as such: it is to log in, or may not do this. */
const FOR_HTTP: ReadonlySet<number> = new Set([401, 403]);
/** How long a POST waits for such a status: some clients give up on a POST after five seconds. */
const HOLD_MS = 2_000;

/** The event stream of an HTTP+SSE client (2024-11-05, basic/transports): it is there for as long as the session. */
export class SseStreamResponse extends ClientResponse {
  readonly #stream: ServerResponse;
  /** Told when the client goes away; each leaves with its message. */
  readonly #followers = new Set<() => void>();
  #announced = false;
  #watched = false;
  #onEnd: (() => void) | undefined;

  constructor(req: IncomingMessage, res: ServerResponse, extra: Headers, options: ResponseOptions) {
    super(req, res, extra, options);
    this.#stream = res;
  }

  /** Bytes that the client has not read yet. */
  get unread(): number {
    return this.#stream.writableLength;
  }

  /**
   * Opens the stream, and tells the client where to send its messages.
   * @param onEnd told when the stream is over, from either side
   */
  announce(endpoint: string, onEnd: () => void): void {
    this.#onEnd = onEnd;
    this.onAbort(() => {
      for (const follower of [...this.#followers]) follower();
      this.#ended();
    });
    super.openStream();
    this.#announced = true;
    this.#stream.write(`event: endpoint\ndata: ${endpoint}\n\n`);
  }

  /** Calls `follower` when the client goes away, until {@link SseStreamResponse.leave}. */
  follow(follower: () => void): void {
    if (this.aborted) follower();
    else this.#followers.add(follower);
  }

  leave(follower: () => void): void {
    this.#followers.delete(follower);
  }

  /** Has a client cut off that reads nothing for long of what is there. */
  watch(): void {
    if (this.#watched) return;
    this.#watched = true;
    this.onDrain(() => {
      this.#watched = false;
    });
  }

  override openStream(): void {
    if (!this.#announced) super.openStream();
  }

  /** What comes on this stream cannot be asked for again: a new stream is a new session. */
  override makeResumable(): void {}

  override endEmpty(status: number, headers?: Headers): void {
    super.endEmpty(status, headers);
    this.#ended();
  }

  #ended(): void {
    const onEnd = this.#onEnd;
    this.#onEnd = undefined;
    onEnd?.();
  }
}

/**
 * The answer to one message of an HTTP+SSE client: the POST is answered with 202, and whatever comes of the message goes
 * to the client's event stream. Until it is bound to that, it is the answer to the POST like any other.
 */
export class SseMessageResponse extends ClientResponse {
  #stream: SseStreamResponse | undefined;
  /** Whether the client waits for a response. */
  #awaited = false;
  #over = false;
  #timer: NodeJS.Timeout | undefined;
  #onSession: ((token: string) => void) | undefined;
  readonly #following: (() => void)[] = [];

  /**
   * @param awaited whether the message is a request, or holds one
   * @param onSession told of the id of the session that the message opens; its POST then waits a little, for a status
   * that only it can carry
   */
  bind(stream: SseStreamResponse, awaited: boolean, onSession?: (token: string) => void): void {
    super.holdHeaders();
    this.#stream = stream;
    this.#awaited = awaited;
    this.#onSession = onSession;
    if (onSession === undefined) this.#accept();
    else this.#timer = setTimeout(() => this.#accept(), HOLD_MS).unref();
  }

  /** The client wants no response any more. */
  silence(): void {
    this.#awaited = false;
  }

  override get status(): number {
    return this.#stream === undefined || super.status >= 400 ? super.status : 200;
  }

  override get done(): boolean {
    return this.#stream === undefined ? super.done : this.#over || this.#stream.done;
  }

  override get aborted(): boolean {
    return this.#stream === undefined ? super.aborted : this.#stream.aborted;
  }

  override get acceptsEvents(): boolean {
    return this.#stream !== undefined || super.acceptsEvents;
  }

  override onAbort(listener: () => void): void {
    if (this.#stream === undefined) super.onAbort(listener);
    else if (!this.#over) {
      this.#following.push(listener);
      this.#stream.follow(listener);
    }
  }

  override writeEvent(message: Rope): boolean {
    return this.#stream === undefined ? super.writeEvent(message) : this.#stream.writeEvent(message);
  }

  override onDrain(resume: () => void): void {
    if (this.#stream === undefined) super.onDrain(resume);
    else this.#stream.onDrain(resume);
  }

  override makeResumable(): void {}

  override end(status: number, message: Rope, headers?: Headers): void {
    const token = headers?.['mcp-session-id'];
    if (token !== undefined) this.#onSession?.(token);
    if (this.#stream === undefined || (FOR_HTTP.has(status) && this.#timer !== undefined)) {
      clearTimeout(this.#timer);
      super.end(status, message, headers);
    } else this.#tell([message]);
  }

  override endBatch(messages: readonly Rope[]): void {
    if (this.#stream === undefined) super.endBatch(messages);
    else this.#tell(messages);
  }

  override endEmpty(status: number, headers?: Headers): void {
    if (this.#stream === undefined) super.endEmpty(status, headers);
    else this.#tell([]);
  }

  #tell(messages: readonly Rope[]): void {
    if (this.#over) return;
    this.#over = true;
    this.#accept();
    const stream = this.#stream as SseStreamResponse;
    for (const follower of this.#following) stream.leave(follower);
    if (!this.#awaited) return;
    for (const message of messages) stream.writeEvent(message);
    stream.watch();
  }

  #accept(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    super.endEmpty(ACCEPTED);
  }
}
