import type { ServerDescription } from '../../../exchange/outbound.js';
import type { EraName } from '../../../exchange/revision.js';
import { neutralServerCapabilities, withoutChangeNotifications } from '../wire/server-capabilities.js';
import type { BackendSession } from './session.js';

/** What the server of a session says of itself. */
export function describe(session: BackendSession, callerEra: EraName): ServerDescription {
  const { info, getStreamUnavailable, backend } = session;
  const capabilities =
    getStreamUnavailable || backend.hasNoGetStream
      ? withoutChangeNotifications(info.capabilities)
      : info.capabilities;
  return {
    era: 'legacy',
    capabilities: callerEra === 'legacy' ? capabilities : neutralServerCapabilities(capabilities),
    serverInfo: info.serverInfo,
    instructions: info.instructions,
    ttlMs: 0,
    sessions: session.id !== undefined && info.settled,
    result: info.bytes.subarray(info.result.start, info.result.end),
  };
}
