import type { HttpCall } from '../../../downstream/http-call.js';
import { ANONYMOUS, ownerOf } from '../../../exchange/credentials.js';
import { CODE, ExchangeError } from '../../../exchange/errors.js';
import type { RouteService } from '../../../exchange/route-service.js';
import { errorRope, type RequestId } from '../../../jsonrpc/index.js';
import { isLegacyRevision, LEGACY_REVISIONS } from '../wire/revisions.js';
import type { LegacyClientSession } from './session.js';
import type { ClientSessions } from './sessions.js';

type Found = LegacyClientSession | undefined;

/** Finds the session that a request is on, and answers the request itself when there is none. */
export class SessionFinder {
  readonly #sessions: ClientSessions;

  constructor(sessions: ClientSessions) {
    this.#sessions = sessions;
  }

  /**
   * The session of a request (basic/transports, "Session Management"), at once in all but rare cases; undefined when
   * the request has been answered.
   * @param id of the request, for the answer
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
      return this.#sessions.get(sessionId, call.principal) ?? this.#findForeign(route, call, id, sessionId);
    } catch (error) {
      return refuse(call, id, error);
    }
  }

  /**
   * The session of somebody else, as far as the credential tells. Credentials are renewed within the life of a session;
   * one that names the same owner is for the backend to judge, since nobody else can verify it, and so is the next one
   * after the backend has asked for a credential, or for a better one. Whoever shows none is told to. All others have no
   * such session.
   */
  #findForeign(
    route: RouteService,
    call: HttpCall,
    id: RequestId | undefined,
    token: string,
  ): Found | Promise<Found> {
    const foreign = this.#sessions.peek(token);
    if (foreign !== undefined) {
      if (call.principal === ANONYMOUS) {
        const message = 'Unauthorized: the session was opened with an Authorization header';
        call.response.end(401, errorRope(id, CODE.server, message), { 'www-authenticate': 'Bearer' });
        return undefined;
      }
      const owner = ownerOf(call.forwarded.authorization);
      if (foreign.isOfOwner(owner) || foreign.awaits(owner))
        return this.#findRenewed(route, call, id, foreign, owner);
    }
    call.response.end(404, errorRope(id, CODE.notFoundOrTimeout, 'Session not found'));
    return undefined;
  }

  async #findRenewed(
    route: RouteService,
    call: HttpCall,
    id: RequestId | undefined,
    foreign: LegacyClientSession,
    owner: string | undefined,
  ): Promise<Found> {
    try {
      const caller = foreign.caller(call.forwarded);
      // What is held upstream for the session goes on with a renewed credential; with another it is not meant.
      await route.authenticate(foreign.isOfOwner(owner) ? caller : { ...caller, principal: call.principal });
      if (foreign.isOfOwner(owner)) return this.#sessions.adopt(foreign, call.principal);
      // Another request of the client's may have got here first, or somebody else with another credential.
      if (!foreign.awaits(owner)) return this.find(route, call, id);
      return this.#sessions.handOver(foreign, call.principal, owner);
    } catch (error) {
      return refuse(call, id, error);
    }
  }
}

/** Answers with the error of the gateway's that says why a request goes no further. */
export function refuse(call: HttpCall, id: RequestId | undefined, error: unknown): undefined {
  if (!(error instanceof ExchangeError)) throw error;
  const { status, code, message, headers } = error.outcome;
  call.response.end(status ?? 502, errorRope(id, code, message), headers);
  return undefined;
}

function unsupportedVersion(version: string): string {
  return `Bad Request: Unsupported protocol version: ${version} (supported versions: ${LEGACY_REVISIONS.join(', ')})`;
}
