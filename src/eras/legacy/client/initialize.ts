import type { HttpCall } from '../../../downstream/http-call.js';
import { readCapabilities } from '../../../exchange/client-capabilities.js';
import { ownerOf } from '../../../exchange/credentials.js';
import { declarationProblem } from '../../../exchange/declaration-limits.js';
import { CODE } from '../../../exchange/errors.js';
import { type Outcome, ownResult } from '../../../exchange/outcome.js';
import type { RouteService } from '../../../exchange/route-service.js';
import {
  errorRope,
  getMember,
  type RequestFrame,
  Rope,
  resultRope,
  scanJson,
  stringMember,
  textOf,
} from '../../../jsonrpc/index.js';
import { neutralClientCapabilities } from '../wire/client-capabilities.js';
import { initializeResult } from '../wire/initialize-result.js';
import { negotiateRevision } from '../wire/revisions.js';
import { CallChannel } from './call-channel.js';
import { exchangeRequest, paramsProblem } from './exchange-request.js';
import { writeError } from './outcome.js';
import type { LegacyClientSession } from './session.js';
import type { ClientSessions } from './sessions.js';

/** Responds to `initialize` with a new session. The backend is asked first, since the result describes it. */
export async function initialize(
  sessions: ClientSessions,
  route: RouteService,
  call: HttpCall,
  frame: RequestFrame,
): Promise<void> {
  const { response } = call;
  const session = createSession(sessions, route, call, frame);
  if (session === undefined) return;
  const request = exchangeRequest(frame, session.features);
  const { exchange } = new CallChannel(session, response, request, call.forwarded);
  exchange.notes.requestId = call.requestId;
  let outcome: Outcome;
  try {
    const description = await route.describe(exchange.caller);
    const result = initializeResult(description, session.claims.revision);
    outcome = ownResult(result, scanJson(result, 2));
    const token = sessions.add(session);
    response.end(200, resultRope(frame.id, new Rope().push(result)), { 'mcp-session-id': token });
    if (response.aborted) await sessions.end(session);
  } catch (error) {
    outcome = route.failureOf(error);
    void session.binding?.end();
    writeError(outcome, exchange, (...args) => response.end(...args));
  }
  route.record(exchange, response.status, outcome);
}

/** @returns undefined if the request was refused with a response */
function createSession(
  sessions: ClientSessions,
  route: RouteService,
  { response, principal, forwarded }: HttpCall,
  frame: RequestFrame,
): LegacyClientSession | undefined {
  const { id, bytes, params } = frame;
  if (params === undefined) {
    response.end(200, errorRope(id, CODE.invalidParams, 'Invalid params: initialize needs params'));
    return undefined;
  }
  const declared = getMember(bytes, params, 'capabilities');
  const info = getMember(bytes, params, 'clientInfo');
  const problem =
    declarationProblem(bytes, declared, 'capabilities') ??
    declarationProblem(bytes, info, 'clientInfo') ??
    paramsProblem(frame);
  if (problem !== undefined) {
    response.end(400, errorRope(id, CODE.invalidParams, `Invalid params: ${problem}`));
    return undefined;
  }
  const revision = negotiateRevision(stringMember(bytes, params, 'protocolVersion'));
  const capabilities = readCapabilities(declared?.kind === 'object' ? textOf(bytes, declared) : '{}');
  return sessions.create({
    route: route.path,
    revision,
    principal,
    owner: ownerOf(forwarded.authorization),
    clientInfo: info?.kind === 'object' ? textOf(bytes, info) : undefined,
    capabilities,
    neutralCapabilities: neutralClientCapabilities(capabilities, revision),
    backendSession: undefined,
  });
}
