import type { AddressInfo } from 'node:net';
import { type Logger, pino } from 'pino';
import type { Config, RouteConfig } from './config/index.js';
import { ReplayRoom } from './downstream/replay-buffer.js';
import { createInbounds } from './eras/index.js';
import { LegacyBackend } from './eras/legacy/backend/legacy-backend.js';
import { LegacyOutbound } from './eras/legacy/backend/outbound.js';
import { isLegacyRevision } from './eras/legacy/wire/revisions.js';
import { ModernOutbound } from './eras/modern/backend/outbound.js';
import type { Change } from './exchange/changes.js';
import { ResultCache } from './exchange/result-cache.js';
import { Sealer } from './exchange/seal.js';
import { Ticker } from './exchange/ticker.js';
import type { EraName } from './exchange/types.js';
import type { Endpoint } from './http/endpoint.js';
import { RequestGuard } from './http/origins.js';
import { HttpServer } from './http/server.js';
import { Backend } from './routes/backend.js';
import { findEra } from './routes/find-era.js';
import { openMetadata } from './routes/metadata.js';
import { Route } from './routes/route.js';
import { backendName, openTransport } from './routes/transport.js';
import { ExchangeLog } from './telemetry/exchange-log.js';
import { ProcessLimit } from './upstream/stdio/process-limit.js';
import type { Transport } from './upstream/transport.js';
import { OWN_INFO } from './version.js';

export interface Gateway {
  /** Begins to serve; resolves with the URL that it listens on. */
  listen(): Promise<string>;
  /** Finishes what is in flight within a few seconds, ends streams and backend sessions, and stops. */
  close(): Promise<void>;
}

export interface GatewayOptions {
  readonly log?: Logger;
  /** For the line of each exchange; `log` where it is left out. */
  readonly exchanges?: Logger;
}

/** How long requests in flight may take to finish once the gateway ends. */
const DRAIN_MS = 5_000;

/** How long clients that were let go in the middle of a call may take to come back for its result. */
const RETURN_MS = 2_000;

/** Results that one route keeps. */
const CACHE_ENTRIES = 10_000;

interface BuiltRoute {
  readonly path: string;
  readonly route: Route;
  readonly endpoint: Endpoint;
  readonly transport: Transport;
  readonly cache: ResultCache;
}

/** Puts the parts together from a configuration; the only place that knows them all. */
export function createGateway(config: Config, options: GatewayOptions = {}): Gateway {
  const log = options.log ?? pino({ level: config.log.level });
  const exchanges = options.exchanges ?? log;
  const ticker = new Ticker();
  const sealer = new Sealer(config.sealKeys);
  const onFault = (error: unknown): void => log.error({ err: error }, 'fault of the gateway');
  const processes = new ProcessLimit(config.limits.processes);
  const { replayBytes } = config.limits;
  const replay = replayBytes === 0 ? undefined : new ReplayRoom({ maxBytes: replayBytes, ticker });
  const built = config.routes.map((route) =>
    buildRoute(route, config, { log, exchanges, ticker, sealer, processes, replay, onFault }),
  );
  const server = new HttpServer({
    endpoints: built.map(({ endpoint }) => endpoint),
    publicPath: config.publicUrl === undefined ? '' : new URL(config.publicUrl).pathname.replace(/\/$/, ''),
    guard: new RequestGuard({
      host: config.listen.host,
      publicUrl: config.publicUrl,
      allowedHosts: config.listen.allowedHosts,
      allowedOrigins: config.listen.allowedOrigins,
    }),
    ticker,
    bodyBytes: config.limits.bodyBytes,
    keepAliveMs: config.keepAliveMs,
    onRefused: (reason, req) => log.warn({ path: req.url, reason }, 'request refused'),
    onFault,
  });

  async function listen(): Promise<string> {
    const { host, port } = config.listen;
    await server.fastify.listen({ host, port });
    for (const { route } of built) route.warmUp();
    const address = server.fastify.server.address() as AddressInfo;
    return `http://${host.includes(':') ? `[${host}]` : host}:${address.port}`;
  }

  let closing: Promise<void> | undefined;
  async function shutDown(): Promise<void> {
    server.stopAccepting();
    await Promise.all([
      Promise.resolve(replay?.close(RETURN_MS)).then(() => server.fastify.server.close()),
      ...built.map(({ route }) => route.drain(DRAIN_MS)),
      ...built.flatMap(({ endpoint }) => endpoint.inbounds.map((inbound) => inbound.drain())),
    ]);
    // Each backend session that is ended may take a few seconds, whoever it was opened for. Where sessions are the
    // transport's own, its end is theirs, also of those that are still being opened.
    await Promise.all([
      ...built.map(({ transport }) => (transport.ownsSessions === true ? transport.close() : undefined)),
      ...built.flatMap(({ endpoint }) => endpoint.inbounds.map((inbound) => inbound.close())),
      ...built.map(({ endpoint }) => endpoint.sse?.close()),
      ...built.map(({ route }) => route.close()),
    ]);
    await Promise.all(built.map(({ transport }) => transport.close()));
    for (const { path, cache } of built) {
      if (Object.values(cache.counts).some((count) => count > 0))
        log.info({ route: path, ...cache.counts }, 'results kept');
    }
    await server.fastify.close();
    ticker.stop();
  }

  return {
    listen,
    close: () => {
      closing ??= shutDown();
      return closing;
    },
  };
}

interface Shared {
  readonly log: Logger;
  readonly exchanges: Logger;
  readonly ticker: Ticker;
  readonly sealer: Sealer;
  readonly processes: ProcessLimit;
  /** What legacy clients may miss, on all routes. */
  readonly replay: ReplayRoom | undefined;
  readonly onFault: (error: unknown) => void;
}

function buildRoute(
  route: RouteConfig,
  config: Config,
  { log, exchanges, ticker, sealer, processes, replay, onFault }: Shared,
): BuiltRoute {
  const { backend, timeouts, sessions } = route;
  const name = backendName(backend);
  // A server that is started has to come up first.
  const handshakeMs = backend.command === undefined ? timeouts.connectMs : timeouts.startMs;
  const transport = openTransport(backend, {
    connectMs: timeouts.connectMs,
    idleMs: timeouts.idleMs,
    totalMs: timeouts.totalMs,
    resultBytes: config.limits.resultBytes,
    ticker,
    onDeviation: onceEach((deviation) =>
      log.warn({ route: route.path, backend: name, deviation }, 'the backend deviates from the protocol'),
    ),
    onTransport: (found) =>
      log.info({ route: route.path, backend: name, transport: found }, 'transport of the backend'),
    processes,
    processIdleMs: sessions.idleMs,
    processLog: log.child({ route: route.path, backend: name }),
  });
  const cache = new ResultCache({
    maxEntries: CACHE_ENTRIES,
    maxBytes: config.limits.cacheBytes,
    staleIfErrorMs: route.cache.staleIfErrorMs,
  });
  const onChange = (change: Change): void => cache.invalidate(change);
  const legacyBackend = new LegacyBackend(name, transport, ticker, handshakeMs);
  if (isLegacyRevision(backend.era)) legacyBackend.newestAllowed = backend.era;
  const legacy = new LegacyOutbound(legacyBackend, {
    isolation: sessions.isolation,
    max: sessions.max,
    idleMs: sessions.idleMs,
    lost: sessions.lost,
    ownInfo: OWN_INFO,
    roots: route.questions.roots,
    optionalTasks: route.tasks.optional,
    ttlMs: route.cache.ttlMs,
    onChange,
  });
  const modern = new ModernOutbound({
    name,
    transport,
    ticker,
    ownInfo: OWN_INFO,
    discoverMs: handshakeMs,
    maxRounds: config.limits.rounds,
    tasks: { route: route.path, sealer, ticker, ...route.tasks },
    onCannotAsk: () => state.cannotAskOnModern(),
    onChange,
  });
  const state: Backend = new Backend({
    name,
    legacy,
    modern,
    pinned: backend.transport === 'http-sse' ? 'legacy' : pinnedEra(backend.era),
    leg: backend.leg,
    probe: async (forwarded) => {
      const { finding } = await findEra({
        transport,
        ticker,
        ownInfo: OWN_INFO,
        timeoutMs: timeouts.probeMs,
        startMs: timeouts.startMs,
        forwarded,
      });
      return finding;
    },
    onVerdict: ({ era, reason }) =>
      log.info({ route: route.path, backend: name, era, reason }, 'era of the backend'),
  });
  const exchangeLog = new ExchangeLog(exchanges, route.path);
  const service = new Route({
    path: route.path,
    backend: state,
    outbounds: [legacy, modern],
    ticker,
    totalMs: timeouts.totalMs,
    maxExchanges: config.limits.exchanges,
    maxListeners: config.limits.listeners,
    forwardsCredentials: backend.authorization === 'forward',
    cache,
    record: (exchange, status, outcome) => exchangeLog.record(exchange, status, outcome),
    onFault,
  });
  const { inbounds, sse } = createInbounds({
    route: route.path,
    sealer,
    sessions: {
      max: config.limits.sessions,
      idleMs: sessions.idleMs,
      questionMs: route.questions.timeoutMs,
      replay,
      holdMs: timeouts.streamMs === 0 ? undefined : timeouts.streamMs,
    },
    parking: { sealer, ticker, ...route.questions },
    tasks: { sealer, ticker, ...route.tasks },
    legacySse: route.legacySse,
  });
  return {
    path: route.path,
    route: service,
    endpoint: {
      service,
      inbounds,
      sse,
      forwardAuthorization: backend.authorization === 'forward',
      metadata: openMetadata(route, config.publicUrl),
    },
    transport,
    cache,
  };
}

/** At most so many different ones of a backend are told; some hold words of the backend's own. */
const MAX_QUIRKS = 100;

function onceEach(tell: (what: string) => void): (what: string) => void {
  const told = new Set<string>();
  return (what) => {
    if (told.has(what) || told.size >= MAX_QUIRKS) return;
    told.add(what);
    tell(what);
  };
}

function pinnedEra(era: string): EraName | undefined {
  if (era === 'auto') return undefined;
  if (era === 'legacy' || era === 'modern') return era;
  return isLegacyRevision(era) ? 'legacy' : 'modern';
}
