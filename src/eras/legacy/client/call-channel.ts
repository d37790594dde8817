import type { ClientResponse } from '../../../downstream/response.js';
import type { Channel, ClientAnswer, ServerMessage, ServerRequest } from '../../../exchange/channel.js';
import { Exchange, type ExchangeRequest } from '../../../exchange/exchange.js';
import type { ForwardedHeaders } from '../../../exchange/forwarded-headers.js';
import { notificationRope, type RequestId, Rope } from '../../../jsonrpc/index.js';
import type { UrlElicitation } from '../wire/server-requests.js';
import { namedTask } from '../wire/tasks.js';
import type { LegacyClientSession } from './session.js';

/** The response stream of a call, for the server's messages during the call. */
export class CallChannel implements Channel {
  readonly #session: LegacyClientSession;
  readonly #response: ClientResponse;
  readonly #exchange: Exchange;
  /** Ids of the server requests that are not answered yet. */
  #open: Set<RequestId> | undefined;
  #elicitations: UrlElicitation[] | undefined;
  #cancelsOnAbort = false;

  constructor(
    session: LegacyClientSession,
    response: ClientResponse,
    request: ExchangeRequest,
    forwarded: ForwardedHeaders,
  ) {
    this.#session = session;
    this.#response = response;
    this.#exchange = new Exchange(request, session.caller(forwarded), this);
  }

  get exchange(): Exchange {
    return this.#exchange;
  }

  notify(message: ServerMessage): boolean {
    return this.#session.notify(message, this.#response);
  }

  onDrain(resume: () => void): void {
    this.#response.onDrain(resume);
  }

  get reachable(): boolean {
    return this.#response.reachable;
  }

  detach(): void {
    this.#response.detach();
  }

  async ask(given: ServerRequest): Promise<ClientAnswer> {
    const exchange = this.#exchange;
    const request = exchange.notes.backendEra === 'legacy' ? given : this.#encode(given);
    this.#open ??= new Set();
    this.#open.add(request.id);
    if (this.#open.size === 1) exchange.park();
    try {
      return await this.#session.ask(request, this.#response);
    } finally {
      this.#open.delete(request.id);
      if (this.#open.size === 0) exchange.unpark(exchange.progressToken);
    }
  }

  /** Ends the call: cancels open server requests, and completes URL elicitations. */
  finish(): void {
    for (const id of this.#open ?? []) this.#session.withdraw(id, 'the call has ended');
    for (const { elicitationId } of this.#elicitations ?? []) {
      const params = new Rope().push(`{"elicitationId":${JSON.stringify(elicitationId)}}`);
      this.#response.writeEvent(notificationRope('notifications/elicitation/complete', params));
    }
  }

  /** The task that the call waits for, which server requests during the call belong to. */
  get #task(): string | undefined {
    const { method, params } = this.#exchange.request;
    return method === 'tasks/result' ? namedTask(params) : undefined;
  }

  /** @throws ServerRequestRefused */
  #encode(neutral: ServerRequest): ServerRequest {
    const { request, elicitation } = this.#session.encode(neutral, this.#task);
    if (!this.#cancelsOnAbort) {
      // In the next round the server could ask nobody, and its result would have no reader.
      this.#cancelsOnAbort = true;
      this.#response.onAbort(() => this.#exchange.cancel('the client closed the response stream'));
    }
    if (elicitation !== undefined) {
      this.#elicitations ??= [];
      this.#elicitations.push(elicitation);
    }
    return request;
  }
}
