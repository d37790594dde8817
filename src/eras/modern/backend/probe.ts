import { isRepeatable } from '../../../exchange/repeatable-methods.js';
import {
  elementsOf,
  getMember,
  type JsonNode,
  numberId,
  Rope,
  valueOf as readValue,
  requestRope,
  stringOf,
} from '../../../jsonrpc/index.js';
import { isAbsence } from '../../../upstream/absent.js';
import { RpcCall, type RpcReply, SILENT } from '../../../upstream/rpc-call.js';
import type { Transport } from '../../../upstream/transport.js';
import type { ProbedServer, ProbeFinding, ProbeOptions, ProbeResult } from '../../era.js';
import { discoverRequest } from '../wire/discover.js';
import { META, MODERN_CODE, MODERN_VERSION } from '../wire/names.js';
import { requestHeaders } from './request-headers.js';

/** Sends `server/discover` to find out whether a backend speaks this era. */
export async function probe(options: ProbeOptions): Promise<ProbeResult> {
  let reply = await discover(options);
  let finding = readProbe(reply);
  // A server may refuse a version and list the same one as supported; the request is then repeated (basic/versioning).
  if (finding.kind === 'spoken' && reply.kind === 'response' && reply.frame.type === 'error') {
    const second = await discover(options);
    if (readProbe(second).kind === 'spoken') {
      reply = second;
      finding = readProbe(second);
    }
  }
  discardSession(options.transport, reply);
  return { finding, server: finding.kind === 'spoken' ? serverIn(reply) : undefined };
}

async function discover(options: ProbeOptions): Promise<RpcReply> {
  const { transport, ticker, ownInfo, timeoutMs, forwarded } = options;
  const { method, params } = discoverRequest(ownInfo);
  const headers = requestHeaders(method, undefined, forwarded);
  // A number, since some servers accept no strings.
  const id = numberId(1);
  const rpc = new RpcCall(id, ticker, { ...SILENT, endpointRefuses: true });
  const timer = setTimeout(() => rpc.abort('silent'), timeoutMs).unref();
  const body = requestRope(id, method, new Rope().push(params));
  rpc.post({ transport, headers, body, repeatable: isRepeatable(method) });
  return rpc.reply.finally(() => clearTimeout(timer));
}

/** The server that a DiscoverResult describes. */
function serverIn(reply: RpcReply): ProbedServer | undefined {
  if (reply.kind !== 'response' || reply.frame.type !== 'result') return undefined;
  const result = readValue(reply.frame.bytes, reply.frame.result) as Record<string, unknown>;
  const versions = result['supportedVersions'];
  const meta = result['_meta'] as Record<string, unknown> | null | undefined;
  return {
    revisions: Array.isArray(versions) ? versions.map(String) : [],
    capabilities: result['capabilities'],
    serverInfo: meta?.[META.serverInfo],
    session: undefined,
  };
}

/** Ends the session that servers on Python's SDK of the legacy era open for any request without one. */
function discardSession(transport: Transport, reply: RpcReply): void {
  if (reply.kind === 'failed') return;
  const id = reply.headers['mcp-session-id'];
  if (typeof id !== 'string') return;
  const ignore = (): void => {};
  const sink = { onHead: ignore, onMessage: ignore, onEnd: ignore, onError: ignore };
  transport.send('DELETE', ['mcp-session-id', id], undefined, sink);
}

/** Statuses below 500 that prove nothing: they are about credentials, addresses or load, on servers of either era. */
const NO_EVIDENCE: ReadonlySet<number> = new Set([401, 402, 403, 407, 408, 421, 423, 425, 429]);

/** What the response to the probe proves (basic/versioning, "Backward Compatibility"). */
export function readProbe(reply: RpcReply): ProbeFinding {
  if (reply.kind === 'failed') {
    const { failure, message } = reply.error;
    if (failure === 'unreachable') return { kind: 'unreachable', reason: message };
    if (failure === 'aborted')
      return { kind: 'inconclusive', reason: 'no answer to server/discover', slow: true };
    return { kind: 'inconclusive', reason: message, slow: false };
  }
  const { status } = reply;
  if (reply.kind === 'response') {
    const { frame } = reply;
    if (frame.type === 'result')
      return readVersions(frame.bytes, getMember(frame.bytes, frame.result, 'supportedVersions'));
    if (frame.code === MODERN_CODE.unsupportedVersion) {
      const supported =
        frame.data === undefined ? undefined : getMember(frame.bytes, frame.data, 'supported');
      if (supported?.kind === 'array') return readVersions(frame.bytes, supported);
      return { kind: 'not-spoken', reason: `refuses ${MODERN_VERSION} without naming another version` };
    }
  }
  const what = `answered server/discover with HTTP ${status}${errorText(reply)}`;
  if (NO_EVIDENCE.has(status) || status >= 500) return { kind: 'inconclusive', reason: what, slow: false };
  return { kind: 'not-spoken', reason: what, absent: isAbsence(reply) };
}

function errorText(reply: RpcReply): string {
  if (reply.kind === 'response' && reply.frame.type === 'error')
    return `, ${reply.frame.code} ${reply.frame.message.slice(0, 120)}`;
  return '';
}

function readVersions(bytes: Buffer, node: JsonNode | undefined): ProbeFinding {
  if (node?.kind !== 'array')
    return { kind: 'not-spoken', reason: 'answered server/discover without supportedVersions' };
  const versions = elementsOf(bytes, node).map((element) => stringOf(bytes, element) ?? '');
  const listed = versions.join(', ');
  if (versions.includes(MODERN_VERSION)) return { kind: 'spoken', reason: `supports ${listed}` };
  // Dates of this form have the same order as texts.
  const isDate = (version: string): boolean => /^\d{4}-\d\d-\d\d/.test(version);
  if (versions.length > 0 && versions.every((version) => isDate(version) && version > MODERN_VERSION)) {
    return { kind: 'no-common-version', reason: `supports ${listed}, the gateway ${MODERN_VERSION}` };
  }
  return { kind: 'not-spoken', reason: `supports ${listed === '' ? 'no version' : listed}` };
}
