import type { Inbound } from '../eras/index.js';
import type { RouteService } from '../exchange/route-service.js';

/** A route as the HTTP server knows it. */
export interface Endpoint {
  readonly service: RouteService;
  readonly inbounds: readonly Inbound[];
  /** Whether the caller's credentials go on to the backend. */
  readonly forwardAuthorization: boolean;
}
