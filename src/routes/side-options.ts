import type { Logger } from 'pino';
import type { LimitsConfig, RouteConfig } from '../config/index.js';
import type { ReplayBudget } from '../downstream/replay-budget.js';
import { type BackendSideOptions, type ClientSideOptions, ERAS, type Era } from '../eras/index.js';
import type { ClientState } from '../exchange/client-state.js';
import type { ResultStore } from '../exchange/result-cache/result-store.js';
import type { Sealer } from '../exchange/utils/sealer.js';
import type { Ticker } from '../exchange/utils/ticker.js';
import type { ProcessLimit } from '../upstream/stdio/process-limit.js';
import { OWN_INFO } from '../version.js';
import { backendName } from './backend-name.js';
import type { TransportOptions, TransportTimings } from './transport.js';

/** The parts of a route's configuration that each side of it needs, as plain options. */

/** What all routes of a gateway share. */
export interface SharedParts {
  readonly log: Logger;
  /** For the line of each exchange. */
  readonly exchanges: Logger;
  readonly ticker: Ticker;
  readonly sealer: Sealer;
  readonly processes: ProcessLimit;
  /** Keeps events for clients whose connection breaks; undefined to keep none. */
  readonly replay: ReplayBudget | undefined;
  readonly clientState: ClientState;
  readonly results: ResultStore;
  readonly onFault: (error: unknown, requestId?: string) => void;
  /** Notified of each exchange that has its line in the log: the id of its HTTP request and the status of the response. */
  readonly onExchange: (requestId: string | undefined, httpStatus: number) => void;
  readonly timings: TransportTimings;
}

export function transportOptions(
  { path, backend, timeouts, sessions }: RouteConfig,
  { resultBytes }: LimitsConfig,
  { log, ticker, processes, timings }: SharedParts,
): TransportOptions {
  const context = { route: path, backend: backendName(backend) };
  const { connectMs, idleMs, totalMs } = timeouts;
  return {
    connectMs,
    idleMs,
    totalMs,
    resultBytes,
    ticker,
    onDeviation: onceEach((deviation) =>
      log.warn({ ...context, deviation }, 'the backend deviates from the protocol'),
    ),
    onTransport: (transport) => log.info({ ...context, transport }, 'transport of the backend'),
    processes,
    processIdleMs: sessions.idleMs,
    processLog: log.child(context),
    handshake: (revision) => (ERAS.at(-1) as Era).firstRequest(OWN_INFO, revision).params,
    timings,
  };
}

export function backendSideOptions(
  { path, backend, timeouts, sessions, questions, tasks, cache }: RouteConfig,
  limits: LimitsConfig,
  { sealer, ticker, onFault }: SharedParts,
  parts: Pick<BackendSideOptions, 'transport' | 'onChange'>,
): BackendSideOptions {
  return {
    route: path,
    name: backendName(backend),
    sealer,
    ticker,
    onFault,
    ...parts,
    ownInfo: OWN_INFO,
    // A server may have to come up first, also behind a proxy that accepts connections for it.
    handshakeMs: timeouts.startMs,
    newestRevision: ERAS.some(({ revisions }) => revisions.includes(backend.era)) ? backend.era : undefined,
    sessions,
    questions: { roots: questions.roots, maxRounds: limits.rounds },
    tasks,
    ttlMs: cache.ttlMs,
  };
}

export function clientSideOptions(
  { path, sessions, questions, tasks, timeouts, legacySse }: RouteConfig,
  limits: LimitsConfig,
  { sealer, ticker, replay, clientState, onFault }: SharedParts,
): ClientSideOptions {
  return {
    route: path,
    sealer,
    ticker,
    onFault,
    sessions: {
      max: limits.sessions,
      idleMs: sessions.idleMs,
      replay,
      state: clientState,
      holdMs: timeouts.streamMs === 0 ? undefined : timeouts.streamMs,
    },
    questions: { ...questions, maxRounds: limits.rounds },
    tasks,
    httpSse: legacySse,
  };
}

/** Different deviations of one backend that are logged; some hold words of the backend itself. */
const MAX_DEVIATIONS = 100;

/** Passes on each text once. */
function onceEach(log: (what: string) => void): (what: string) => void {
  const logged = new Set<string>();
  return (what) => {
    if (logged.has(what) || logged.size >= MAX_DEVIATIONS) return;
    logged.add(what);
    log(what);
  };
}
