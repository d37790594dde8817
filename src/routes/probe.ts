import { ERAS, type Era, type ProbedServer, type ProbeResult } from '../eras/index.js';
import { Ticker } from '../exchange/utils/ticker.js';
import { AutoTransport } from '../upstream/http-sse/auto-transport.js';
import { HttpSseTransport } from '../upstream/http-sse/transport.js';
import { ProcessLimit } from '../upstream/stdio/process-limit.js';
import { StdioTransport } from '../upstream/stdio/transport.js';
import { StreamableHttpTransport } from '../upstream/streamable-http.js';
import type { Transport } from '../upstream/transport.js';
import { OWN_INFO } from '../version.js';
import { findEra } from './find-era.js';
import type { ProbeReport, ProbeServerOptions } from './probe-report.js';

const RESULT_BYTES = 16 * 1024 * 1024;
/** A server that is started may have to be downloaded first. */
const START_MS = 30_000;

type Findings = {
  -readonly [Key in keyof Omit<ProbeReport, 'url' | 'command' | 'era'>]: ProbeReport[Key];
} & { revisions: string[]; reasons: string[] };

/** A way to a server while it is probed. */
interface Way {
  readonly transport: Transport;
  /** Name of the server in messages to people. */
  readonly name: string;
  /** Until a server that is started answers. */
  readonly startMs: number;
  /** How the server was reached by an era; undefined where it was not. */
  readonly taken: (era: Era) => ProbeReport['transport'];
  /** What a session is on this way, in words. */
  readonly sessionsOf: (id: string | undefined) => string;
}

/**
 * Probes a server for each era.
 * @param target a URL, or a program with its arguments
 */
export async function probeServer(
  target: string | readonly string[],
  { timeoutMs, headers }: ProbeServerOptions,
): Promise<ProbeReport> {
  const ticker = new Ticker();
  const found: Findings = { revisions: [], reasons: [] };
  const way =
    typeof target === 'string'
      ? overHttp(target, timeoutMs, headers ?? {}, ticker)
      : overStdio(target, timeoutMs, found);
  const spoken: Era[] = [];
  try {
    for (const era of ERAS) {
      const { finding, server } = await ask(era, way, timeoutMs, ticker);
      found.reasons.push(sentenceOf(era, finding));
      if (server !== undefined) note(found, server, way);
      if (finding.kind === 'spoken') {
        spoken.push(era);
        const transport = way.taken(era);
        if (transport !== undefined) found.transport = transport;
      }
      if (finding.kind === 'unreachable') break;
    }
  } finally {
    await way.transport.close();
    ticker.stop();
  }
  const [first, second] = spoken;
  const era = second === undefined ? (first?.name ?? 'unknown') : 'both';
  return typeof target === 'string' ? { url: target, era, ...found } : { command: target, era, ...found };
}

function ask(era: Era, way: Way, timeoutMs: number, ticker: Ticker): Promise<ProbeResult> {
  const { transport, name, startMs } = way;
  const options = { name, transport, ticker, ownInfo: OWN_INFO, forwarded: {} };
  const last = ERAS.at(-1) as Era;
  return era === last
    ? era.probe({ ...options, timeoutMs: startMs })
    : findEra(era, last, { ...options, timeoutMs, startMs });
}

/** What was asked and answered, and what it proves. */
function sentenceOf(era: Era, { kind, reason }: ProbeResult['finding']): string {
  const proved = kind === 'spoken' ? era.name : kind === 'not-spoken' ? `not-${era.name}` : kind;
  return `${era.firstRequest(OWN_INFO).method}: ${proved}, ${reason}`;
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
  return {
    transport,
    name: url,
    startMs: timeoutMs,
    // Each handshake finds out how the server is reached; an era without HTTP+SSE needs none for that.
    taken: ({ transports }) => (transports.includes('http-sse') ? transport.detected : 'streamable-http'),
    sessionsOf: (id) => {
      if (id === undefined) return 'gives no session ids';
      return HttpSseTransport.isSessionId(id) ? 'each event stream is a session' : 'gives session ids';
    },
  };
}

function overStdio([command = '', ...args]: readonly string[], timeoutMs: number, found: Findings): Way {
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
  return {
    transport,
    name: command,
    startMs: Math.max(timeoutMs, START_MS),
    taken: () => 'stdio',
    sessionsOf: () => 'each process is a session',
  };
}

/** Adds what a server says of itself; what it said first stands. */
function note(
  found: Findings,
  { revisions, capabilities, serverInfo, session }: ProbedServer,
  way: Way,
): void {
  found.revisions.push(...revisions);
  if (session !== undefined) found.sessions = way.sessionsOf(session.id);
  if (found.capabilities === undefined && isRecord(capabilities)) found.capabilities = capabilities;
  if (found.serverInfo === undefined && isRecord(serverInfo)) {
    found.serverInfo = { name: String(serverInfo['name']), version: String(serverInfo['version']) };
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
