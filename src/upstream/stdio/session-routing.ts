import type { NotificationFrame, RequestFrame } from '../../jsonrpc/index.js';
import type { InFlightRequest } from './in-flight-request.js';
import { keyOf, LOG, PROGRESS, paramOf } from './messages.js';
import type { Routing, RoutingContext } from './routing.js';
import { StdioSession } from './session.js';

/** Routes the messages of a process that serves one session: everything is for that session, and its ids are kept. */
export class SessionRouting implements Routing {
  readonly renumbers = false;
  readonly inUse = true;
  readonly session: StdioSession;
  readonly #context: RoutingContext;

  constructor(id: string, context: RoutingContext) {
    this.#context = context;
    this.session = new StdioSession(id, (consumer, backpressure) =>
      context.onBackpressure(consumer, backpressure),
    );
  }

  onRequest(frame: RequestFrame): void {
    const request = this.session.hasStream ? undefined : this.#request;
    if (request !== undefined) request.deliver(frame.bytes);
    else if (!this.session.deliverRequest(frame.bytes)) this.#context.refuse(frame);
  }

  onNotification(frame: NotificationFrame): void {
    const { session } = this;
    if (frame.method === PROGRESS) {
      const request = this.#requestWithToken(paramOf(frame, 'progressToken'));
      if (request !== undefined) this.#context.deliver(request, frame.bytes);
      return;
    }
    // Over HTTP, log messages come on the response stream of their request; other notifications mostly do not.
    const request = frame.method === LOG || !session.hasStream ? this.#request : undefined;
    if (request !== undefined) this.#context.deliver(request, frame.bytes);
    else if (!session.backlogged) session.deliverNotification(frame.bytes);
  }

  end(): void {
    this.session.end();
  }

  /** The only request in flight. Not the handshake: its caller does not read other messages. */
  get #request(): InFlightRequest | undefined {
    const { onlyRequest } = this.#context;
    return onlyRequest?.isHandshake === true ? undefined : onlyRequest;
  }

  #requestWithToken(token: string | undefined): InFlightRequest | undefined {
    if (token === undefined) return undefined;
    for (const request of this.#context.requests.values()) {
      const { progressToken } = request.traits;
      if (progressToken !== undefined && keyOf(progressToken) === keyOf(token)) return request;
    }
    return undefined;
  }
}
