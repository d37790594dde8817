import type { ProbeOptions, ProbeReport } from '../commands/context.js';
import { LegacyBackend } from '../eras/legacy/backend.js';
import type { BackendSession } from '../eras/legacy/backend-session.js';
import { HandshakeRefused, openSession } from '../eras/legacy/handshake.js';
import { NEWEST_LEGACY } from '../eras/legacy/revisions.js';
import { META } from '../eras/modern/names.js';
import { type ProbeAnswer, probe } from '../eras/modern/probe.js';
import { Ticker } from '../exchange/ticker.js';
import { getMember, valueOf as readValue } from '../jsonrpc/index.js';
import { AutoTransport } from '../transports/http-sse/auto.js';
import type { UrlTransport } from '../transports/http-sse/opening.js';
import { HttpSseTransport } from '../transports/http-sse/transport.js';
import { StreamableHttpTransport } from '../transports/streamable-http.js';
import { OWN_INFO } from '../version.js';

const RESULT_BYTES = 16 * 1024 * 1024;

type Findings = {
  revisions: string[];
  reasons: string[];
  serverInfo?: { name: string; version: string };
  capabilities?: Record<string, unknown>;
  sessions?: string;
  transport?: UrlTransport;
};

/** Asks a server in both eras what it is: `server/discover`, then a handshake that is ended again. */
export async function probeServer(url: string, { timeoutMs, headers }: ProbeOptions): Promise<ProbeReport> {
  const ticker = new Ticker();
  const options = {
    url,
    hostHeader: undefined,
    headers: Object.entries(headers ?? {}).flat(),
    connectMs: timeoutMs,
    idleMs: timeoutMs,
    resultBytes: RESULT_BYTES,
    ticker,
  };
  const transport = new AutoTransport(
    new StreamableHttpTransport(options),
    new HttpSseTransport({ ...options, messagesUrl: undefined, endpointMs: timeoutMs }),
  );
  const found: Findings = { revisions: [], reasons: [] };
  try {
    const answer = await probe({ transport, ticker, ownInfo: OWN_INFO, timeoutMs, forwarded: {} });
    const modern = answer.finding.kind === 'modern';
    found.reasons.push(`server/discover: ${answer.finding.kind}, ${answer.finding.reason}`);
    if (modern) {
      readDiscover(answer, found);
      found.transport = 'streamable-http';
    }
    if (answer.finding.kind === 'unreachable') return report(url, 'unknown', found);
    const legacy = await tryHandshake(new LegacyBackend(url, transport, ticker, timeoutMs), found);
    if (legacy && transport.found !== undefined) found.transport = transport.found;
    return report(url, modern ? (legacy ? 'both' : 'modern') : legacy ? 'legacy' : 'unknown', found);
  } finally {
    await transport.close();
    ticker.stop();
  }
}

function report(url: string, era: ProbeReport['era'], found: Findings): ProbeReport {
  return { url, era, ...found };
}

function readDiscover({ reply }: ProbeAnswer, found: Findings): void {
  if (reply.kind !== 'answer' || reply.frame.type !== 'result') return;
  const { bytes, result } = reply.frame;
  const told = readValue(bytes, result) as Record<string, unknown> & { _meta?: Record<string, unknown> };
  if (Array.isArray(told['supportedVersions']))
    found.revisions.push(...told['supportedVersions'].map(String));
  take(found, told['capabilities'], told._meta?.[META.serverInfo]);
}

async function tryHandshake(backend: LegacyBackend, found: Findings): Promise<boolean> {
  let session: BackendSession;
  try {
    const params = { revision: NEWEST_LEGACY, capabilities: '{}', clientInfo: OWN_INFO, forwarded: {} };
    session = await openSession(backend, params);
  } catch (error) {
    const what = error instanceof HandshakeRefused ? 'refused' : 'failed';
    found.reasons.push(`initialize: ${what}, ${(error as Error).message}`);
    return false;
  }
  const { info } = session;
  found.revisions.push(info.revision);
  found.reasons.push(`initialize: answered with ${info.revision}`);
  found.sessions = sessionsOf(session.id);
  const told = (key: string): unknown => {
    const node = getMember(info.bytes, info.result, key);
    return node === undefined ? undefined : readValue(info.bytes, node);
  };
  take(found, told('capabilities'), told('serverInfo'));
  await session.end({});
  return true;
}

function sessionsOf(id: string | undefined): string {
  if (id === undefined) return 'gives no session ids';
  return HttpSseTransport.isSessionId(id) ? 'each event stream is a session' : 'gives session ids';
}

function take(found: Findings, capabilities: unknown, serverInfo: unknown): void {
  if (found.capabilities === undefined && isRecord(capabilities)) found.capabilities = capabilities;
  if (found.serverInfo === undefined && isRecord(serverInfo)) {
    found.serverInfo = { name: String(serverInfo['name']), version: String(serverInfo['version']) };
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
