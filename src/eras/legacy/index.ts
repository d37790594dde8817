import type { Era } from '../era.js';
import { LegacyOutbound } from './backend/outbound.js';
import { probe } from './backend/probe.js';
import { openClientSide } from './client/client-side.js';
import { initializeRequest } from './wire/initialize-request.js';
import { LEGACY_REVISIONS } from './wire/revisions.js';

/** The era of the `initialize` handshake and of sessions. */
export const legacy: Era = {
  name: 'legacy',
  revisions: LEGACY_REVISIONS,
  transports: ['streamable-http', 'http-sse', 'stdio'],
  openClientSide,
  openBackendSide: (options) => new LegacyOutbound(options),
  probe,
  firstRequest: initializeRequest,
};
