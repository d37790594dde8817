import { parseLenientFrame, type Rope } from '../../jsonrpc/index.js';
import { TransportError } from '../errors.js';
import type { ResponseSink, Transport, UpstreamRequest } from '../transport.js';
import type { Conversation } from './conversation.js';
import type { Processes } from './processes.js';
import { SharedRouting } from './shared-routing.js';
import { synthesizeFailure, synthesizeResponse } from './synthetic-response.js';

/** All requests to one process, which is ended with the transport: to try something out on. */
export class ProbeTransport implements Transport {
  readonly #processes: Processes;
  readonly #onClosed: () => void;
  #process: Conversation | undefined;

  constructor(processes: Processes, onClosed: () => void) {
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
      if (this.#process === undefined || this.#process.over) {
        this.#process = this.#processes.start(
          (talk) => new SharedRouting(talk),
          () => {},
        );
      }
      return frame.type === 'request'
        ? this.#process.request(frame, sink, undefined)
        : this.#process.post(body, sink);
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
