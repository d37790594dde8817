import { covers } from '../../exchange/changes.js';
import type { NotificationFrame, RequestFrame } from '../../jsonrpc/index.js';
import type { Call } from './in-flight-request.js';
import {
  CANCELLED,
  keyOf,
  LISTEN,
  LOG,
  PROGRESS,
  paramOf,
  subscriptionOf,
  withParam,
  withSubscription,
} from './messages.js';
import type { Routing, Talk } from './routing.js';
import { StdioSession } from './session.js';

const UPDATED = 'notifications/resources/updated';
const LIST_CHANGED = /^notifications\/\w+\/list_changed$/;

/**
 * A process that callers share who do not know of each other: those of the era without sessions, or the sessions of
 * all clients where the configuration says so. Nothing that one of them has brought about is told to another.
 */
export class SharedRouting implements Routing {
  readonly renumbers = true;
  readonly #talk: Talk;
  /** What each session has subscribed to. */
  readonly #sessions = new Map<StdioSession, Set<string>>();

  constructor(talk: Talk) {
    this.#talk = talk;
  }

  get inUse(): boolean {
    return this.#sessions.size > 0;
  }

  join(id: string): StdioSession {
    const session = new StdioSession(id, (recipient, backpressure) =>
      this.#talk.lags(recipient, backpressure),
    );
    this.#sessions.set(session, new Set());
    return session;
  }

  /** @returns what nobody is subscribed to any more */
  leave(session: StdioSession): string[] {
    const uris = [...(this.#sessions.get(session) ?? [])];
    this.#sessions.delete(session);
    session.end();
    return uris.filter((uri) => !this.#isWatched(uri));
  }

  onRequest(frame: RequestFrame): void {
    // The revision without sessions has no requests of the server, and no answers to them.
    if (this.inUse) this.#talk.refuse(frame);
    else
      this.#talk.reportDeviation(
        `asks for ${frame.method.slice(0, 100)}, though its revision has no such requests`,
      );
  }

  onNotification(frame: NotificationFrame): void {
    const subscription = subscriptionOf(frame);
    if (frame.method === PROGRESS) this.#onProgress(frame);
    else if (subscription !== undefined) {
      const call = this.#talk.calls.get(keyOf(subscription));
      if (call !== undefined) this.#talk.hand(call, withSubscription(frame, call.id));
    } else if (frame.method === CANCELLED) this.#onCancelled(frame);
    else if (frame.method === LOG) this.#onLog(frame);
    else if (frame.method === UPDATED || LIST_CHANGED.test(frame.method)) this.#tellAll(frame);
  }

  end(): void {
    for (const session of [...this.#sessions.keys()]) this.leave(session);
  }

  /**
   * Notes what a session subscribes to.
   * @returns false where the server is not to hear of it, since another session still has the subscription
   */
  note(session: StdioSession, frame: RequestFrame): boolean {
    const uris = this.#sessions.get(session);
    const text = paramOf(frame, 'uri');
    if (uris === undefined || text === undefined) return true;
    const uri = String(JSON.parse(text));
    if (frame.method === 'resources/subscribe') uris.add(uri);
    if (frame.method !== 'resources/unsubscribe') return true;
    uris.delete(uri);
    return !this.#isWatched(uri);
  }

  #isWatched(uri: string): boolean {
    for (const uris of this.#sessions.values()) if (uris.has(uri)) return true;
    return false;
  }

  #onProgress(frame: NotificationFrame): void {
    const token = paramOf(frame, 'progressToken');
    const call = token === undefined ? undefined : this.#talk.calls.get(keyOf(token));
    const own = call?.facts.progressToken;
    if (call !== undefined && own !== undefined)
      this.#talk.hand(call, withParam(frame, 'progressToken', own));
  }

  /** Nothing tells whose it is: it is handed on where it can only be one caller's. */
  #onLog(frame: NotificationFrame): void {
    const { onlyCall } = this.#talk;
    // The handshake is the gateway's own, and nobody's call.
    const own = onlyCall?.isHandshake === true ? undefined : onlyCall;
    const wanting = this.inUse
      ? [this.#sessions.size === 1 ? own : undefined]
      : [...this.#talk.calls.values()].filter(({ facts }) => facts.wantsLog);
    const [call] = wanting;
    if (call !== undefined && wanting.length === 1) this.#talk.hand(call, frame.bytes);
  }

  /** The server ends a subscription (basic/patterns/cancellation). */
  #onCancelled(frame: NotificationFrame): void {
    const id = paramOf(frame, 'requestId');
    const call: Call | undefined = id === undefined ? undefined : this.#talk.calls.get(keyOf(id));
    if (call?.method === LISTEN) this.#talk.finish(call);
  }

  #tellAll({ method, bytes, params }: NotificationFrame): void {
    const uri = method === UPDATED && params !== undefined ? paramOf({ bytes, params }, 'uri') : undefined;
    const updated = uri === undefined ? undefined : String(JSON.parse(uri));
    for (const [session, uris] of this.#sessions) {
      const wanted = updated === undefined || [...uris].some((watched) => covers(watched, updated));
      if (wanted && !session.lags) session.tell(bytes, false);
    }
  }
}
