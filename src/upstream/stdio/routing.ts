import type { NotificationFrame, RequestFrame, Rope } from '../../jsonrpc/index.js';
import type { Backpressure } from '../backpressure.js';
import type { Consumer } from './consumer.js';
import type { InFlightRequest } from './in-flight-request.js';

/** What a {@link Routing} needs of the connection to its process. */
export interface RoutingContext {
  /** In flight, by {@link keyOf} the id that the process knows. */
  readonly requests: ReadonlyMap<string, InFlightRequest>;
  /** The request in flight, if there is exactly one: messages that name no request most likely belong to it. */
  readonly onlyRequest: InFlightRequest | undefined;
  /** Passes on a notification to a request, unless that is backlogged. */
  deliver(request: InFlightRequest, message: Buffer): void;
  /** The server has ended the subscription that a request opened. */
  finish(request: InFlightRequest): void;
  /** Answers a request of the server. */
  write(message: Rope): void;
  /** Refuses a request of the server: no client can answer it. */
  refuse(frame: RequestFrame): void;
  onBackpressure(consumer: Consumer, backpressure: Backpressure): void;
  /** See {@link Transport.reportDeviation}. */
  reportDeviation(what: string): void;
}

/** Decides to which caller the requests and notifications of a process go. */
export interface Routing {
  /** Whether ids and progress tokens are replaced, since independent callers share the process. */
  readonly renumbers: boolean;
  /** Whether any session is on the process. */
  readonly inUse: boolean;
  onRequest(frame: RequestFrame): void;
  onNotification(frame: NotificationFrame): void;
  /** The process is gone. */
  end(): void;
}
