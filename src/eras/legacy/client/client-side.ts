import type { ClientSide, ClientSideOptions } from '../../era.js';
import { SseClients } from './http-sse.js';
import { LegacyInbound } from './inbound.js';
import { ClientSessions } from './sessions.js';

export function openClientSide({
  route,
  sealer,
  sessions,
  questions,
  httpSse,
}: ClientSideOptions): ClientSide {
  const open = new ClientSessions(route, sealer, { ...sessions, answerTimeoutMs: questions.timeoutMs });
  const inbound = new LegacyInbound(open);
  return { inbound, sse: httpSse ? new SseClients(inbound, open, { maxSessions: sessions.max }) : undefined };
}
