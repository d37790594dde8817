import type { ForwardedHeaders } from '../../../exchange/forwarded-headers.js';
import { isRepeatable } from '../../../exchange/repeatable-methods.js';
import type { Revision } from '../../../exchange/revision.js';
import { type ErrorFrame, requestRope, textOf } from '../../../jsonrpc/index.js';
import { backendFailure } from '../../../upstream/backend-errors.js';
import { noResponseError } from '../../../upstream/no-response.js';
import type { ResponseHeaders } from '../../../upstream/response-headers.js';
import { RpcCall, type RpcReply, SILENT } from '../../../upstream/rpc-call.js';
import { downgradeClientCapabilities } from '../wire/client-capabilities.js';
import { readInitializeInfo } from '../wire/initialize-info.js';
import { initializeParams } from '../wire/initialize-request.js';
import { LEGACY_REVISIONS } from '../wire/revisions.js';
import { INITIALIZE_ID } from './calls-in-flight.js';
import { LEGACY_BACKEND_ERRORS } from './errors.js';
import type { LegacyBackend } from './legacy-backend.js';
import { initializeHeaders } from './request-headers.js';
import { BackendSession } from './session.js';

/** What the gateway declares in a handshake on behalf of a client. */
export interface HandshakeParams {
  /** Newest revision to offer. */
  readonly revision: Revision;
  /** JSON texts. */
  readonly capabilities: string;
  readonly clientInfo: string;
  readonly forwarded: ForwardedHeaders;
}

type HttpReply = Exclude<RpcReply, { readonly kind: 'failed' }>;

/** The backend answered the handshake with something else than a result, so it may not speak the legacy era. */
export class HandshakeRefused extends Error {
  readonly reply: HttpReply;
  constructor(message: string, reply: HttpReply) {
    super(message);
    this.name = 'HandshakeRefused';
    this.reply = reply;
  }
}

/**
 * Opens a session: `initialize`, then `notifications/initialized`, whose 202 is awaited since strict servers refuse
 * requests that overtake it (basic/lifecycle). `handshakeMs` of the backend is the limit for all of it.
 * @throws HandshakeRefused if the backend answers with something else than a result
 * @throws ExchangeError if it cannot be reached
 */
export async function openSession(backend: LegacyBackend, params: HandshakeParams): Promise<BackendSession> {
  let revision = olderOf(params.revision, backend.newestRevision);
  let refused = false;
  const deadline = performance.now() + backend.handshakeMs;
  for (;;) {
    const opening = await initialize(backend, params, revision, deadline);
    const session = sessionIn(backend, opening);
    const reply = session === undefined ? opening : await announce(session, params, deadline);
    if (session !== undefined && reply.kind !== 'failed' && reply.status < 400) {
      if (refused) backend.noteNewest(revision);
      return session;
    }
    void session?.end(params.forwarded);
    // Some servers check the version in the header only, which the second message is the first to have.
    const lower = lowerRevision(olderOf(revision, session?.info.revision ?? revision), reply);
    if (lower === undefined)
      throw session === undefined ? refusal(backend, reply) : brokenOff(backend, reply);
    revision = lower;
    refused = true;
  }
}

function initialize(
  backend: LegacyBackend,
  params: HandshakeParams,
  revision: Revision,
  deadline: number,
): Promise<RpcReply> {
  const capabilities =
    revision < params.revision
      ? downgradeClientCapabilities(params.capabilities, revision)
      : params.capabilities;
  const body = initializeParams(revision, capabilities, params.clientInfo);
  const rpc = new RpcCall(String(INITIALIZE_ID), backend.ticker, SILENT);
  const timer = setTimeout(
    () => rpc.abort(`no answer to initialize within ${backend.handshakeMs} ms`),
    deadline - performance.now(),
  );
  rpc.post({
    transport: backend.transport,
    headers: initializeHeaders(params.forwarded),
    body: requestRope(INITIALIZE_ID, 'initialize', body),
    repeatable: isRepeatable('initialize'),
  });
  return rpc.reply.finally(() => clearTimeout(timer));
}

/** The session that the response to `initialize` opens; undefined if it is no result. */
function sessionIn(backend: LegacyBackend, reply: RpcReply): BackendSession | undefined {
  if (reply.kind !== 'response' || reply.frame.type !== 'result') return undefined;
  const { frame, headers } = reply;
  const info = backend.shareInfo(readInitializeInfo(frame.bytes, frame.result));
  const session = new BackendSession(backend, info, sessionIdIn(headers));
  session.keepCookies(headers);
  return session;
}

function announce(
  session: BackendSession,
  { forwarded }: HandshakeParams,
  deadline: number,
): Promise<RpcReply> {
  const limitMs = deadline - performance.now();
  return session.notify('notifications/initialized', undefined, forwarded, { limitMs });
}

function brokenOff(backend: LegacyBackend, reply: RpcReply): Error {
  if (reply.kind !== 'failed') return refusal(backend, reply);
  const { failure, message } = reply.error;
  const { ERAGATE_HANDSHAKE_TIMEOUT, ERAGATE_HANDSHAKE_BROKEN } = LEGACY_BACKEND_ERRORS;
  const declared = failure === 'aborted' ? ERAGATE_HANDSHAKE_TIMEOUT : ERAGATE_HANDSHAKE_BROKEN;
  return backendFailure(backend, declared, `broke off the handshake: ${message}`);
}

/** The session id; some proxies repeat the header. */
function sessionIdIn(headers: ResponseHeaders): string | undefined {
  const [id] = [headers['mcp-session-id']].flat();
  return id === '' ? undefined : id;
}

/**
 * The next revision to offer to a server that refuses an unknown one instead of negotiating. Such servers list their
 * versions in the message or in `data.supported` (basic/lifecycle, "Error Handling"); those that list none are offered one
 * revision after the other.
 */
function lowerRevision(refused: Revision, reply: RpcReply): Revision | undefined {
  if (reply.kind === 'failed' || reply.status >= 500) return undefined;
  const text = textOfRefusal(reply);
  if (!/version/i.test(text)) return undefined;
  const older = LEGACY_REVISIONS.filter((revision) => revision < refused);
  const named = text.replaceAll(refused, '');
  return older.find((revision) => named.includes(revision)) ?? (/20\d\d-/.test(named) ? undefined : older[0]);
}

/** Code, message and data of the error, or the text of the body. */
function textOfRefusal(reply: HttpReply): string {
  if (reply.kind === 'no-response') return reply.text;
  const { code, message, data, bytes } = reply.frame as ErrorFrame;
  return `${code} ${message}${data === undefined ? '' : ` ${textOf(bytes, data)}`}`;
}

/** Messages of servers that keep one session at a time, and have one. */
const ONE_SESSION =
  /already (been )?(initiali[sz]ed|connected|running|in use)|(only|just) (one|a single|1) (session|client|connection)|session already exists/i;

function refusal(backend: LegacyBackend, reply: RpcReply): Error {
  if (reply.kind === 'failed') {
    const { failure, message } = reply.error;
    return failure === 'aborted'
      ? backendFailure(backend, LEGACY_BACKEND_ERRORS.ERAGATE_HANDSHAKE_TIMEOUT, `gave ${message}`)
      : noResponseError(backend, reply);
  }
  const text = textOfRefusal(reply).trim().slice(0, 200);
  const status = `HTTP ${reply.status}`;
  const answer = text === '' ? status : reply.status < 400 ? text : `${status}: ${text}`;
  if (ONE_SESSION.test(answer)) {
    return backendFailure(
      backend,
      LEGACY_BACKEND_ERRORS.ERAGATE_ONE_SESSION,
      `serves one session at a time and has one already; it answered initialize with ${answer}`,
    );
  }
  return new HandshakeRefused(`${backend.name} refused the handshake with ${answer}`, reply);
}

function olderOf(a: Revision, b: Revision): Revision {
  return a < b ? a : b;
}
