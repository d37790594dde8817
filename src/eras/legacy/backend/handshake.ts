import { badGateway, unreachable } from '../../../exchange/errors.js';
import type { ForwardedHeaders } from '../../../exchange/forwarded-headers.js';
import { isRepeatable } from '../../../exchange/repeatable-methods.js';
import type { Revision } from '../../../exchange/revision.js';
import { type ErrorFrame, requestRope, textOf } from '../../../jsonrpc/index.js';
import { addForwarded } from '../../../upstream/request-headers.js';
import type { ResponseHeaders } from '../../../upstream/response-headers.js';
import { RpcCall, type RpcReply, SILENT } from '../../../upstream/rpc-call.js';
import { POST_HEADERS } from '../../../upstream/streamable-http.js';
import { downgradeClientCapabilities } from '../wire/client-capabilities.js';
import { readInitializeInfo } from '../wire/initialize-info.js';
import { initializeParams } from '../wire/initialize-request.js';
import { LEGACY_REVISIONS } from '../wire/revisions.js';
import type { LegacyBackend } from './legacy-backend.js';
import { BackendSession, INITIALIZE_ID } from './session.js';

/** What the gateway says of the client in a handshake. */
export interface HandshakeParams {
  /** Newest revision to offer. */
  readonly revision: Revision;
  /** JSON texts. */
  readonly capabilities: string;
  readonly clientInfo: string;
  readonly forwarded: ForwardedHeaders;
}

/** The backend does not take part in the handshake, so it is not of the legacy era, or not now. */
export class HandshakeRefused extends Error {
  readonly reply: RpcReply;
  constructor(message: string, reply: RpcReply) {
    super(message);
    this.name = 'HandshakeRefused';
    this.reply = reply;
  }
}

/**
 * Opens a session: `initialize`, then `notifications/initialized`, whose 202 is awaited since strict servers refuse
 * what overtakes it (basic/lifecycle). All of it together has the backend's `handshakeMs`.
 * @throws HandshakeRefused when the backend answers with something else than a result
 * @throws ExchangeError when it cannot be reached
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
    // Some look at the version only where it is in the header, which begins now.
    const lower = lowerRevision(olderOf(revision, session?.info.revision ?? revision), reply);
    if (lower === undefined)
      throw session === undefined ? refusal(backend, reply) : brokenOff(backend, reply);
    revision = lower;
    refused = true;
  }
}

/** `initialize` carries no session id and no version header: neither exists yet. */
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
  const headers = [...POST_HEADERS];
  addForwarded(headers, params.forwarded);
  const rpc = new RpcCall(String(INITIALIZE_ID), backend.ticker, SILENT);
  const timer = setTimeout(
    () => rpc.abort(`no answer to initialize within ${backend.handshakeMs} ms`),
    deadline - performance.now(),
  );
  rpc.post({
    transport: backend.transport,
    headers,
    body: requestRope(INITIALIZE_ID, 'initialize', body),
    repeatable: isRepeatable('initialize'),
  });
  return rpc.reply.finally(() => clearTimeout(timer));
}

/** The session that an answer to `initialize` opens; undefined for a refusal. */
function sessionIn(backend: LegacyBackend, reply: RpcReply): BackendSession | undefined {
  if (reply.kind !== 'response' || reply.frame.type !== 'result') return undefined;
  const { frame, headers } = reply;
  const info = backend.rememberInfo(readInitializeInfo(frame.bytes, frame.result));
  const session = new BackendSession(backend, info, sessionIdIn(headers));
  session.keepCookies(headers);
  return session;
}

function announce(
  session: BackendSession,
  { forwarded }: HandshakeParams,
  deadline: number,
): Promise<RpcReply> {
  return session.notify('notifications/initialized', undefined, forwarded, deadline - performance.now());
}

function brokenOff(backend: LegacyBackend, reply: RpcReply): Error {
  if (reply.kind !== 'failed') return refusal(backend, reply);
  const { failure, message } = reply.error;
  return badGateway(`${backend.name} broke off the handshake: ${message}`, failure === 'aborted' ? 504 : 502);
}

/** Proxies in between repeat the header now and then. */
function sessionIdIn(headers: ResponseHeaders): string | undefined {
  const [id] = [headers['mcp-session-id']].flat();
  return id === '' ? undefined : id;
}

/**
 * The next revision to offer to a server that refuses an unknown one instead of negotiating. Servers list the versions
 * that they know in the text, or in `data.supported` as the specification has it (basic/lifecycle, "Error Handling");
 * some list none, and are offered one revision after the other.
 */
function lowerRevision(refused: Revision, reply: RpcReply): Revision | undefined {
  if (reply.kind === 'failed' || reply.status >= 500) return undefined;
  const said = wordsOf(reply);
  if (!/version/i.test(said)) return undefined;
  const older = LEGACY_REVISIONS.filter((revision) => revision < refused);
  const named = said.replaceAll(refused, '');
  return older.find((revision) => named.includes(revision)) ?? (/20\d\d-/.test(named) ? undefined : older[0]);
}

/** What a refusal says: the message with the data, or the text of the body. */
function wordsOf(reply: Exclude<RpcReply, { kind: 'failed' }>): string {
  if (reply.kind === 'no-response') return reply.text;
  const { code, message, data, bytes } = reply.frame as ErrorFrame;
  return `${code} ${message}${data === undefined ? '' : ` ${textOf(bytes, data)}`}`;
}

/** What servers say that have one session for the whole process, or one at a time, and have it already. */
const ONE_SESSION =
  /already (been )?(initiali[sz]ed|connected|running|in use)|(only|just) (one|a single|1) (session|client|connection)|session already exists/i;

function refusal(backend: LegacyBackend, reply: RpcReply): Error {
  if (reply.kind === 'failed') {
    const { failure, message } = reply.error;
    const what = `cannot reach ${backend.name}: ${message}`;
    return failure === 'unreachable'
      ? unreachable(what)
      : badGateway(what, failure === 'aborted' ? 504 : 502);
  }
  const words = wordsOf(reply).trim().slice(0, 200);
  const status = `HTTP ${reply.status}`;
  const said = words === '' ? status : reply.status < 400 ? words : `${status}: ${words}`;
  if (ONE_SESSION.test(said)) {
    return badGateway(
      `${backend.name} serves one session at a time and has one already; it answered initialize with ${said}`,
    );
  }
  return new HandshakeRefused(`${backend.name} refused the handshake with ${said}`, reply);
}

function olderOf(a: Revision, b: Revision): Revision {
  return a < b ? a : b;
}
