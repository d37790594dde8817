import { badGateway, unreachable } from '../../exchange/errors.js';
import type { ForwardedHeaders, Revision } from '../../exchange/types.js';
import {
  type ErrorFrame,
  getMember,
  type JsonNode,
  Rope,
  requestRope,
  stringOf,
  textOf,
} from '../../jsonrpc/index.js';
import { RpcCall, type RpcReply } from '../../transports/rpc-call.js';
import type { LegacyBackend } from './backend.js';
import { BackendSession, pushForwarded } from './backend-session.js';
import { isLegacyRevision, LEGACY_REVISIONS, NEWEST_LEGACY } from './revisions.js';

/** What a backend said of itself in its handshake. Sessions that were told the same share one object. */
export interface InitializeInfo {
  readonly revision: Revision;
  readonly bytes: Buffer;
  /** The result object of `initialize`. */
  readonly result: JsonNode;
  /** JSON texts of members of the result. */
  readonly capabilities: string;
  readonly serverInfo: string | undefined;
  readonly instructions: string | undefined;
}

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
 * what overtakes it (basic/lifecycle).
 * @throws HandshakeRefused when the backend answers with something else than a result
 * @throws ExchangeError when it cannot be reached
 */
export async function openSession(backend: LegacyBackend, params: HandshakeParams): Promise<BackendSession> {
  let revision = olderOf(params.revision, backend.newestRevision);
  for (;;) {
    const reply = await initialize(backend, params, revision);
    if (reply.kind === 'answer' && reply.frame.type === 'result') return settle(backend, params, reply);
    const lower = lowerRevision(revision, reply);
    if (lower === undefined) throw refusal(backend, reply);
    revision = lower;
    backend.newestRevision = lower;
  }
}

/** `initialize` carries no session id and no version header: neither exists yet. */
function initialize(backend: LegacyBackend, params: HandshakeParams, revision: Revision): Promise<RpcReply> {
  const body = new Rope()
    .push('{"protocolVersion":')
    .push(JSON.stringify(revision))
    .push(',"capabilities":')
    .push(params.capabilities)
    .push(',"clientInfo":')
    .push(params.clientInfo)
    .push('}');
  const headers = [...backend.postHeaders];
  pushForwarded(headers, params.forwarded);
  const rpc = new RpcCall('0', backend.ticker, { onNotification() {}, onRequest() {} });
  const timer = setTimeout(
    () => rpc.abort(`no answer to initialize within ${backend.handshakeMs} ms`),
    backend.handshakeMs,
  );
  rpc.post(backend.transport, headers, requestRope(0, 'initialize', body));
  return rpc.reply.finally(() => clearTimeout(timer));
}

async function settle(
  backend: LegacyBackend,
  params: HandshakeParams,
  reply: RpcReply & { kind: 'answer' },
): Promise<BackendSession> {
  const { frame, headers } = reply;
  if (frame.type !== 'result') throw refusal(backend, reply);
  const id = headers['mcp-session-id'];
  const info = backend.rememberInfo(readInfo(frame.bytes, frame.result));
  const session = new BackendSession(backend, info, typeof id === 'string' && id !== '' ? id : undefined);
  session.keepCookies(headers);
  const noted = await session.notify('notifications/initialized', undefined, params.forwarded);
  if (noted.kind === 'failed')
    throw badGateway(`${backend.name} broke off the handshake: ${noted.error.message}`);
  if (noted.status >= 400) throw refusal(backend, noted);
  return session;
}

function readInfo(bytes: Buffer, result: JsonNode): InitializeInfo {
  const asked = stringOf(bytes, getMember(bytes, result, 'protocolVersion'));
  const object = (key: string): string | undefined => {
    const node = getMember(bytes, result, key);
    return node?.kind === 'object' ? textOf(bytes, node) : undefined;
  };
  const instructions = getMember(bytes, result, 'instructions');
  return {
    revision: isLegacyRevision(asked) ? asked : NEWEST_LEGACY,
    bytes,
    result,
    capabilities: object('capabilities') ?? '{}',
    serverInfo: object('serverInfo'),
    instructions: instructions?.kind === 'string' ? textOf(bytes, instructions) : undefined,
  };
}

/**
 * The next revision to offer to a server that refuses an unknown one before it negotiates. Old servers answer 400 and
 * list the versions that they know in the text.
 */
function lowerRevision(refused: Revision, reply: RpcReply): Revision | undefined {
  if (reply.kind === 'failed' || reply.status !== 400) return undefined;
  const text = reply.kind === 'answer' ? (reply.frame as ErrorFrame).message : reply.text;
  if (!/version/i.test(text)) return undefined;
  const older = LEGACY_REVISIONS.filter((revision) => revision < refused);
  const named = text.replace(refused, '');
  return older.find((revision) => named.includes(revision)) ?? (/20\d\d-/.test(named) ? undefined : older[0]);
}

function refusal(backend: LegacyBackend, reply: RpcReply): Error {
  if (reply.kind === 'failed') {
    const { failure, message } = reply.error;
    const what = `cannot reach ${backend.name}: ${message}`;
    return failure === 'unreachable'
      ? unreachable(what)
      : badGateway(what, failure === 'aborted' ? 504 : 502);
  }
  const said =
    reply.kind === 'answer'
      ? `${(reply.frame as ErrorFrame).code} ${(reply.frame as ErrorFrame).message}`
      : reply.text;
  return new HandshakeRefused(
    `${backend.name} refused the handshake with HTTP ${reply.status}: ${said.slice(0, 200)}`,
    reply,
  );
}

function olderOf(a: Revision, b: Revision): Revision {
  return a < b ? a : b;
}
