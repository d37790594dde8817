import type { Era } from '../era.js';
import { ModernOutbound } from './backend/outbound.js';
import { probe } from './backend/probe.js';
import { openClientSide } from './client/client-side.js';
import { discoverRequest } from './wire/discover.js';
import { MODERN_VERSIONS } from './wire/names.js';

/** The era without sessions: `_meta` on every request, `server/discover`, multi round-trip requests. */
export const modern: Era = {
  name: 'modern',
  revisions: MODERN_VERSIONS,
  transports: ['streamable-http', 'stdio'],
  openClientSide,
  openBackendSide: (options) => new ModernOutbound(options),
  probe,
  firstRequest: discoverRequest,
};
