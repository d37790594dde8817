import type { Sealer } from '../exchange/seal.js';
import type { Inbound } from './era.js';
import { ClientSessions, type ClientSessionsOptions } from './legacy/client-sessions.js';
import { LegacyInbound } from './legacy/inbound.js';
import { ModernInbound } from './modern/inbound.js';
import type { ParkingOptions } from './modern/parking.js';
import type { TaskBoardOptions } from './modern/tasks.js';

export type { Inbound } from './era.js';

export interface InboundOptions {
  readonly route: string;
  readonly sealer: Sealer;
  readonly sessions: ClientSessionsOptions;
  readonly parking: Omit<ParkingOptions, 'route'>;
  readonly tasks: Omit<TaskBoardOptions, 'route'>;
}

/**
 * The eras that clients may speak on a route. A request goes to the first that claims it; the last one takes what
 * nobody claimed, and says what is wrong with it.
 */
export function createInbounds({
  route,
  sealer,
  sessions,
  parking,
  tasks,
}: InboundOptions): readonly Inbound[] {
  return [
    new ModernInbound({ route, ...parking }, { route, ...tasks }),
    new LegacyInbound(new ClientSessions(route, sealer, sessions)),
  ];
}
