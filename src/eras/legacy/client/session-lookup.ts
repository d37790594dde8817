import type { HttpCall } from '../../../downstream/http-call.js';
import { ANONYMOUS, ownerOf } from '../../../exchange/credentials.js';
import { CODE, ExchangeError } from '../../../exchange/errors.js';
import type { RouteService } from '../../../exchange/route-service.js';
import { errorRope, type RequestId } from '../../../jsonrpc/index.js';
import { isLegacyRevision, LEGACY_REVISIONS } from '../wire/revisions.js';
import type { LegacyClientSession } from './session.js';
import type { ClientSessions } from './sessions.js';

type Found = LegacyClientSession | undefined;

/** Finds the session of a request, and responds to requests that have none. */
export class SessionLookup {
  readonly #sessions: ClientSessions;

  constructor(sessions: ClientSessions) {
    this.#sessions = sessions;
  }

  /**
   * The session of a request (basic/transports, "Session Management"): a promise only if the backend has to be asked, and
   * undefined if a response was sent.
   * @param id of the request, for the response
   */
  find(route: RouteService, call: HttpCall, id: RequestId | undefined): Found | Promise<Found> {
    const { sessionId, protocolVersion } = call.headers;
    if (protocolVersion !== undefined && !isLegacyRevision(protocolVersion)) {
      call.response.end(400, errorRope(id, CODE.server, unsupportedVersion(protocolVersion)));
      return undefined;
    }
    if (sessionId === undefined) {
      call.response.end(400, errorRope(id, CODE.server, 'Bad Request: Mcp-Session-Id header is required'));
      return undefined;
    }
    try {
      return this.#sessions.get(sessionId, call.principal) ?? this.#findOfOther(route, call, id, sessionId);
    } catch (error) {
      return refuse(call, id, error);
    }
  }

  /**
   * The session of another principal. A credential may be renewed within a session: if it names the same owner, or came after
   * a challenge, the backend decides, since nobody else can verify it. A request without a credential is challenged. For all
   * others there is no such session.
   */
  #findOfOther(
    route: RouteService,
    call: HttpCall,
    id: RequestId | undefined,
    token: string,
  ): Found | Promise<Found> {
    const session = this.#sessions.peek(token);
    if (session !== undefined) {
      if (call.principal === ANONYMOUS) {
        const message = 'Unauthorized: the session was opened with an Authorization header';
        call.response.end(401, errorRope(id, CODE.server, message), { 'www-authenticate': 'Bearer' });
        return undefined;
      }
      const owner = ownerOf(call.forwarded.authorization);
      if (session.owner.isNamed(owner) || session.owner.mayBeLogin(owner))
        return this.#findByCredential(route, call, id, session, owner);
    }
    call.response.end(404, errorRope(id, CODE.notFoundOrTimeout, 'Session not found'));
    return undefined;
  }

  async #findByCredential(
    route: RouteService,
    call: HttpCall,
    id: RequestId | undefined,
    session: LegacyClientSession,
    owner: string | undefined,
  ): Promise<Found> {
    try {
      const caller = session.caller(call.forwarded);
      const isRenewed = session.owner.isNamed(owner);
      // The backend's session is kept for a renewed credential, but not for that of another principal.
      await route.authenticate(isRenewed ? caller : { ...caller, principal: call.principal });
      if (session.owner.isNamed(owner)) return this.#sessions.share(session, call.principal);
      // Another request may have transferred the session meanwhile.
      if (!session.owner.mayBeLogin(owner)) return this.find(route, call, id);
      return this.#sessions.transfer(session, call.principal, owner);
    } catch (error) {
      return refuse(call, id, error);
    }
  }
}

/** Responds with an error of the gateway. @throws all other errors */
export function refuse(call: HttpCall, id: RequestId | undefined, error: unknown): undefined {
  if (!(error instanceof ExchangeError)) throw error;
  const { status, code, message, data, headers } = error.outcome;
  call.response.end(status ?? 502, errorRope(id, code, message, data), headers);
  return undefined;
}

function unsupportedVersion(version: string): string {
  return `Bad Request: Unsupported protocol version: ${version} (supported versions: ${LEGACY_REVISIONS.join(', ')})`;
}
