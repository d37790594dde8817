import type { Ticker } from '../exchange/utils/ticker.js';
import type { Connections } from './connections.js';

export interface HttpLimits {
  /** Longest silence in the middle of a JSON body, in milliseconds. */
  readonly idleMs: number;
  /** Greatest length in bytes of a JSON body and of one event. */
  readonly resultBytes: number;
  readonly ticker: Ticker;
}

/** The URL that requests go to, and what responses teach about it. */
export interface HttpTarget {
  readonly options: HttpLimits;
  readonly origin: string;
  /** Path and query. */
  readonly path: string;
  readonly connections: Connections;
  /** @returns whether to send the request again, to the present {@link HttpTarget.path} */
  learnPath(method: string, path: string, status: number): boolean;
  /** @returns headers with which to repeat a request that got a 406; undefined to accept the refusal */
  learnAccept(headers: readonly string[]): string[] | undefined;
}

/** A URL that learns nothing: redirects are followed each time. */
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
