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
import { SessionLookup } from './session-lookup.js';
import type { ClientSessions } from './sessions.js';

export interface SseClientsOptions {
  /** Limit of the sessions in memory. */
  readonly maxSessions: number;
  /** How long a stream stays open without a handshake. */
  readonly handshakeMs?: number;
}

/** A client with an open stream. */
interface SseClient {
  readonly id: string;
  readonly principal: Principal;
  readonly stream: HttpResponse;
  /** Ends the stream if the client makes no handshake. */
  readonly handshakeTimer: NodeJS.Timeout;
  /** Id of the session; undefined until the handshake is done. */
  token: string | undefined;
  /** Resolves when the handshake in flight is over, with any result; undefined if there is none. */
  handshake: Promise<void> | undefined;
  /** The stream is the standalone GET stream of the session. */
  listening: boolean;
  /** Responses to the requests in flight. */
  readonly responses: Map<RequestId, HttpSseResponse>;
}

/** Limit of the streams without a handshake; the oldest is ended. */
const MAX_WITHOUT_HANDSHAKE = 1_000;
/** How long a stream stays open without a handshake. */
const HANDSHAKE_MS = 60_000;
/** Limit of the bytes that a client has not read, beyond which its messages are refused. */
const MAX_UNREAD_BYTES = 16 * 1024 * 1024;

/**
 * Clients on HTTP+SSE, the transport of 2024-11-05. Each message is handled as one of Streamable HTTP, with a response that is
 * sent on the client's stream. The session ends with the stream.
 */
export class SseClients implements SseInbound {
  readonly #inbound: LegacyInbound;
  readonly #sessions: ClientSessions;
  readonly #lookup: SessionLookup;
  readonly #clients = new Map<string, SseClient>();
  /** Clients without a session, the oldest first. */
  readonly #withoutSession = new Set<SseClient>();
  readonly #maxWithoutSession: number;
  readonly #handshakeMs: number;

  constructor(
    inbound: LegacyInbound,
    sessions: ClientSessions,
    { maxSessions, handshakeMs = HANDSHAKE_MS }: SseClientsOptions,
  ) {
    this.#inbound = inbound;
    this.#sessions = sessions;
    this.#maxWithoutSession = Math.min(maxSessions, MAX_WITHOUT_HANDSHAKE);
    this.#handshakeMs = handshakeMs;
    this.#lookup = new SessionLookup(sessions);
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
      handshakeTimer: setTimeout(() => response.endEmpty(200), this.#handshakeMs).unref(),
      token: undefined,
      handshake: undefined,
      listening: false,
      responses: new Map(),
    };
    const [oldest] = this.#withoutSession;
    if (oldest !== undefined && this.#withoutSession.size >= this.#maxWithoutSession)
      oldest.stream.endEmpty(200);
    this.#clients.set(client.id, client);
    this.#withoutSession.add(client);
    response.onEnd(() => this.#onEnd(client));
    const endpoint = new Rope().push(
      `${messagesPath}${messagesPath.includes('?') ? '&' : '?'}sessionId=${client.id}`,
    );
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

  /** Whether a request has the credential of the client that opened the stream, or a renewed one; responds if not. */
  async #mayUse(
    route: RouteService,
    call: HttpCall,
    client: SseClient,
    id: RequestId | undefined,
  ): Promise<boolean> {
    if (call.principal === client.principal) return true;
    if (client.token !== undefined) {
      return (await this.#lookup.find(route, withSession(call, client.token), id)) !== undefined;
    }
    call.response.end(404, errorRope(id, CODE.notFoundOrTimeout, 'Session not found'));
    return false;
  }

  /** Handles a message; its response is sent on the client's stream. */
  async #handle(route: RouteService, call: HttpCall, client: SseClient, body: Frame | Batch): Promise<void> {
    const initializes = body.type === 'request' && body.method === 'initialize';
    const opens = initializes && client.token === undefined && client.handshake === undefined;
    const response = new HttpSseResponse(call.response, client.stream, {
      awaited: body.type === 'request' || body.type === 'batch',
      onSession: opens ? (token) => this.#onSession(client, token) : undefined,
    });
    const bound = { ...call, response };
    try {
      if (opens) await this.#initialize(route, bound, client, body);
      else if (initializes) {
        const message = 'Invalid Request: the session is initialized already';
        response.end(200, errorRope(body.id, CODE.invalidRequest, message));
      } else {
        if (client.handshake !== undefined && !isAllowedWithoutSession(body)) await client.handshake;
        if (client.token === undefined) respondWithoutSession(response, body);
        else await this.#handleOnSession(route, bound, client, client.token, body);
      }
    } catch (error) {
      const id = body.type === 'request' ? body.id : undefined;
      response.end(500, errorRope(id, CODE.internal, 'Internal error of the gateway'));
      throw error;
    }
  }

  async #initialize(route: RouteService, call: HttpCall, client: SseClient, body: Frame): Promise<void> {
    const handshake = this.#inbound.post(route, withoutVersion(call), body);
    client.handshake = handshake
      .catch(() => {})
      .then(() => {
        client.handshake = undefined;
      });
    await handshake;
  }

  #onSession(client: SseClient, token: string): void {
    client.token = token;
    clearTimeout(client.handshakeTimer);
    this.#withoutSession.delete(client);
  }

  async #handleOnSession(
    route: RouteService,
    call: HttpCall & { readonly response: HttpSseResponse },
    client: SseClient,
    token: string,
    body: Frame | Batch,
  ): Promise<void> {
    const onSession = withSession(call, token);
    if (!client.listening) {
      client.listening = true;
      await this.#inbound.get(route, { ...onSession, response: client.stream });
    }
    if (body.type === 'notification') this.#silence(client, body);
    if (body.type !== 'request') {
      await this.#inbound.post(route, onSession, body);
      return;
    }
    // The session refuses an id that is in use, and the request that has it keeps its response.
    const isFirst = !client.responses.has(body.id);
    if (isFirst) client.responses.set(body.id, call.response);
    try {
      await this.#inbound.post(route, onSession, body);
    } finally {
      if (isFirst) client.responses.delete(body.id);
    }
  }

  /** Drops the response of a cancelled request (basic/utilities/cancellation): the stream goes on. */
  #silence({ responses }: SseClient, { method, bytes, params }: NotificationFrame): void {
    if (method !== 'notifications/cancelled' || params === undefined) return;
    const requestId = getMember(bytes, params, 'requestId');
    if (requestId !== undefined) responses.get(textOf(bytes, requestId) as RequestId)?.silence();
  }

  /** Ends the session of a stream that has ended. */
  #onEnd(client: SseClient): void {
    clearTimeout(client.handshakeTimer);
    this.#clients.delete(client.id);
    this.#withoutSession.delete(client);
    const session = client.token === undefined ? undefined : this.#sessions.peek(client.token);
    if (session !== undefined) void this.#sessions.end(session);
  }
}

/** Whether a message does not wait for the handshake in flight. */
function isAllowedWithoutSession(body: Frame | Batch): boolean {
  return body.type === 'request' && (body.method === 'ping' || body.method === 'server/discover');
}

/**
 * Responds to a message before the handshake. Clients of both eras send `server/discover` first, and make the handshake if
 * that is not found.
 */
function respondWithoutSession(response: HttpSseResponse, body: Frame | Batch): void {
  if (body.type !== 'request') response.endEmpty();
  else if (body.method === 'ping') response.end(200, resultRope(body.id, new Rope().push('{}')));
  else if (body.method === 'server/discover') {
    response.end(200, errorRope(body.id, CODE.methodNotFound, `Method not found: ${body.method}`));
  } else
    response.end(200, errorRope(body.id, CODE.invalidRequest, 'Invalid Request: initialize comes first'));
}

/** A message as one of Streamable HTTP, without the version that the client names: that is of another transport. */
function withSession(call: HttpCall, sessionId: string): HttpCall {
  return {
    ...call,
    headers: { ...call.headers, sessionId, protocolVersion: undefined },
    lastEventId: undefined,
  };
}

function withoutVersion(call: HttpCall): HttpCall {
  return { ...call, headers: { ...call.headers, sessionId: undefined, protocolVersion: undefined } };
}
