import { randomUUID } from 'node:crypto';
import type { HttpCall, StreamCall } from '../../../downstream/http-call.js';
import type { HttpResponse } from '../../../downstream/http-response.js';
import { HttpSseResponse } from '../../../downstream/http-sse-response.js';
import type { Principal } from '../../../exchange/credentials.js';
import { CODE } from '../../../exchange/errors.js';
import type { RouteService } from '../../../exchange/route-service.js';
import {
  type Batch,
  errorRope,
  type Frame,
  getMember,
  type NotificationFrame,
  type RequestId,
  Rope,
  resultRope,
  sseEvent,
  textOf,
} from '../../../jsonrpc/index.js';
import type { SseInbound } from '../../era.js';
import type { LegacyInbound } from './inbound.js';
import { SessionFinder } from './session-lookup.js';
import type { ClientSessions } from './sessions.js';

/** A client with an open stream. */
interface SseClient {
  readonly id: string;
  readonly principal: Principal;
  readonly stream: HttpResponse;
  /** Ends the stream if no handshake comes. */
  readonly breaker: NodeJS.Timeout;
  /** Of the session behind it; undefined until the handshake is done. */
  token: string | undefined;
  /** A handshake is under way; resolves when it is over, however it ended. */
  shaking: Promise<void> | undefined;
  listening: boolean;
  /** Requests in flight. */
  readonly responses: Map<RequestId, HttpSseResponse>;
}

/** Streams on which no handshake has been done yet; the oldest makes way. */
const MAX_STRANGERS = 1_000;
/** How long a handshake is waited for. */
const STRANGER_MS = 60_000;
/** What a client may leave unread before its messages are refused. */
const MAX_UNREAD_BYTES = 16 * 1024 * 1024;

/**
 * Clients on HTTP+SSE, the transport of 2024-11-05: each message is taken as one of Streamable HTTP would be, with an
 * answer that goes to the client's stream. The session is as long as the stream.
 */
export class SseClients implements SseInbound {
  readonly #inbound: LegacyInbound;
  readonly #sessions: ClientSessions;
  readonly #finder: SessionFinder;
  readonly #clients = new Map<string, SseClient>();
  /** Those without a session, the oldest first. */
  readonly #strangers = new Set<SseClient>();

  readonly #maxStrangers: number;

  /** @param max sessions that are kept in memory */
  constructor(inbound: LegacyInbound, sessions: ClientSessions, max: number) {
    this.#inbound = inbound;
    this.#sessions = sessions;
    this.#maxStrangers = Math.min(max, MAX_STRANGERS);
    this.#finder = new SessionFinder(sessions);
  }

  open({ response, principal }: StreamCall, messagesPath: string): void {
    if (!response.acceptsEvents) {
      const message = 'Not Acceptable: the client must accept text/event-stream';
      response.end(406, errorRope(undefined, CODE.server, message));
      return;
    }
    const client: SseClient = {
      id: randomUUID(),
      principal,
      stream: response,
      breaker: setTimeout(() => response.endEmpty(200), STRANGER_MS).unref(),
      token: undefined,
      shaking: undefined,
      listening: false,
      responses: new Map(),
    };
    const [oldest] = this.#strangers;
    if (oldest !== undefined && this.#strangers.size >= this.#maxStrangers) oldest.stream.endEmpty(200);
    this.#clients.set(client.id, client);
    this.#strangers.add(client);
    response.onEnd(() => this.#left(client));
    const endpoint = new Rope().push(`${messagesPath}?sessionId=${client.id}`);
    response.openStream(sseEvent(endpoint, { event: 'endpoint' }));
  }

  async post(
    route: RouteService,
    call: HttpCall,
    sessionId: string | undefined,
    body: Frame | Batch,
  ): Promise<void> {
    const client = sessionId === undefined ? undefined : this.#clients.get(sessionId);
    const id = body.type === 'request' ? body.id : undefined;
    const refuse = (status: number, message: string, code: number = CODE.server): void =>
      call.response.end(status, errorRope(id, code, message));
    if (sessionId === undefined) refuse(400, 'Bad Request: the sessionId of the event stream is missing');
    else if (client === undefined) refuse(404, 'Session not found', CODE.notFoundOrTimeout);
    else if (!(await this.#mayUse(route, call, client, id))) return;
    else if (client.stream.unreadBytes > MAX_UNREAD_BYTES) {
      refuse(503, 'too much on the event stream has not been read yet');
    } else await this.#handle(route, call, client, body);
  }

  async close(): Promise<void> {
    for (const { stream } of [...this.#clients.values()]) stream.endEmpty(200);
  }

  /** Whether a message may come on a stream: it is of whoever opened that, with the credential of then or a renewed one. */
  async #mayUse(
    route: RouteService,
    call: HttpCall,
    client: SseClient,
    id: RequestId | undefined,
  ): Promise<boolean> {
    if (call.principal === client.principal) return true;
    if (client.token !== undefined) {
      return (await this.#finder.find(route, onSession(call, client.token), id)) !== undefined;
    }
    call.response.end(404, errorRope(id, CODE.notFoundOrTimeout, 'Session not found'));
    return false;
  }

  /** Handles a message of the client, whose responses go to its stream. */
  async #handle(route: RouteService, call: HttpCall, client: SseClient, body: Frame | Batch): Promise<void> {
    const initializes = body.type === 'request' && body.method === 'initialize';
    const opens = initializes && client.token === undefined && client.shaking === undefined;
    const response = new HttpSseResponse(call.response, client.stream, {
      awaited: body.type === 'request' || body.type === 'batch',
      onSession: opens ? (token) => this.#opened(client, token) : undefined,
    });
    const bound = { ...call, response };
    try {
      if (opens) await this.#initialize(route, bound, client, body);
      else if (initializes) {
        const message = 'Invalid Request: the session is initialized already';
        response.end(200, errorRope(body.id, CODE.invalidRequest, message));
      } else {
        if (client.shaking !== undefined && !isForStrangers(body)) await client.shaking;
        if (client.token === undefined) answerStranger(response, body);
        else await this.#pass(route, bound, client, client.token, body);
      }
    } catch (error) {
      const id = body.type === 'request' ? body.id : undefined;
      response.end(500, errorRope(id, CODE.internal, 'Internal error of the gateway'));
      throw error;
    }
  }

  async #initialize(route: RouteService, call: HttpCall, client: SseClient, body: Frame): Promise<void> {
    const handshake = this.#inbound.post(route, withoutVersion(call), body);
    client.shaking = handshake
      .catch(() => {})
      .then(() => {
        client.shaking = undefined;
      });
    await handshake;
  }

  /** The handshake of a client has opened its session. */
  #opened(client: SseClient, token: string): void {
    client.token = token;
    clearTimeout(client.breaker);
    this.#strangers.delete(client);
  }

  /** A message on a session. */
  async #pass(
    route: RouteService,
    call: HttpCall & { readonly response: HttpSseResponse },
    client: SseClient,
    token: string,
    body: Frame | Batch,
  ): Promise<void> {
    const moved = onSession(call, token);
    if (!client.listening) {
      client.listening = true;
      await this.#inbound.get(route, { ...moved, response: client.stream });
    }
    if (body.type === 'notification') this.#silence(client, body);
    if (body.type !== 'request') {
      await this.#inbound.post(route, moved, body);
      return;
    }
    // An id that is in use is refused further on; the request that has it keeps its response.
    const isFirst = !client.responses.has(body.id);
    if (isFirst) client.responses.set(body.id, call.response);
    try {
      await this.#inbound.post(route, moved, body);
    } finally {
      if (isFirst) client.responses.delete(body.id);
    }
  }

  /** A cancelled request has no response; on a stream that goes on, none may come (basic/utilities/cancellation). */
  #silence({ responses }: SseClient, { method, bytes, params }: NotificationFrame): void {
    if (method !== 'notifications/cancelled' || params === undefined) return;
    const requestId = getMember(bytes, params, 'requestId');
    if (requestId !== undefined) responses.get(textOf(bytes, requestId) as RequestId)?.silence();
  }

  /** The stream is over, and with it the session. */
  #left(client: SseClient): void {
    clearTimeout(client.breaker);
    this.#clients.delete(client.id);
    this.#strangers.delete(client);
    const session = client.token === undefined ? undefined : this.#sessions.peek(client.token);
    if (session !== undefined) void this.#sessions.end(session);
  }
}

/** Whether a message need not wait for a handshake that is under way. */
function isForStrangers(body: Frame | Batch): boolean {
  return body.type === 'request' && (body.method === 'ping' || body.method === 'server/discover');
}

/**
 * Before the handshake there is nothing to be had but a sign of life. Clients of both eras ask for what the modern one
 * has first, and shake hands once they are told that it is not there.
 */
function answerStranger(response: HttpSseResponse, body: Frame | Batch): void {
  if (body.type !== 'request') response.endEmpty();
  else if (body.method === 'ping') response.end(200, resultRope(body.id, new Rope().push('{}')));
  else if (body.method === 'server/discover') {
    response.end(200, errorRope(body.id, CODE.methodNotFound, `Method not found: ${body.method}`));
  } else
    response.end(200, errorRope(body.id, CODE.invalidRequest, 'Invalid Request: initialize comes first'));
}

/** A message as one of Streamable HTTP. The version that the client names is not that of this transport. */
function onSession(call: HttpCall, sessionId: string): HttpCall {
  return {
    ...call,
    headers: { ...call.headers, sessionId, protocolVersion: undefined },
    lastEventId: undefined,
  };
}

function withoutVersion(call: HttpCall): HttpCall {
  return { ...call, headers: { ...call.headers, sessionId: undefined, protocolVersion: undefined } };
}
