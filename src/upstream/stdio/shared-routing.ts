import { changeOf, covers, isChange } from '../../exchange/changes/change.js';
import type { NotificationFrame, RequestFrame } from '../../jsonrpc/index.js';
import type { InFlightRequest } from './in-flight-request.js';
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
import type { Routing, RoutingContext } from './routing.js';
import { StdioSession } from './session.js';

/**
 * Routes the messages of a process that independent callers share: those of the era without sessions, or the sessions
 * of all clients with `process: shared`. No caller gets messages caused by another one.
 */
export class SharedRouting implements Routing {
  readonly renumbers = true;
  readonly #context: RoutingContext;
  /** The resources that each session is subscribed to. */
  readonly #sessions = new Map<StdioSession, Set<string>>();
  /** The server tags its changes with the id of a subscription, as the revision requires. */
  #tagsChanges = false;

  constructor(context: RoutingContext) {
    this.#context = context;
  }

  get inUse(): boolean {
    return this.#sessions.size > 0;
  }

  join(id: string): StdioSession {
    const session = new StdioSession(id, (consumer, backpressure) =>
      this.#context.onBackpressure(consumer, backpressure),
    );
    this.#sessions.set(session, new Set());
    return session;
  }

  /** @returns the resources that no session is subscribed to any more */
  leave(session: StdioSession): string[] {
    const uris = [...(this.#sessions.get(session) ?? [])];
    this.#sessions.delete(session);
    session.end();
    return uris.filter((uri) => !this.#isSubscribed(uri));
  }

  onRequest(frame: RequestFrame): void {
    // Revision 2026-07-28 has no server requests, so there is no way to answer one.
    if (this.inUse) this.#context.refuse(frame);
    else {
      const method = frame.method.slice(0, 100);
      this.#context.reportDeviation(
        `sends the request ${method}, though its revision has no server requests`,
      );
    }
  }

  onNotification(frame: NotificationFrame): void {
    const subscription = subscriptionOf(frame);
    if (frame.method === PROGRESS) this.#onProgress(frame);
    else if (subscription !== undefined) {
      this.#tagsChanges ||= isChange(frame.method);
      const request = this.#context.requests.get(keyOf(subscription));
      if (request !== undefined) this.#context.deliver(request, withSubscription(frame, request.id));
    } else if (frame.method === CANCELLED) this.#onCancelled(frame);
    else if (frame.method === LOG) this.#onLog(frame);
    else if (isChange(frame.method)) this.#onChange(frame);
  }

  end(): void {
    for (const session of [...this.#sessions.keys()]) this.leave(session);
  }

  /**
   * Tracks the subscriptions of a session.
   * @returns false for an unsubscribe that the server must not get, since another session still has the subscription
   */
  trackSubscription(session: StdioSession, frame: RequestFrame): boolean {
    const uris = this.#sessions.get(session);
    const text = paramOf(frame, 'uri');
    if (uris === undefined || text === undefined) return true;
    const uri = String(JSON.parse(text));
    if (frame.method === 'resources/subscribe') uris.add(uri);
    if (frame.method !== 'resources/unsubscribe') return true;
    uris.delete(uri);
    return !this.#isSubscribed(uri);
  }

  #isSubscribed(uri: string): boolean {
    for (const uris of this.#sessions.values()) if (uris.has(uri)) return true;
    return false;
  }

  #onProgress(frame: NotificationFrame): void {
    const token = paramOf(frame, 'progressToken');
    const request = token === undefined ? undefined : this.#context.requests.get(keyOf(token));
    const callersToken = request?.traits.progressToken;
    if (request !== undefined && callersToken !== undefined)
      this.#context.deliver(request, withParam(frame, 'progressToken', callersToken));
  }

  /** A log message names no request: it is passed on only where it can belong to a single caller. */
  #onLog(frame: NotificationFrame): void {
    const { onlyRequest } = this.#context;
    // The handshake is the gateway's own.
    const ofCaller = onlyRequest?.isHandshake === true ? undefined : onlyRequest;
    const candidates = this.inUse
      ? [this.#sessions.size === 1 ? ofCaller : undefined]
      : [...this.#context.requests.values()].filter(({ traits }) => traits.wantsLog);
    const [request] = candidates;
    if (request !== undefined && candidates.length === 1) this.#context.deliver(request, frame.bytes);
  }

  /** The server ends a subscription (basic/patterns/cancellation). */
  #onCancelled(frame: NotificationFrame): void {
    const id = paramOf(frame, 'requestId');
    const request: InFlightRequest | undefined =
      id === undefined ? undefined : this.#context.requests.get(keyOf(id));
    if (request?.method === LISTEN) this.#context.finish(request);
  }

  /**
   * Passes on a change to each session: of a resource, to those that are subscribed to it. One that lacks the id of a
   * subscription goes to every subscription that asked for it: mcp-go 1.2.1 sends changes so.
   */
  #onChange(frame: NotificationFrame): void {
    const { method, bytes } = frame;
    const { uri: updated } = changeOf(frame);
    if (!this.#tagsChanges) {
      for (const request of this.#context.requests.values()) {
        if (request.traits.listensTo?.(method, updated) === true)
          this.#context.deliver(request, withSubscription(frame, request.id));
      }
    }
    for (const [session, uris] of this.#sessions) {
      const wanted = updated === undefined || [...uris].some((subscribed) => covers(subscribed, updated));
      if (wanted && !session.backlogged) session.deliverNotification(bytes);
    }
  }
}
