import type { ClientResponse } from '../../../downstream/response.js';
import type { ServerMessage } from '../../../exchange/channel.js';
import type { Exchange } from '../../../exchange/exchange.js';
import { isLogLevel, type LogLevel, levelReaches } from '../../../exchange/log-levels.js';
import { getMember, type RequestId, Rope, stringOf } from '../../../jsonrpc/index.js';
import { PROTOCOL_NOTIFICATIONS } from '../wire/names.js';

/** Limit of the requests that wait for one call: a retry and its copies. */
export const MAX_PENDING = 256;

/** An HTTP request of the client that waits for the outcome of a call. */
export interface PendingRequest {
  readonly id: RequestId;
  readonly response: ClientResponse;
  /** JSON text. */
  readonly progressToken: string | undefined;
  readonly logLevel: LogLevel | undefined;
}

/** The HTTP requests that wait for one call: the request itself; later a retry, and copies of it. */
export class PendingRequests {
  readonly #onAbort: (left: PendingRequest | undefined) => void;
  #requests: PendingRequest[] = [];

  /** @param onAbort called when the client closes a response, with the first request that still waits, if any */
  constructor(onAbort: (left: PendingRequest | undefined) => void) {
    this.#onAbort = onAbort;
  }

  get size(): number {
    return this.#requests.length;
  }

  add(request: PendingRequest): void {
    this.#requests.push(request);
    request.response.onAbort(() => {
      this.#requests = this.#requests.filter((other) => other !== request);
      this.#onAbort(this.#requests[0]);
    });
  }

  /** Removes and returns all. */
  take(): readonly PendingRequest[] {
    return this.#requests.splice(0);
  }

  /**
   * Writes a notification of the backend to the requests that are to get it.
   * @returns false when a client reads slowly
   */
  notify(message: ServerMessage, exchange: Exchange): boolean {
    let keepsUp = true;
    for (const request of this.#requests) {
      if (!isWanted(message, request, exchange)) continue;
      const reads = request.response.writeEvent(new Rope().push(message.bytes));
      keepsUp = keepsUp && reads;
    }
    return keepsUp;
  }

  onDrain(resume: () => void): void {
    const [request] = this.#requests;
    if (request === undefined) resume();
    else request.response.onDrain(resume);
  }
}

/**
 * Whether a notification belongs on the response of a request: progress if it has a token, log messages from its level on
 * (basic/patterns/progress, server/utilities/logging), and those of extensions and vendors, whose rules are their own. Other
 * notifications of the protocol have a place elsewhere or none. A modern backend has selected them itself.
 */
function isWanted(message: ServerMessage, request: PendingRequest, exchange: Exchange): boolean {
  if (exchange.notes.backendEra === 'modern') return true;
  if (message.method === 'notifications/progress') {
    // The notification has the progress token of the exchange; a copy of the request may have another one.
    return request.progressToken !== undefined && request.progressToken === exchange.progressToken;
  }
  if (message.method !== 'notifications/message') return !PROTOCOL_NOTIFICATIONS.has(message.method);
  const { bytes, params } = message;
  if (request.logLevel === undefined || params === undefined) return false;
  const level = stringOf(bytes, getMember(bytes, params, 'level'));
  return isLogLevel(level) && levelReaches(level, request.logLevel);
}
