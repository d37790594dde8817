import type { BackendConfig, LimitsConfig, RouteConfig } from '../config/index.js';
import { type ClientSide, ERAS, type Era } from '../eras/index.js';
import type { Change } from '../exchange/changes/change.js';
import type { Outbound } from '../exchange/outbound.js';
import { ResultCache } from '../exchange/result-cache/result-cache.js';
import { ExchangeLog } from '../telemetry/exchange-log.js';
import type { Transport } from '../upstream/transport.js';
import { OWN_INFO } from '../version.js';
import { backendName } from './backend-name.js';
import { type EraChoice, PinnedEra } from './era-choice.js';
import { findEra } from './find-era.js';
import { confirmPresence } from './presence.js';
import { ProbedEra } from './probed-era.js';
import { Route } from './route.js';
import { backendSideOptions, clientSideOptions, type SharedParts, transportOptions } from './side-options.js';
import { openTransport } from './transport.js';

/** A route, and those of its parts that have to be closed, or can be counted. */
export interface BuiltRoute {
  readonly route: Route;
  /** In the order in which they claim a request. */
  readonly clientSides: readonly ClientSide[];
  readonly transport: Transport;
  readonly cache: ResultCache;
}

/** A line at the start; requests go to the backend all the same. */
const ABSENT = 'the backend is not there: check that it runs, and host, port and path of backend.url';

/** Puts a route together from its configuration. */
export function buildRoute(config: RouteConfig, limits: LimitsConfig, shared: SharedParts): BuiltRoute {
  const eras = erasOf(config.backend);
  const transport = openTransport(config.backend, transportOptions(config, limits, shared));
  const cache = new ResultCache({
    store: shared.results,
    name: config.path,
    staleIfErrorMs: config.cache.staleIfErrorMs,
  });
  const onChange = (change: Change): void => cache.invalidate(change);
  const backendSide = backendSideOptions(config, limits, shared, { transport, onChange });
  const outbounds = eras.map((era) => era.openBackendSide(backendSide));
  const clientSide = clientSideOptions(config, limits, shared);
  const exchangeLog = new ExchangeLog(shared.exchanges, config.path, shared.onExchange);
  const route = new Route({
    path: config.path,
    eraChoice: chooseEra(eras, outbounds, config, shared, transport),
    outbounds,
    ticker: shared.ticker,
    limits: {
      totalMs: config.timeouts.totalMs,
      maxExchanges: limits.exchanges,
      maxListeners: limits.listeners,
    },
    forwardsCredentials: config.backend.authorization === 'forward',
    cache,
    record: (exchange, status, outcome) => exchangeLog.record(exchange, status, outcome),
    onFault: shared.onFault,
  });
  return { route, clientSides: ERAS.map((era) => era.openClientSide(clientSide)), transport, cache };
}

/** The eras that a backend may speak: all, unless the configuration pins one by its name, a revision or a transport. */
function erasOf({ era: setting, transport }: BackendConfig): readonly Era[] {
  const pinned = ({ name, revisions }: Era): boolean =>
    setting === 'auto' || setting === name || revisions.includes(setting);
  const reachable = ({ transports }: Era): boolean => transport === 'auto' || transports.includes(transport);
  return ERAS.filter((era) => pinned(era) && reachable(era));
}

/** @throws Error where the gateway speaks no era that the backend may speak */
function chooseEra(
  eras: readonly Era[],
  outbounds: readonly Outbound[],
  { path, backend, timeouts }: RouteConfig,
  { log, ticker, onFault }: SharedParts,
  transport: Transport,
): EraChoice {
  const [first, second] = eras;
  const [side] = outbounds;
  const name = backendName(backend);
  if (first === undefined || side === undefined)
    throw new Error(`route ${path}: this gateway does not speak the era "${backend.era}"`);
  const { probeMs: timeoutMs, startMs } = timeouts;
  const probeOptions = { name, transport, ticker, ownInfo: OWN_INFO, timeoutMs, startMs };
  const onAbsent = (reason: string): void => log.warn({ route: path, backend: name, reason }, ABSENT);
  if (second === undefined) {
    // A handshake would open a session that nobody asked for, and a program is started for the first request alone.
    if (first.name !== 'modern' || backend.command !== undefined) return new PinnedEra(side);
    const check = async (): Promise<void> => {
      const { finding } = await first.probe({ ...probeOptions, forwarded: {} });
      if (finding.kind === 'unreachable' || (finding.kind === 'not-spoken' && finding.absent === true))
        onAbsent(finding.reason);
    };
    return new PinnedEra(side, () => void check().catch(onFault));
  }
  return new ProbedEra({
    route: path,
    name,
    sides: outbounds,
    leg: backend.leg,
    probe: async (forwarded) => {
      const { finding } = await findEra(first, second, { ...probeOptions, forwarded });
      return confirmPresence(finding, second, { ...probeOptions, forwarded });
    },
    onAbsent,
    onVerdict: ({ era, reason }) =>
      log.info({ route: path, backend: name, era, reason }, 'era of the backend'),
    onFault,
  });
}
