import type { Ticker } from '../exchange/ticker.js';
import type { Connections } from './connections.js';

export interface HttpLimits {
  /** Longest silence in the middle of a JSON body, in milliseconds. */
  readonly idleMs: number;
  /** Greatest length in bytes of a JSON body and of one event. */
  readonly resultBytes: number;
  readonly ticker: Ticker;
}

/** Where a transport's requests go, and what their answers teach it. */
export interface HttpTarget {
  readonly options: HttpLimits;
  readonly origin: string;
  /** With the query. */
  readonly path: string;
  readonly connections: Connections;
  /** @returns whether the request is to be sent again, to what {@link HttpTarget.path} is by now */
  learnPath(method: string, path: string, status: number): boolean;
  /** @returns the headers with which to send a request again that was answered with 406; undefined to leave it at that */
  learnAccept(headers: readonly string[]): string[] | undefined;
}

/** One address of a backend that learns nothing: redirects are followed each time. */
export class FixedTarget implements HttpTarget {
  readonly options: HttpLimits;
  readonly origin: string;
  readonly path: string;
  readonly connections: Connections;

  constructor(url: URL, connections: Connections, options: HttpLimits) {
    this.options = options;
    this.origin = url.origin;
    this.path = url.pathname + url.search;
    this.connections = connections;
  }

  learnPath(): boolean {
    return false;
  }

  learnAccept(): undefined {
    return undefined;
  }
}
