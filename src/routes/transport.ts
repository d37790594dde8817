import type { BackendConfig } from '../config/index.js';
import type { Revision } from '../exchange/revision.js';
import type { Ticker } from '../exchange/utils/ticker.js';
import { AutoTransport } from '../upstream/http-sse/auto-transport.js';
import type { UrlTransport } from '../upstream/http-sse/session-opening.js';
import type { HttpSseTimings } from '../upstream/http-sse/timings.js';
import { HttpSseTransport } from '../upstream/http-sse/transport.js';
import type { ProcessLog } from '../upstream/stdio/child-log.js';
import type { ProcessLimit } from '../upstream/stdio/process-limit.js';
import type { StdioTimings } from '../upstream/stdio/timings.js';
import { StdioTransport } from '../upstream/stdio/transport.js';
import { StreamableHttpTransport } from '../upstream/streamable-http.js';
import type { Transport } from '../upstream/transport.js';
import { urlOf } from './backend-name.js';

/** Time limits of transports that the configuration does not set. */
export interface TransportTimings {
  readonly stdio?: Partial<StdioTimings>;
  readonly httpSse?: Partial<HttpSseTimings>;
}

export interface TransportOptions {
  /** Longest time for making a connection, in milliseconds. */
  readonly connectMs: number;
  /** Longest silence within a response, in milliseconds. */
  readonly idleMs: number;
  /** Largest message. */
  readonly resultBytes: number;
  readonly ticker: Ticker;
  /** See {@link Transport.reportDeviation}. */
  readonly onDeviation?: (what: string) => void;
  /** Notified of the transport that is found to reach the backend. */
  readonly onTransport?: (transport: UrlTransport) => void;
  /** Limits the processes of all routes together. */
  readonly processes: ProcessLimit;
  /** Longest time for one call, in milliseconds. */
  readonly totalMs: number;
  /** How long an idle process is kept, in milliseconds. */
  readonly processIdleMs: number;
  readonly processLog: ProcessLog;
  /**
   * JSON text of the params of the handshake with a process that all callers share.
   * @param revision to offer; undefined for the newest
   */
  readonly handshake: (revision: Revision | undefined) => string;
  readonly timings: TransportTimings;
}

/** Opens the transport that the configuration of a backend names. */
export function openTransport(backend: BackendConfig, limits: TransportOptions): Transport {
  const { command, url } = backend;
  if (command !== undefined) {
    return new StdioTransport({
      command: { ...command, cwd: command.cwd },
      shared: command.process === 'shared',
      handshake: (revision) =>
        limits.handshake(revision === undefined ? undefined : (JSON.parse(revision) as Revision)),
      resultBytes: limits.resultBytes,
      limit: limits.processes,
      idleMs: limits.processIdleMs,
      totalMs: limits.totalMs,
      log: limits.processLog,
      onDeviation: limits.onDeviation,
      timings: limits.timings.stdio,
    });
  }
  const options = {
    ...limits,
    url: urlOf(url),
    hostHeader: backend.hostHeader,
    headers: Object.entries(backend.headers).flat(),
  };
  const { transport, messagesUrl } = backend;
  if (transport === 'streamable-http') return new StreamableHttpTransport(options);
  // Ends before the handshake does, which could not say what was missing; earlier where another transport is tried next.
  const endpointMs = limits.connectMs * (transport === 'auto' ? 0.5 : 0.9);
  const sse = new HttpSseTransport({ ...options, messagesUrl, endpointMs, timings: limits.timings.httpSse });
  return transport === 'auto'
    ? new AutoTransport(new StreamableHttpTransport(options), sse, limits.onTransport)
    : sse;
}
