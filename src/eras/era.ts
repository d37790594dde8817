import type { HttpCall } from '../downstream/http-call.js';
import type { SseMessageResponse, SseStreamResponse } from '../downstream/http-sse-responses.js';
import type { RouteService } from '../exchange/route-service.js';
import type { Batch, Frame } from '../jsonrpc/index.js';

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

/** A GET that opens the event stream of an HTTP+SSE client. */
export interface StreamCall extends HttpCall {
  readonly response: SseStreamResponse;
}

/** A POST of an HTTP+SSE client. */
export interface MessageCall extends HttpCall {
  readonly response: SseMessageResponse;
}

/** The side that talks to clients on HTTP+SSE, the transport of 2024-11-05, on one route. */
export interface SseInbound {
  /** @param messagesPath where the client is to send its messages: path of a URL on the stream's origin */
  open(call: StreamCall, messagesPath: string): void;
  /** @param sessionId of the stream, as the client was told it */
  post(
    route: RouteService,
    call: MessageCall,
    sessionId: string | undefined,
    body: Frame | Batch,
  ): Promise<void>;
  /** Ends all streams. */
  close(): Promise<void>;
}
