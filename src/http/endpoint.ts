import type { ResourceMetadata } from '../authorization/resource-metadata.js';
import type { HttpCall } from '../downstream/http-call.js';
import type { Inbound, SseInbound } from '../eras/index.js';
import type { RouteService } from '../exchange/route-service.js';
import type { Batch, Frame } from '../jsonrpc/index.js';
import { endRefused, MISPLACED_BATCH } from './errors.js';
import type { Forwarding } from './forwarding.js';
import type { Receiver } from './post.js';

/** A route as the HTTP server knows it. */
export interface Endpoint {
  readonly service: RouteService;
  readonly inbounds: readonly Inbound[];
  /** For clients on HTTP+SSE; undefined where the route does not serve them. */
  readonly sse: SseInbound | undefined;
  /** Selects what of a request goes to the backend. */
  readonly forwarding: Forwarding;
  /** Protected resource metadata; undefined where the backend gets no credentials of callers. */
  readonly metadata: ResourceMetadata | undefined;
}

/** Passes each message to the era that claims it. */
export class ByEra implements Receiver {
  readonly #endpoint: Endpoint;

  constructor(endpoint: Endpoint) {
    this.#endpoint = endpoint;
  }

  pass(message: Frame | Batch, call: HttpCall): Promise<void> {
    const { service, inbounds } = this.#endpoint;
    const inbound = claimant(inbounds, call, message);
    if (message.type === 'batch' && inbound !== inbounds.at(-1)) {
      endRefused(call.response, MISPLACED_BATCH);
      return Promise.resolve();
    }
    return inbound.post(service, call, message);
  }
}

/** The first side that claims a message; the last one if none does. */
function claimant(inbounds: readonly Inbound[], call: HttpCall, message: Frame | Batch): Inbound {
  for (const inbound of inbounds) if (inbound.claimsPost(call, message)) return inbound;
  return inbounds.at(-1) as Inbound;
}
