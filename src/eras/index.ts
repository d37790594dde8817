import type { Sealer } from '../exchange/seal.js';
import type { Inbound, SseInbound } from './era.js';
import { SseClients } from './legacy/client/http-sse.js';
import { LegacyInbound } from './legacy/client/inbound.js';
import { ClientSessions, type ClientSessionsOptions } from './legacy/client/sessions.js';
import { ModernInbound } from './modern/client/inbound.js';
import type { ParkingOptions } from './modern/client/parked-calls.js';
import type { TaskBoardOptions } from './modern/client/tasks.js';

export type { Inbound, MessageCall, SseInbound, StreamCall } from './era.js';

export interface InboundOptions {
  readonly route: string;
  readonly sealer: Sealer;
  readonly sessions: ClientSessionsOptions;
  readonly parking: Omit<ParkingOptions, 'route'>;
  readonly tasks: Omit<TaskBoardOptions, 'route'>;
  /** Whether clients may come by HTTP+SSE. */
  readonly legacySse: boolean;
}

export interface Inbounds {
  /**
   * The eras that clients may speak. A request goes to the first that claims it; the last one takes what nobody claimed,
   * and says what is wrong with it.
   */
  readonly inbounds: readonly Inbound[];
  /** For clients on HTTP+SSE; undefined where the route has no place for them. */
  readonly sse: SseInbound | undefined;
}

/** The sides that talk to the clients of a route. */
export function createInbounds({
  route,
  sealer,
  sessions,
  parking,
  tasks,
  legacySse,
}: InboundOptions): Inbounds {
  const clientSessions = new ClientSessions(route, sealer, sessions);
  const legacy = new LegacyInbound(clientSessions);
  return {
    inbounds: [new ModernInbound({ route, ...parking }, { route, ...tasks }), legacy],
    sse: legacySse ? new SseClients(legacy, clientSessions, sessions.max) : undefined,
  };
}
