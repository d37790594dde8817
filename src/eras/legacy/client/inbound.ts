import type { HttpCall, StreamCall } from '../../../downstream/http-call.js';
import { CODE } from '../../../exchange/errors.js';
import type { RouteService } from '../../../exchange/route-service.js';
import { type Batch, errorRope, type Frame } from '../../../jsonrpc/index.js';
import type { Inbound } from '../../era.js';
import { carryOutBatch } from './batch.js';
import { initialize } from './initialize.js';
import { acceptsCredentials, type OneWay, takeOneWay } from './one-way.js';
import { carryOut } from './requests.js';
import type { LegacyClientSession } from './session.js';
import { refuse, SessionLookup } from './session-lookup.js';
import type { ClientSessions } from './sessions.js';

/** The client side of the legacy era: the handshake, and the messages on the sessions that it opens. */
export class LegacyInbound implements Inbound {
  readonly #sessions: ClientSessions;
  readonly #lookup: SessionLookup;

  constructor(sessions: ClientSessions) {
    this.#sessions = sessions;
    this.#lookup = new SessionLookup(sessions);
  }

  /** Claims all that no other era claims: most clients do not name an era. */
  claimsPost(): boolean {
    return true;
  }

  claimsOther(): boolean {
    return true;
  }

  async post(route: RouteService, call: HttpCall, body: Frame | Batch): Promise<void> {
    if (body.type === 'request' && body.method === 'initialize') {
      await initialize(this.#sessions, route, call, body);
      return;
    }
    const { response } = call;
    if (
      call.headers.sessionId === undefined &&
      (body.type === 'batch' || body.type === 'result' || body.type === 'error')
    ) {
      const message = `Invalid Request: a ${body.type} needs a session`;
      response.end(400, errorRope(undefined, CODE.invalidRequest, message));
      return;
    }
    // A refusal has the id of a request only: that of an answer is the server's.
    const found = this.#lookup.find(route, call, body.type === 'request' ? body.id : undefined);
    const session = found instanceof Promise ? await found : found;
    if (session === undefined) return;
    const { streams } = session;
    if (streams.resumable)
      response.makeResumable(streams, body.type === 'request' ? streams.holdMs : undefined);
    if (body.type === 'batch') {
      response.allowStream();
      await carryOutBatch(route, call, session, body);
    } else if (body.type === 'request') {
      response.allowStream();
      await carryOut(route, call, session, body, (...args) => response.end(...args));
    } else await this.#oneWay(route, call, session, body);
  }

  /** Opens or resumes a stream of a session: the standalone GET stream, or a response stream. */
  async get(route: RouteService, call: StreamCall): Promise<void> {
    if (refusedWithoutSession(call)) return;
    const session = await this.#lookup.find(route, call, undefined);
    if (session === undefined) return;
    const { lastEventId, response } = call;
    if (!response.acceptsEvents) {
      const message = 'Not Acceptable: the client must accept text/event-stream';
      response.end(406, errorRope(undefined, CODE.server, message));
      return;
    }
    const { streams } = session;
    if (lastEventId === undefined || !streams.resumable) streams.listen(response);
    else if (!streams.resume(lastEventId, response)) {
      const message = 'Bad Request: what came after this Last-Event-ID is not known, or kept no longer';
      response.end(400, errorRope(undefined, CODE.server, message));
      return;
    }
    // Opens the backend session, whose messages the client waits for.
    if (session.binding === undefined) void openBackendSession(route, call, session);
  }

  async delete(route: RouteService, call: HttpCall): Promise<void> {
    if (refusedWithoutSession(call)) return;
    const session = await this.#lookup.find(route, call, undefined);
    if (session === undefined) return;
    if (isUnrestored(session)) await openBackendSession(route, call, session);
    const ended = this.#sessions.end(session);
    call.response.endEmpty(200);
    await ended;
  }

  async drain(): Promise<void> {}

  async close(): Promise<void> {
    await this.#sessions.close();
  }

  async #oneWay(
    route: RouteService,
    call: HttpCall,
    session: LegacyClientSession,
    frame: OneWay,
  ): Promise<void> {
    if (isUnrestored(session)) await openBackendSession(route, call, session);
    if (!(await acceptsCredentials(route, call, session, frame))) return;
    try {
      takeOneWay(session, call, frame);
    } catch (error) {
      refuse(call, undefined, error);
      return;
    }
    call.response.endEmpty(202);
  }
}

/** Whether the client's session is bound to a backend session that this process does not use yet. */
function isUnrestored(session: LegacyClientSession): boolean {
  return session.binding === undefined && session.backendSession !== undefined;
}

/** Opens or restores the backend session of a client's session; never throws. */
async function openBackendSession(
  route: RouteService,
  call: HttpCall,
  session: LegacyClientSession,
): Promise<void> {
  await route.describe(session.caller(call.forwarded)).catch(() => {});
}

/** Refuses a GET or DELETE without a session. Clients send a GET before the handshake to find out whether there is a stream. */
function refusedWithoutSession(call: HttpCall): boolean {
  if (call.headers.sessionId !== undefined) return false;
  call.response.end(405, errorRope(undefined, CODE.server, 'Method Not Allowed: needs an Mcp-Session-Id'), {
    allow: 'POST',
  });
  return true;
}
