import type { BackendConfig } from '../config/index.js';
import type { Ticker } from '../exchange/ticker.js';
import { HttpSseTransport } from '../transports/http-sse/transport.js';
import { StreamableHttpTransport } from '../transports/streamable-http.js';
import type { Transport } from '../transports/transport.js';

export interface TransportLimits {
  /** Longest time for making a connection, in milliseconds. */
  readonly connectMs: number;
  /** Longest silence in the middle of an answer, in milliseconds. */
  readonly idleMs: number;
  /** Largest message. */
  readonly resultBytes: number;
  readonly ticker: Ticker;
  /** Told, in words that go with the backend's name, of what the backend does wrong and the gateway puts up with. */
  readonly onQuirk?: (what: string) => void;
}

/** Makes the transport that a route's backend is configured for. */
export function openTransport(backend: BackendConfig, limits: TransportLimits): Transport {
  const options = {
    ...limits,
    url: backend.url,
    hostHeader: backend.hostHeader,
    headers: Object.entries(backend.headers).flat(),
  };
  if (backend.transport === 'http-sse') {
    return new HttpSseTransport({
      ...options,
      messagesUrl: backend.messagesUrl,
      endpointMs: limits.connectMs,
    });
  }
  return new StreamableHttpTransport(options);
}

/** How messages to people name a backend: by its origin, since paths and queries hold keys at times. */
export function backendName(backend: BackendConfig): string {
  return new URL(backend.url).origin;
}
