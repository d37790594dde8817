import type { AddressInfo } from 'node:net';
import { type Logger, pino } from 'pino';
import type { Config, RouteConfig } from './config/index.js';
import { ReplayBudget } from './downstream/replay-budget.js';
import { ClientState } from './exchange/client-state.js';
import { openResultStore } from './exchange/result-cache/result-store.js';
import { Sealer } from './exchange/utils/sealer.js';
import { Ticker } from './exchange/utils/ticker.js';
import { connectionLimits, limitConnections } from './http/connection-limits.js';
import type { Endpoint } from './http/endpoint.js';
import { Forwarding } from './http/forwarding.js';
import { RequestGuard } from './http/origins.js';
import { RequestPipeline, type Stage } from './http/pipeline.js';
import { RequestIds } from './http/request-id.js';
import { HttpServer } from './http/server.js';
import { TrustedProxies } from './http/trusted-proxies.js';
import { type BuiltRoute, buildRoute } from './routes/build-route.js';
import { openMetadata } from './routes/resource-metadata.js';
import type { SharedParts } from './routes/side-options.js';
import type { TransportTimings } from './routes/transport.js';
import { shutDown } from './shutdown.js';
import { RequestLog } from './telemetry/request-log.js';
import { ProcessLimit } from './upstream/stdio/process-limit.js';

export interface Gateway {
  /** Begins to serve; resolves with the URL that it listens on. */
  listen(): Promise<string>;
  /**
   * Attaches a stage to the pipeline of requests.
   * @returns detaches it when it is disposed
   */
  attach(stage: Stage): Disposable;
  /** Finishes what is in flight within a few seconds, ends streams and backend sessions, and stops. */
  close(): Promise<void>;
}

export interface GatewayOptions {
  readonly log?: Logger;
  /** For the line of each exchange; `log` where it is left out. */
  readonly exchanges?: Logger;
  /** Time limits that the configuration does not set; default those of each transport. */
  readonly timings?: TransportTimings;
}

/** Puts the gateway together from a configuration. */
export function createGateway(config: Config, options: GatewayOptions = {}): Gateway {
  const log = options.log ?? pino({ level: config.log.level });
  const requestLog = new RequestLog(log);
  const shared = sharedParts(config, options, log, requestLog);
  const trusted = new TrustedProxies(config.listen.trustedProxies);
  const routes = config.routes.map((route) => buildRoute(route, config.limits, shared));
  const endpoints = config.routes.map((route, index) =>
    endpointOf(route, routes[index] as BuiltRoute, config.publicUrl, trusted),
  );
  const guard = guardOf(config);
  const pipeline = openPipeline(guard, requestLog, shared);
  const server = openServer(config, endpoints, { ...shared, guard, pipeline, trusted });
  let closing: Promise<void> | undefined;

  async function close(): Promise<void> {
    await shutDown(server, routes, shared.replay, config.shutdown);
    for (const { route, cache } of routes) {
      if (Object.values(cache.counts).some((count) => count > 0))
        shared.log.info({ route: route.path, ...cache.counts }, 'results kept');
    }
    shared.ticker.stop();
  }

  return {
    async listen() {
      const { host, port } = config.listen;
      await server.fastify.listen({ host, port });
      limitConnections(server.fastify.server, connectionLimits(), shared.log);
      for (const { route } of routes) route.warmUp();
      const address = server.fastify.server.address() as AddressInfo;
      return `http://${host.includes(':') ? `[${host}]` : host}:${address.port}`;
    },
    attach: (stage) => pipeline.attach(stage),
    close() {
      closing ??= close();
      return closing;
    },
  };
}

function sharedParts(
  config: Config,
  options: GatewayOptions,
  log: Logger,
  requestLog: RequestLog,
): SharedParts {
  const ticker = new Ticker();
  const { replayBytes, processes, cacheBytes, clientStateBytes } = config.limits;
  return {
    log,
    exchanges: options.exchanges ?? log,
    ticker,
    sealer: new Sealer(config.sealKeys),
    processes: new ProcessLimit(processes),
    replay: replayBytes === 0 ? undefined : new ReplayBudget({ maxBytes: replayBytes, ticker }),
    clientState: new ClientState(clientStateBytes),
    results: openResultStore(cacheBytes),
    onFault: (error, requestId) => log.error({ requestId, err: error }, 'fault of the gateway'),
    onExchange: (requestId, status) => requestLog.onExchange(requestId, status),
    timings: options.timings ?? {},
  };
}

function endpointOf(
  config: RouteConfig,
  { route, clientSides }: BuiltRoute,
  publicUrl: string | undefined,
  trusted: TrustedProxies,
): Endpoint {
  return {
    service: route,
    inbounds: clientSides.map(({ inbound }) => inbound),
    sse: clientSides.find(({ sse }) => sse !== undefined)?.sse,
    forwarding: openForwarding(config, trusted),
    metadata: openMetadata(config, publicUrl),
  };
}

function openForwarding({ backend }: RouteConfig, trusted: TrustedProxies): Forwarding {
  const { url, headers, authorization, forward } = backend;
  return new Forwarding({
    ...forward,
    authorization: authorization === 'forward',
    fixed: new Set(Object.keys(headers)),
    fixedParameters: new Set(url === undefined ? [] : new URL(url).searchParams.keys()),
    trusted,
  });
}

function guardOf({ listen, publicUrl }: Config): RequestGuard {
  return new RequestGuard({
    host: listen.host,
    publicUrl,
    allowedHosts: listen.allowedHosts,
    allowedOrigins: listen.allowedOrigins,
  });
}

/** The stages of every request, in the order in which they see it. */
function openPipeline(
  guard: RequestGuard,
  requestLog: RequestLog,
  { onFault }: SharedParts,
): RequestPipeline {
  const pipeline = new RequestPipeline({
    onFault: (error, { id }) => onFault(error, id),
  });
  pipeline.attach(requestLog);
  pipeline.attach(guard);
  return pipeline;
}

function openServer(
  { listen, publicUrl, limits, keepAliveMs }: Config,
  endpoints: readonly Endpoint[],
  parts: SharedParts & {
    readonly guard: RequestGuard;
    readonly pipeline: RequestPipeline;
    readonly trusted: TrustedProxies;
  },
): HttpServer {
  return new HttpServer({
    endpoints,
    pipeline: parts.pipeline,
    guard: parts.guard,
    requestIds: new RequestIds(parts.trusted),
    publicPath: publicUrl === undefined ? '' : new URL(publicUrl).pathname.replace(/\/$/, ''),
    ticker: parts.ticker,
    bodyBytes: limits.bodyBytes,
    keepAliveMs,
    keepAliveTimeoutMs: listen.keepAliveTimeoutMs,
    onFault: parts.onFault,
  });
}
