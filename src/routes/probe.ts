import type { ProbeOptions, ProbeReport } from '../commands/context.js';
import { HandshakeRefused, openSession } from '../eras/legacy/backend/handshake.js';
import { LegacyBackend } from '../eras/legacy/backend/legacy-backend.js';
import type { BackendSession } from '../eras/legacy/backend/session.js';
import { NEWEST_LEGACY } from '../eras/legacy/wire/revisions.js';
import type { ProbeAnswer } from '../eras/modern/backend/probe.js';
import { META } from '../eras/modern/wire/names.js';
import { Ticker } from '../exchange/ticker.js';
import { getMember, valueOf as readValue } from '../jsonrpc/index.js';
import { AutoTransport } from '../upstream/http-sse/auto-transport.js';
import type { UrlTransport } from '../upstream/http-sse/opening.js';
import { HttpSseTransport } from '../upstream/http-sse/transport.js';
import { ProcessLimit } from '../upstream/stdio/process-limit.js';
import { StdioTransport } from '../upstream/stdio/transport.js';
import { StreamableHttpTransport } from '../upstream/streamable-http.js';
import type { Transport } from '../upstream/transport.js';
import { OWN_INFO } from '../version.js';
import { findEra } from './find-era.js';

const RESULT_BYTES = 16 * 1024 * 1024;
/** A server that is started may have to be downloaded first. */
const START_MS = 30_000;

type Findings = {
  revisions: string[];
  reasons: string[];
  serverInfo?: { name: string; version: string };
  capabilities?: Record<string, unknown>;
  sessions?: string;
  transport?: UrlTransport | 'stdio';
};

/** A way to a server while it is probed. */
interface Way {
  readonly transport: Transport;
  /** Which one was taken, as far as that is known. */
  readonly taken: () => Findings['transport'];
}

/**
 * Asks a server in both eras what it is: `server/discover`, then a handshake that is ended again.
 * @param target a URL, or a program with its arguments
 */
export async function probeServer(
  target: string | readonly string[],
  { timeoutMs, headers }: ProbeOptions,
): Promise<ProbeReport> {
  const ticker = new Ticker();
  const found: Findings = { revisions: [], reasons: [] };
  const isUrl = typeof target === 'string';
  const startMs = isUrl ? timeoutMs : Math.max(timeoutMs, START_MS);
  const { transport, taken } = isUrl
    ? overHttp(target, timeoutMs, headers ?? {}, ticker)
    : overStdio(target, found);
  const report = (era: ProbeReport['era']): ProbeReport =>
    isUrl ? { url: target, era, ...found } : { command: target, era, ...found };
  try {
    const answer = await findEra({ transport, ticker, ownInfo: OWN_INFO, timeoutMs, startMs, forwarded: {} });
    const modern = answer.finding.kind === 'modern';
    found.reasons.push(`server/discover: ${answer.finding.kind}, ${answer.finding.reason}`);
    if (modern) {
      readDiscover(answer, found);
      found.transport = isUrl ? 'streamable-http' : 'stdio';
    }
    if (answer.finding.kind === 'unreachable') return report('unknown');
    const name = isUrl ? target : (target[0] ?? '');
    const legacy = await tryHandshake(new LegacyBackend(name, transport, ticker, startMs), found);
    const way = taken();
    if (legacy && !isUrl) found.sessions = 'each process is a session';
    if (legacy && way !== undefined) found.transport = way;
    return report(modern ? (legacy ? 'both' : 'modern') : legacy ? 'legacy' : 'unknown');
  } finally {
    await transport.close();
    ticker.stop();
  }
}

function overHttp(url: string, timeoutMs: number, headers: Record<string, string>, ticker: Ticker): Way {
  const options = {
    url,
    hostHeader: undefined,
    headers: Object.entries(headers).flat(),
    connectMs: timeoutMs,
    idleMs: timeoutMs,
    resultBytes: RESULT_BYTES,
    ticker,
  };
  const transport = new AutoTransport(
    new StreamableHttpTransport(options),
    new HttpSseTransport({ ...options, messagesUrl: undefined, endpointMs: timeoutMs }),
  );
  return { transport, taken: () => transport.found };
}

function overStdio([command = '', ...args]: readonly string[], found: Findings): Way {
  const transport = new StdioTransport({
    command: { command, args, env: {}, cwd: undefined },
    shared: false,
    handshake: () => '{}',
    resultBytes: RESULT_BYTES,
    limit: new ProcessLimit(2),
    idleMs: START_MS,
    log: {
      debug() {},
      warn: (record) => {
        const { reason, stderr = [] } = record as { reason?: string; stderr?: string[] };
        if (reason !== undefined)
          found.reasons.push(`the process: ${[reason, ...stderr.slice(-3)].join('; ')}`);
      },
    },
  });
  return { transport, taken: () => 'stdio' };
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
