import {
  type ErrorFrame,
  errorRope,
  type Frame,
  type RequestFrame,
  type RequestId,
  type ResultFrame,
  Rope,
  requestRope,
  resultRope,
} from '../../jsonrpc/index.js';
import type { Backpressure } from '../backpressure.js';
import { TransportError, type TransportFailure } from '../errors.js';
import { synthesizeFailure } from '../synthetic-response.js';
import type { ResponseSink, UpstreamRequest } from '../transport.js';
import { Child, type ChildEnd, type ServerCommand } from './child.js';
import type { ChildLog } from './child-log.js';
import type { Consumer } from './consumer.js';
import { InFlightRequest, type RequestOwner } from './in-flight-request.js';
import type { OversizedLine } from './line-reader.js';
import { Liveness } from './liveness.js';
import {
  asLine,
  cancellation,
  idAtEnds,
  keyOf,
  LISTEN,
  renumbered,
  traitsOf,
  withId,
  withListenId,
} from './messages.js';
import { Outbox } from './outbox.js';
import { OutputParser } from './output-parser.js';
import { OutputPause } from './output-pause.js';
import type { Routing, RoutingContext } from './routing.js';
import type { StdioSession } from './session.js';
import type { StdioTimings } from './timings.js';
import { TrackRecord } from './track-record.js';

export interface ProcessConnectionOptions<R extends Routing> {
  readonly command: ServerCommand;
  /** Longest line of standard output in bytes. */
  readonly lineBytes: number;
  readonly routing: (context: RoutingContext) => R;
  readonly log: ChildLog;
  /** See {@link Transport.reportDeviation}. */
  readonly onDeviation: (what: string) => void;
  /** The process has answered a request other than the handshake, for the first time. */
  readonly onUseful: () => void;
  /**
   * The process is gone or unusable, without having been stopped. Fires once, before requests in flight fail.
   * @param end `failedStart` where it counts against starting the command again
   */
  readonly onLost: (end: { reason: string; failedStart: boolean }) => void;
  /** The process refused the handshake that it was started for. */
  readonly onHandshakeRefused: (reason: string) => void;
  /** Longest time of a call in milliseconds. */
  readonly totalMs: number;
  readonly timings: StdioTimings;
}

const METHOD_NOT_FOUND = -32601;
const ENDED = 'it has just ended';
/** Not used by callers, whose ids are numbers or replaced by numbers. */
const PING_ID = '"eragate-alive"' as RequestId;

/** The JSON-RPC connection to one process: its requests in flight, and the routing of what else it sends. */
export class ProcessConnection<R extends Routing = Routing> implements RequestOwner, RoutingContext {
  readonly routing: R;
  readonly requests = new Map<string, InFlightRequest>();
  readonly #options: ProcessConnectionOptions<R>;
  readonly #child: Child;
  readonly #output: OutputParser;
  readonly #liveness: Liveness;
  readonly #record: TrackRecord;
  readonly #outbox: Outbox;
  readonly #pause: OutputPause;
  #nextId = 1;
  #lastUsedAt = performance.now();
  #stopped = false;
  /** The error for requests in flight, where the process is unusable. */
  #fault: TransportError | undefined;

  constructor(options: ProcessConnectionOptions<R>) {
    const { command, lineBytes, log, timings, totalMs } = options;
    this.#options = options;
    this.#record = new TrackRecord(timings.steadyMs);
    this.routing = options.routing(this);
    this.#output = new OutputParser({
      onFrames: (frames) => this.#takeAll(frames),
      onSkipped: (line) => log.skippedLine(line),
      onNoMessages: () => this.#abandon('it writes lines that are not messages'),
      reportDeviation: (what) => this.reportDeviation(what),
    });
    this.#child = new Child(
      { command, lineBytes, timings },
      {
        onLine: (line) => this.#onLine(line),
        onOversized: (line) => this.#onOversized(line),
        onErrorLine: (line) => log.errorLine(line),
        onGone: (end) => this.#onGone(end),
      },
    );
    this.#outbox = new Outbox(this.#child, () => {
      if (!this.over) this.#abandon('it does not read its standard input');
    });
    this.#pause = new OutputPause(this.#child);
    this.#liveness = new Liveness({
      totalMs,
      pingMs: timings.pingMs,
      ping: () => this.write(requestRope(PING_ID, 'ping', undefined)),
      onDead: (reason) => this.#abandon(reason, 'broken'),
    });
    log.started(this.#child.pid);
  }

  /** Whether nothing can be sent any more. */
  get over(): boolean {
    return this.#stopped || this.#child.gone;
  }

  /** When it was last in use, on the monotonic clock; now, if it is. */
  get idleSince(): number {
    return this.requests.size > 0 || this.routing.inUse ? performance.now() : this.#lastUsedAt;
  }

  /** When it last had a request in flight, on the monotonic clock; infinite while it has one. */
  get unusedSince(): number {
    return this.requests.size > 0 ? Number.POSITIVE_INFINITY : this.#lastUsedAt;
  }

  get onlyRequest(): InFlightRequest | undefined {
    if (this.requests.size !== 1) return undefined;
    const [request] = this.requests.values();
    return request;
  }

  /** @param session the one that the request came on */
  request(frame: RequestFrame, sink: ResponseSink, session: StdioSession | undefined): InFlightRequest {
    this.#pause.end();
    const traits = traitsOf(frame);
    const { renumbers } = this.routing;
    const id = renumbers ? String(this.#nextId++) : frame.id;
    const options = { id: frame.id, key: keyOf(id), method: frame.method, traits, session };
    const request = new InFlightRequest(this, sink, options);
    if (this.over) {
      queueMicrotask(() => request.fail(new TransportError('unreachable', ENDED)));
      return request;
    }
    this.requests.set(request.key, request);
    const body = renumbers ? renumbered(frame, id, traits) : new Rope().push(frame.bytes);
    request.withdraw = this.#child.write(asLine(body), () => {
      request.withdraw = undefined;
    });
    return request;
  }

  /** Sends a notification, or the response to a server request; the sink gets status 202 once it is written. */
  post(message: Rope, sink: ResponseSink): UpstreamRequest {
    if (this.over) return synthesizeFailure(sink, new TransportError('unreachable', ENDED));
    return this.#outbox.post(message, sink);
  }

  write(message: Rope): void {
    this.#outbox.write(message);
  }

  refuse({ id, method }: RequestFrame): void {
    const message = `there is no client that could answer ${method.slice(0, 100)}`;
    this.write(errorRope(id, METHOD_NOT_FOUND, message));
  }

  reportDeviation(what: string): void {
    this.#options.onDeviation(what);
  }

  onAborted(request: InFlightRequest): void {
    if (this.#pause.isFor(request)) this.#pause.end();
    this.requests.delete(request.key);
    this.#lastUsedAt = performance.now();
    if (!this.over) this.#liveness.check(request.sentAt);
    if (request.withdraw?.() === true) return;
    // No closed stream tells the server (basic/transports/stdio, "Cancellation").
    if (request.session === undefined) this.write(cancellation(request));
    else if (request.isHandshake) this.abandonHandshake();
  }

  /** Stops a process whose handshake is no longer waited for. */
  abandonHandshake(): void {
    if (!this.#record.hasAnswered) this.#abandon('it did not answer in time', 'broken');
  }

  /** Stops a process that refused the handshake. */
  refuseHandshake(): void {
    this.#options.onHandshakeRefused('it refused the handshake');
  }

  onBackpressure(consumer: Consumer, backpressure: Backpressure): void {
    this.#pause.apply(consumer, backpressure, () => {
      const alone = this.requests.size === 0 || this.onlyRequest === consumer;
      return alone && !this.routing.renumbers;
    });
  }

  deliver(request: InFlightRequest, message: Buffer): void {
    if (!request.backlogged || this.#pause.isFor(request)) request.deliver(message);
  }

  finish(request: InFlightRequest): void {
    this.requests.delete(request.key);
    request.end();
  }

  /** Ends the process within a few seconds; requests in flight fail at once. */
  stop(reason: string): Promise<void> {
    this.#end(this.#fault ?? new TransportError('broken', reason));
    return this.#child.stop();
  }

  #onLine(line: Buffer): void {
    if (this.#stopped) return;
    this.#liveness.noteOutput();
    this.#output.push(line);
  }

  /** Turns a fault of the gateway into one of this process: nothing above would catch it. */
  #takeAll(frames: readonly Frame[]): void {
    try {
      for (const frame of frames) this.#take(frame);
    } catch (error) {
      this.#abandon(`the gateway failed on its output: ${(error as Error).message}`);
    }
  }

  #take(frame: Frame): void {
    if (frame.type === 'notification') this.routing.onNotification(frame);
    else if (frame.type !== 'request') this.#onResponse(frame);
    else if (frame.method === 'ping' && this.routing.inUse)
      this.write(resultRope(frame.id, new Rope().push('{}')));
    else this.routing.onRequest(frame);
  }

  #onResponse(frame: ResultFrame | ErrorFrame): void {
    const request = frame.id === undefined ? this.onlyRequest : this.requests.get(keyOf(frame.id));
    // The request was aborted, or never made.
    if (request === undefined) return;
    this.requests.delete(request.key);
    this.#lastUsedAt = performance.now();
    this.#record.noteAnswer(this.#lastUsedAt);
    if (!this.#record.isUseful && !request.isHandshake) {
      this.#record.noteUseful();
      this.#options.onUseful();
    }
    const withCallersId = request.method === LISTEN ? withListenId : withId;
    const message = this.routing.renumbers ? withCallersId(frame, request.id) : frame.bytes;
    request.respond(message, frame.type);
    if (request.isHandshake && request.session !== undefined && frame.type === 'error')
      this.refuseHandshake();
  }

  #onOversized({ head, tail, byteLength }: OversizedLine): void {
    const id = idAtEnds(head, tail);
    const request = id === undefined ? undefined : this.requests.get(keyOf(id));
    if (request === undefined) {
      this.#options.log.oversizedLine(byteLength);
      return;
    }
    this.requests.delete(request.key);
    const { lineBytes } = this.#options;
    request.fail(new TransportError('too-large', `a message of ${byteLength} bytes, more than ${lineBytes}`));
  }

  /** Stops a process that runs but is unusable. */
  #abandon(reason: string, failure: TransportFailure = 'unusable'): void {
    this.#options.log.unusable(reason);
    this.#fault = new TransportError(failure, reason);
    this.#options.onLost({ reason, failedStart: !this.#record.isUseful });
  }

  #onGone({ reason, started }: ChildEnd): void {
    if (this.#stopped) {
      this.#options.log.ended(reason);
      return;
    }
    this.#options.log.endedUnexpectedly(reason);
    this.#fault = new TransportError(this.#record.failureOf(performance.now(), { started }), reason);
    // First, since callers whose requests fail may send them again at once, to another process.
    this.#options.onLost({
      reason,
      failedStart: this.#record.isFailedStart({ inFlight: this.requests.size }),
    });
    this.#end(this.#fault);
  }

  #end(error: TransportError): void {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#liveness.stop();
    const requests = [...this.requests.values()];
    this.requests.clear();
    this.routing.end();
    // The process cannot have read these, so another one may get them.
    const unsent = new TransportError('unreachable', error.message);
    for (const request of requests) request.fail(request.withdraw?.() === true ? unsent : error);
    this.#outbox.fail(error);
  }
}
