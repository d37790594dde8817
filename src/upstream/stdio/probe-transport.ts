import { parseLenientFrame, type Rope } from '../../jsonrpc/index.js';
import { TransportError } from '../errors.js';
import { synthesizeFailure, synthesizeResponse } from '../synthetic-response.js';
import type { ResponseSink, Transport, UpstreamRequest } from '../transport.js';
import type { ProcessConnection } from './process-connection.js';
import type { ProcessPool } from './process-pool.js';
import { SharedRouting } from './shared-routing.js';

/** Sends all requests to one process, which is ended with the transport: a probe may crash it. */
export class ProbeTransport implements Transport {
  readonly #processes: ProcessPool;
  readonly #onClosed: () => void;
  #connection: ProcessConnection | undefined;

  constructor(processes: ProcessPool, onClosed: () => void) {
    this.#processes = processes;
    this.#onClosed = onClosed;
  }

  send(
    method: 'POST' | 'GET' | 'DELETE',
    _headers: readonly string[],
    body: Rope | undefined,
    sink: ResponseSink,
  ): UpstreamRequest {
    if (method !== 'POST' || body === undefined) return synthesizeResponse(sink, 405, '');
    const frame = parseLenientFrame(body.toBuffer());
    try {
      if (this.#connection === undefined || this.#connection.over) {
        this.#connection = this.#processes.start(
          (context) => new SharedRouting(context),
          () => {},
        );
      }
      return frame.type === 'request'
        ? this.#connection.request(frame, sink, undefined)
        : this.#connection.post(body, sink);
    } catch (error) {
      if (!(error instanceof TransportError)) throw error;
      return synthesizeFailure(sink, error);
    }
  }

  reportDeviation(): void {}

  async close(): Promise<void> {
    await this.#processes.close();
    this.#onClosed();
  }
}
