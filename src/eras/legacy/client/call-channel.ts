import { randomUUID } from 'node:crypto';
import type { ClientResponse } from '../../../downstream/response.js';
import type { Channel, ClientAnswer, ServerMessage, ServerRequest } from '../../../exchange/channel.js';
import { ServerRequestRefused } from '../../../exchange/errors.js';
import { Exchange, type ExchangeRequest } from '../../../exchange/exchange.js';
import type { ForwardedHeaders } from '../../../exchange/forwarded-headers.js';
import { notificationRope, type RequestId, Rope } from '../../../jsonrpc/index.js';
import { featuresFor } from '../wire/revisions.js';
import { encodeServerRequest, missingCapability, type UrlElicitation } from '../wire/server-requests.js';
import { namedTask } from '../wire/tasks.js';
import type { LegacyClientSession } from './session.js';

/** The way of a server's messages to a legacy client during one of its calls: the call's own stream. */
export class CallChannel implements Channel {
  readonly #session: LegacyClientSession;
  readonly #response: ClientResponse;
  readonly #exchange: Exchange;
  #open: Set<RequestId> | undefined;
  #elicitations: UrlElicitation[] | undefined;
  #watched = false;

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

  async ask(asked: ServerRequest): Promise<ClientAnswer> {
    const exchange = this.#exchange;
    const question = exchange.notes.backendEra === 'legacy' ? asked : this.#translate(asked);
    this.#open ??= new Set();
    this.#open.add(question.id);
    if (this.#open.size === 1) exchange.park();
    try {
      return await this.#session.ask(question, this.#response);
    } finally {
      this.#open.delete(question.id);
      if (this.#open.size === 0) exchange.unpark(exchange.progressToken);
    }
  }

  /** The call is over: what is still asked is taken back, and pages that were to be visited are done with. */
  finish(): void {
    for (const id of this.#open ?? []) this.#session.withdraw(id, 'the call has ended');
    for (const { elicitationId } of this.#elicitations ?? []) {
      const params = new Rope().push(`{"elicitationId":${JSON.stringify(elicitationId)}}`);
      this.#response.writeEvent(notificationRope('notifications/elicitation/complete', params));
    }
  }

  /** The task whose result the client waits for, to which what is asked meanwhile belongs. */
  get #task(): string | undefined {
    const { method, params } = this.#exchange.request;
    return method === 'tasks/result' ? namedTask(params) : undefined;
  }

  /** @throws ServerRequestRefused */
  #translate(asked: ServerRequest): ServerRequest {
    const lacking = missingCapability(asked, this.#session.facts.neutralCapabilities);
    if (lacking !== undefined) throw new ServerRequestRefused(`the client did not declare ${lacking}`);
    if (!this.#watched) {
      // The server's next round has nobody to ask any more, and its outcome nobody to read it.
      this.#watched = true;
      this.#response.onAbort(() => this.#exchange.cancel('the client closed the response stream'));
    }
    const { request, elicitation } = encodeServerRequest(asked, {
      features: featuresFor(this.#session.facts.revision),
      newElicitationId: randomUUID,
      task: this.#task,
    });
    if (elicitation !== undefined) {
      this.#elicitations ??= [];
      this.#elicitations.push(elicitation);
    }
    return request;
  }
}
