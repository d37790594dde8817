import {
  type ErrorFrame,
  parseFrame,
  parseLenientFrame,
  type RequestFrame,
  type ResultFrame,
  Rope,
  resultRope,
} from '../../jsonrpc/index.js';
import type { TransportError } from '../errors.js';
import { IGNORE_RESPONSE, type ResponseSink, type UpstreamRequest } from '../transport.js';
import { InFlightRequest, type RequestOwner } from './in-flight-request.js';
import { CANCELLED, INITIALIZE, keyOf, paramOf, traitsOf, withId, withParam } from './messages.js';
import type { ProcessConnection } from './process-connection.js';
import type { StdioSession } from './session.js';
import type { SharedRouting } from './shared-routing.js';

const INITIALIZED = '{"jsonrpc":"2.0","method":"notifications/initialized"}';

/**
 * A legacy server whose one process serves the sessions of all callers. The gateway performs the handshake once, and
 * answers that of each caller with the same result. It declares no capabilities: a server request could not be
 * assigned to a caller.
 */
export class SharedServer implements RequestOwner {
  readonly connection: ProcessConnection<SharedRouting>;
  /** Handshakes of callers that wait for that of the gateway. */
  readonly #waiting = new Set<InFlightRequest>();
  #initializeResult: ResultFrame | undefined;
  readonly #onRefused: () => void;

  /**
   * @param handshake JSON text of the params of `initialize`
   * @param onRefused the server answers it with an error
   */
  constructor(connection: ProcessConnection<SharedRouting>, handshake: string, onRefused: () => void) {
    this.connection = connection;
    this.#onRefused = onRefused;
    connection.request(
      ownRequest(INITIALIZE, handshake),
      {
        ...IGNORE_RESPONSE,
        onMessage: (message) => this.#onInitialized(parseLenientFrame(message) as ResultFrame | ErrorFrame),
        onError: (error) => this.#fail(error),
      },
      undefined,
    );
  }

  /** Opens a session for a caller; its `initialize` is answered once that of the gateway has been. */
  open(
    frame: RequestFrame,
    id: string,
    sink: ResponseSink,
  ): { session: StdioSession; sent: UpstreamRequest } {
    const session = this.connection.routing.join(id);
    const request = this.#ownedRequest(frame, sink, session);
    const result = this.#initializeResult;
    if (result === undefined) this.#waiting.add(request);
    else queueMicrotask(() => request.respond(withId(result, request.id), 'result'));
    return { session, sent: request };
  }

  /** Sends a request of a session. */
  request(frame: RequestFrame, sink: ResponseSink, session: StdioSession): UpstreamRequest {
    if (this.connection.routing.trackSubscription(session, frame))
      return this.connection.request(frame, sink, session);
    const request = this.#ownedRequest(frame, sink, session);
    const empty = resultRope(frame.id, new Rope().push('{}')).toBuffer();
    queueMicrotask(() => request.respond(empty, 'result'));
    return request;
  }

  /**
   * Sends a message of a session that gets no response. Only cancellations mean anything to a shared server.
   * @returns undefined where nothing is sent
   */
  post(message: Rope, sink: ResponseSink, session: StdioSession): UpstreamRequest | undefined {
    const frame = parseLenientFrame(message.toBuffer());
    const cancelled =
      frame.type === 'notification' && frame.method === CANCELLED ? paramOf(frame, 'requestId') : undefined;
    if (cancelled === undefined || frame.type !== 'notification') return undefined;
    for (const request of this.connection.requests.values()) {
      if (request.session !== session || keyOf(request.id) !== keyOf(cancelled)) continue;
      return this.connection.post(new Rope().push(withParam(frame, 'requestId', request.key)), sink);
    }
    return undefined;
  }

  /** Ends a session, and unsubscribes from what it alone was subscribed to. */
  leave(session: StdioSession): void {
    for (const uri of this.connection.routing.leave(session)) {
      const frame = ownRequest('resources/unsubscribe', `{"uri":${JSON.stringify(uri)}}`);
      this.connection.request(frame, IGNORE_RESPONSE, session);
    }
  }

  onAborted(request: InFlightRequest): void {
    if (request.session !== undefined && request.isHandshake) this.leave(request.session);
    if (this.#waiting.delete(request) && this.#waiting.size === 0) this.connection.abandonHandshake();
  }

  onBackpressure(): void {}

  /** A request that the gateway answers itself. */
  #ownedRequest(frame: RequestFrame, sink: ResponseSink, session: StdioSession): InFlightRequest {
    const { id, method } = frame;
    return new InFlightRequest(this, sink, { id, key: '', method, traits: traitsOf(frame), session });
  }

  #onInitialized(frame: ResultFrame | ErrorFrame): void {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    if (frame.type === 'error') this.#onRefused();
    else {
      this.#initializeResult = frame;
      this.connection.post(new Rope().push(INITIALIZED), IGNORE_RESPONSE);
    }
    for (const request of waiting) request.respond(withId(frame, request.id), frame.type);
    if (frame.type === 'error') this.connection.refuseHandshake();
  }

  #fail(error: TransportError): void {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const request of waiting) request.fail(error);
  }
}

/** @param params JSON text */
function ownRequest(method: string, params: string): RequestFrame {
  const text = `{"jsonrpc":"2.0","id":0,"method":"${method}","params":${params}}`;
  return parseFrame(Buffer.from(text)) as RequestFrame;
}
