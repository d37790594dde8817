import type { RouteService } from '../exchange/route-service.js';
import type { Batch, Frame } from '../jsonrpc/index.js';
import type { HttpCall } from '../transports/inbound-call.js';

/** The side of an era that talks to clients, on one route. */
export interface Inbound {
  /** Whether a POST is of this era. */
  claimsPost(call: HttpCall, body: Frame | Batch): boolean;
  post(route: RouteService, call: HttpCall, body: Frame | Batch): Promise<void>;
  /** Whether a GET or DELETE is of this era. */
  claimsOther(call: HttpCall): boolean;
  get(route: RouteService, call: HttpCall): void | Promise<void>;
  delete(route: RouteService, call: HttpCall): Promise<void>;
  /** Brings what lasts beyond requests to its end, while the sessions of backends are still there. */
  drain(): Promise<void>;
  close(): Promise<void>;
}
