import type { JsonNode, RequestId } from '../jsonrpc/index.js';
import type { TaskKeeper } from './tasks.js';
import type { Answer, Caller, Channel, ForwardedHeaders, ServerMessage, ServerRequest } from './types.js';
import { NOWHERE, type UnorderedSetItem } from './unordered-set.js';

/** The params of a client's request where they stand in its body, with the era's own `_meta` keys named. */
export interface Params {
  readonly bytes: Buffer;
  readonly node: JsonNode | undefined;
  /** The `_meta` object of the params. */
  readonly meta: JsonNode | undefined;
  /** Keys of `_meta` that belong to the inbound era's envelope and go no further. */
  readonly envelopeKeys: readonly string[];
  /** Nothing is in `_meta` but these. */
  readonly bareEnvelope?: boolean;
}

export interface ExchangeRequest {
  /** The client's id, as it wrote it. */
  readonly id: RequestId;
  readonly method: string;
  readonly params: Params;
  /** Name of the tool or prompt, or uri of the resource: what `Mcp-Name` names. */
  readonly name: string | undefined;
  /** JSON text of `_meta.progressToken`. */
  readonly progressToken: string | undefined;
  /** The client wants the handle of a task, and not to wait for the result. */
  readonly wantsTask?: boolean | undefined;
  /** It brings along a state that a backend of the caller's own era gave it, who alone can tell what it means. */
  readonly resumes: boolean;
  /** The whole message, where it may be passed on to a backend of the same era as it is. */
  readonly raw: Buffer | undefined;
  /** Client headers that belong to the call rather than to the caller (`Mcp-Param-*`), lower-cased name and value in turn. */
  readonly paramHeaders: readonly string[];
}

/** What the log line of an exchange tells beyond the request itself; filled in by whoever knows. */
export interface ExchangeNotes {
  backendEra: string | undefined;
  session: string | undefined;
  backendMs: number | undefined;
  /** How the answer came from the cache, where it did. */
  cache: 'hit' | 'joined' | 'stale' | undefined;
}

/**
 * One client request in flight, with traffic in both directions while it lasts. The inbound side makes it and ends
 * it; the outbound side carries it out and is told through {@link Exchange.onCancel} when nobody waits any longer.
 */
export class Exchange implements UnorderedSetItem {
  place = NOWHERE;
  readonly request: ExchangeRequest;
  /** With the credentials of the latest that came of the client: they are renewed while it is asked. */
  caller: Caller;
  readonly startedAt: number;
  readonly notes: ExchangeNotes = {
    backendEra: undefined,
    session: undefined,
    backendMs: undefined,
    cache: undefined,
  };
  /** When time is up, on the monotonic clock; infinite for streams that last, and while a person is asked. */
  deadlineAt = Number.POSITIVE_INFINITY;
  timedOut = false;
  /** Nobody of the client's side waits at the moment: the call goes on when the client comes back with answers. */
  parked = false;
  /** JSON text of the progress token under which the client follows the call now. */
  progressToken: string | undefined;
  /** It is carried out on another side of the backend than that which serves the client's session. */
  viaOtherEra = false;
  /** The client takes the handle of a task in place of the result, and whoever keeps its tasks. */
  taskKeeper: TaskKeeper | undefined;
  /** Told when the client is asked something, so that what comes of the request is for it alone. */
  onAsk: (() => void) | undefined;
  /** Told when the exchange is parked and when it goes on. */
  onParked: ((parked: boolean) => void) | undefined;
  /**
   * Tries the credentials of a client that comes back with answers, before they are told to the server.
   * It rejects with the backend's challenge where that refuses them.
   */
  tryCredentials: ((forwarded: ForwardedHeaders) => Promise<unknown>) | undefined;
  #limitMs = Number.POSITIVE_INFINITY;
  readonly #channel: Channel;
  #cancelReason: string | undefined;
  #listener: ((reason: string) => void) | undefined;

  constructor(request: ExchangeRequest, caller: Caller, channel: Channel) {
    this.request = request;
    this.caller = caller;
    this.startedAt = performance.now();
    this.#channel = channel;
    this.progressToken = request.progressToken;
  }

  /** Why the exchange was cancelled; undefined while it is wanted. */
  get cancelled(): string | undefined {
    return this.#cancelReason;
  }

  /** See {@link Channel.notify}. */
  notify(message: ServerMessage): boolean {
    return this.#cancelReason !== undefined || this.#channel.notify(message);
  }

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
  ask(question: ServerRequest): Promise<Answer> {
    this.onAsk?.();
    return this.#channel.ask(question).then((answer) => {
      if (answer.forwarded !== undefined) this.renew(answer.forwarded);
      return answer;
    });
  }

  /** The client came with these credentials, which serve from now on. */
  renew(forwarded: ForwardedHeaders): void {
    if (forwarded !== this.caller.forwarded) this.caller = { ...this.caller, forwarded };
  }

  /** The client left, cancelled, or time is up. Cancelling twice is cancelling once. */
  cancel(reason: string): void {
    if (this.#cancelReason !== undefined) return;
    this.#cancelReason = reason;
    this.#listener?.(reason);
  }

  /** Sets the time that the exchange may take, from its start on. */
  limit(ms: number): void {
    this.#limitMs = ms;
    this.deadlineAt = this.startedAt + ms;
  }

  /** The client was asked and has left with the questions: time stands still until it comes back. */
  park(): void {
    this.parked = true;
    this.deadlineAt = Number.POSITIVE_INFINITY;
    this.onParked?.(true);
  }

  /** The client is back, and follows the call under another progress token, or under none. */
  unpark(progressToken: string | undefined): void {
    this.parked = false;
    this.progressToken = progressToken;
    this.deadlineAt = performance.now() + this.#limitMs;
    this.onParked?.(false);
  }

  /** Looks whether time is up. */
  tick(now: number): void {
    if (now < this.deadlineAt || this.#cancelReason !== undefined) return;
    this.timedOut = true;
    this.cancel('time is up');
  }

  /**
   * Names the one listener for cancellation; a step of the work that begins replaces that of the step before, and
   * `undefined` removes it. Called at once when the exchange is cancelled already.
   */
  onCancel(listener: ((reason: string) => void) | undefined): void {
    this.#listener = listener;
    if (listener !== undefined && this.#cancelReason !== undefined) listener(this.#cancelReason);
  }
}
