import type { JsonNode, RequestId } from '../jsonrpc/index.js';
import type { Caller } from './caller.js';
import type { Channel, ClientAnswer, ServerMessage, ServerRequest } from './channel.js';
import { cancelled } from './errors.js';
import { type ForwardedHeaders, withCredentials } from './forwarded-headers.js';
import type { EraName } from './revision.js';
import type { TaskKeeper } from './tasks.js';
import { NOWHERE, type UnorderedSetItem } from './utils/unordered-set.js';

/** The params of a client's request, as nodes of its body. */
export interface Params {
  readonly bytes: Buffer;
  readonly node: JsonNode | undefined;
  /** The `_meta` object of the params. */
  readonly meta: JsonNode | undefined;
  /** Keys of `_meta` that belong to the envelope of the client's era, and are not for the backend. */
  readonly envelopeKeys: readonly string[];
  /** `_meta` has no other keys. */
  readonly bareEnvelope?: boolean;
}

export interface ExchangeRequest {
  /** The client's id, as it wrote it. */
  readonly id: RequestId;
  readonly method: string;
  readonly params: Params;
  /** The value of `Mcp-Name`: name of the tool or prompt, or uri of the resource. */
  readonly name: string | undefined;
  /** JSON text of `_meta.progressToken`. */
  readonly progressToken: string | undefined;
  /** The client requests the handle of a task in place of the result. */
  readonly wantsTask?: boolean | undefined;
  /** It is a retry with a `requestState` that only a backend of the client's era can read. */
  readonly resumes: boolean;
  /** The whole message, if it can be sent to a backend of the same era unchanged. */
  readonly raw: Buffer | undefined;
  /** `Mcp-Param-*` headers, as alternating lower-case names and values. */
  readonly paramHeaders: readonly string[];
}

/** What is logged of an exchange beyond its request. Each part of the gateway fills in what it knows. */
export interface ExchangeNotes {
  /** The id of the HTTP request. */
  requestId: string | undefined;
  backendEra: EraName | undefined;
  session: string | undefined;
  backendMs: number | undefined;
  /** How the result came from the cache; undefined if it did not. */
  cache: 'hit' | 'joined' | 'stale' | undefined;
}

/** Takes part in an exchange from {@link Exchange.attach} until it is detached. An exchange has any number of them. */
export interface ExchangeObserver {
  /** The client left or cancelled, or time is up. Called once; on attaching if that happened before. */
  onCancelled?(reason: string): void;
  /** The server asks the client something, so that the result is for this client alone. */
  onServerRequest?(): void;
  /** The client left with server requests to answer. */
  onParked?(): void;
  /** The client came back. */
  onUnparked?(): void;
  /**
   * Tries credentials that the client came back with, before its answers reach the server.
   * @throws ExchangeError with the challenge of a backend that refuses them
   */
  tryCredentials?(forwarded: ForwardedHeaders): Promise<unknown>;
}

/** What the client side offers an exchange beside its channel. */
export interface ExchangeOptions {
  /** For a client that accepts the handle of a task in place of the result. */
  readonly taskKeeper?: TaskKeeper | undefined;
}

const NO_OBSERVERS: readonly ExchangeObserver[] = [];
const NO_OPTIONS: ExchangeOptions = {};

/**
 * One client request in flight, with messages in both directions while it lasts. The client side makes it and ends it;
 * the backend side carries it out until it is cancelled. Waits are ended by {@link Exchange.signal}. What every request
 * does observes the cancellation by {@link Exchange.attach}: a signal with a listener costs 3 µs, an observer 0.2 µs.
 */
export class Exchange implements UnorderedSetItem {
  place = NOWHERE;
  readonly request: ExchangeRequest;
  readonly taskKeeper: TaskKeeper | undefined;
  readonly startedAt: number;
  readonly notes: ExchangeNotes = {
    requestId: undefined,
    backendEra: undefined,
    session: undefined,
    backendMs: undefined,
    cache: undefined,
  };
  readonly #channel: Channel;
  #caller: Caller;
  #progressToken: string | undefined;
  #limitMs = Number.POSITIVE_INFINITY;
  #deadlineAt = Number.POSITIVE_INFINITY;
  #timedOut = false;
  #parked = false;
  #cancelReason: string | undefined;
  #controller: AbortController | undefined;
  /** Replaced rather than changed: observers may attach and detach while it is iterated. */
  #observers: readonly ExchangeObserver[] = NO_OBSERVERS;

  constructor(
    request: ExchangeRequest,
    caller: Caller,
    channel: Channel,
    { taskKeeper }: ExchangeOptions = NO_OPTIONS,
  ) {
    this.request = request;
    this.taskKeeper = taskKeeper;
    this.startedAt = performance.now();
    this.#caller = caller;
    this.#channel = channel;
    this.#progressToken = request.progressToken;
  }

  /** With the latest credentials: the client may renew them while it answers server requests. */
  get caller(): Caller {
    return this.#caller;
  }

  /** JSON text of the progress token under which the client follows the call now. */
  get progressToken(): string | undefined {
    return this.#progressToken;
  }

  /** The client has left with server requests to answer: the call goes on when it comes back. */
  get parked(): boolean {
    return this.#parked;
  }

  get timedOut(): boolean {
    return this.#timedOut;
  }

  /** Why the exchange was cancelled; undefined while it is wanted. */
  get cancelled(): string | undefined {
    return this.#cancelReason;
  }

  /** Aborted when the exchange is cancelled; its reason is the ExchangeError that the exchange then ends with. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#cancelReason !== undefined) this.#controller.abort(cancelled(this.#cancelReason));
    }
    return this.#controller.signal;
  }

  /** Adds an observer until the attachment is disposed of. */
  attach(observer: ExchangeObserver): Disposable {
    this.#observers = [...this.#observers, observer];
    if (this.#cancelReason !== undefined) observer.onCancelled?.(this.#cancelReason);
    return { [Symbol.dispose]: () => this.#remove(observer) };
  }

  #remove(observer: ExchangeObserver): void {
    const observers = this.#observers.filter((other) => other !== observer);
    this.#observers = observers.length === 0 ? NO_OBSERVERS : observers;
  }

  /** See {@link Channel.notify}. */
  notify(message: ServerMessage): boolean {
    return this.#cancelReason !== undefined || this.#channel.notify(message);
  }

  /** See {@link Channel.onDrain}. */
  onDrain(resume: () => void): void {
    this.#channel.onDrain(resume);
  }

  /** See {@link Channel.reachable}. */
  get reachable(): boolean {
    return this.#cancelReason === undefined && this.#channel.reachable !== false;
  }

  /** See {@link Channel.detach}. */
  detach(): void {
    this.#channel.detach?.();
  }

  /** See {@link Channel.ask}. */
  ask(request: ServerRequest): Promise<ClientAnswer> {
    for (const observer of this.#observers) observer.onServerRequest?.();
    return this.#channel.ask(request).then((answer) => {
      if (answer.forwarded !== undefined) this.renew(answer.forwarded);
      return answer;
    });
  }

  /**
   * Tries credentials on all that the exchange holds of the backend; undefined where it holds nothing to try them on.
   * @throws ExchangeError with the challenge of a backend that refuses them
   */
  tryCredentials(forwarded: ForwardedHeaders): Promise<unknown> | undefined {
    const tries: Promise<unknown>[] = [];
    for (const observer of this.#observers) {
      const tried = observer.tryCredentials?.(forwarded);
      if (tried !== undefined) tries.push(tried);
    }
    return tries.length === 0 ? undefined : Promise.all(tries);
  }

  /** Uses other credentials of the client from now on. Its other headers and its query are those of the call. */
  renew(renewed: ForwardedHeaders): void {
    const { forwarded: present } = this.#caller;
    if (renewed === present) return;
    const forwarded = withCredentials(present, renewed);
    this.#caller = { ...this.#caller, forwarded };
  }

  /** The client follows the call under another progress token, or under none. */
  followUnder(progressToken: string | undefined): void {
    this.#progressToken = progressToken;
  }

  /** Ends the exchange before its outcome. Only the first call counts. */
  cancel(reason: string): void {
    if (this.#cancelReason !== undefined) return;
    this.#cancelReason = reason;
    for (const observer of this.#observers) observer.onCancelled?.(reason);
    this.#controller?.abort(cancelled(reason));
  }

  /** Sets the time that the exchange may take, in milliseconds from its start. */
  limit(ms: number): void {
    this.#limitMs = ms;
    this.#deadlineAt = this.startedAt + ms;
  }

  /** The client leaves with server requests to answer. No time limit applies until it comes back. */
  park(): void {
    this.#parked = true;
    this.#deadlineAt = Number.POSITIVE_INFINITY;
    for (const observer of this.#observers) observer.onParked?.();
  }

  /** The client is back, and follows the call under this progress token, or under none. */
  unpark(progressToken: string | undefined): void {
    this.#parked = false;
    this.#progressToken = progressToken;
    this.#deadlineAt = performance.now() + this.#limitMs;
    for (const observer of this.#observers) observer.onUnparked?.();
  }

  /** Cancels the exchange if its time is up. */
  tick(now: number): void {
    if (now < this.#deadlineAt || this.#cancelReason !== undefined) return;
    this.#timedOut = true;
    this.cancel('time is up');
  }
}
