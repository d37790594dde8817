import { randomUUID } from 'node:crypto';
import { parseLenientFrame, type RequestFrame, type Rope } from '../../jsonrpc/index.js';
import { TransportError } from '../errors.js';
import type { ResponseSink, Transport, UpstreamRequest } from '../transport.js';
import type { Conversation } from './conversation.js';
import { INITIALIZE, paramOf } from './messages.js';
import { ProbeTransport } from './probe-transport.js';
import { ProcessLimit } from './process-limit.js';
import { Processes, type ProcessesOptions } from './processes.js';
import { OwnRouting } from './routing.js';
import type { StdioSession } from './session.js';
import { SharedRouting } from './shared-routing.js';
import { SharedServer } from './shared-server.js';
import { synthesizeFailure, synthesizeResponse } from './synthetic-response.js';

export interface StdioOptions extends ProcessesOptions {
  /** All sessions are on one process. */
  readonly shared: boolean;
  /**
   * JSON text of the params of `initialize` for a process that all sessions share.
   * @param revision JSON text of the one that a caller asks for, where the server has refused the newest one
   */
  readonly handshake: (revision: string | undefined) => string;
  /** How long a process that several callers share is kept without anything to do, in milliseconds. */
  readonly idleMs: number;
}

/** What a session id stands for. */
interface Place {
  readonly conversation: Conversation;
  readonly session: StdioSession;
  request(frame: RequestFrame, sink: ResponseSink): UpstreamRequest;
  post(message: Rope, sink: ResponseSink): UpstreamRequest;
  end(): void;
}

/** A process that nobody has asked anything is looked for this often. */
const LOOK_EVERY_MS = 5_000;

/**
 * A server on standard streams, acting as if it were reached over HTTP: `initialize` starts a process, which a session
 * id names from then on; a GET opens the stream for what belongs to no request of it, a DELETE ends it, and once it is
 * gone its id is not known any more. Requests without a session go to one process that all callers share.
 */
export class StdioTransport implements Transport {
  readonly ownsSessions = true;
  readonly #options: StdioOptions;
  readonly #processes: Processes;
  readonly #places = new Map<string, Place>();
  /** Of transports to try something out over. */
  readonly #probeTransports = new Set<Processes>();
  #common: Conversation | undefined;
  #server: SharedServer | undefined;
  /** The server that is shared has refused the newest revision. */
  #refusedNewest = false;
  #idle: NodeJS.Timeout | undefined;

  constructor(options: StdioOptions) {
    this.#options = options;
    this.#processes = new Processes(options);
  }

  send(
    method: 'POST' | 'GET' | 'DELETE',
    headers: readonly string[],
    body: Rope | undefined,
    sink: ResponseSink,
  ): UpstreamRequest {
    const at = headers.indexOf('mcp-session-id');
    const place = at === -1 ? undefined : this.#places.get(headers[at + 1] as string);
    if (at !== -1 && place === undefined) return synthesizeResponse(sink, 404, 'Session not found');
    if (method === 'POST' && body !== undefined) return this.#post(body, sink, place);
    if (place === undefined) return synthesizeResponse(sink, 405, 'there is no stream without a session');
    if (method === 'GET') return place.session.listen(sink);
    this.dropSession(place.session.id);
    return synthesizeResponse(sink, 200, '');
  }

  /** Ends a session, and the process that it has to itself. */
  dropSession(sessionId: string): void {
    const place = this.#places.get(sessionId);
    this.#places.delete(sessionId);
    place?.end();
  }

  reportDeviation(what: string): void {
    this.#options.onDeviation?.(what);
  }

  probeTransport(): Transport {
    // Beside the others: what is tried out is gone before it could take a place from them.
    const processes = new Processes({ ...this.#options, limit: new ProcessLimit(2) });
    this.#probeTransports.add(processes);
    return new ProbeTransport(processes, () => this.#probeTransports.delete(processes));
  }

  async close(): Promise<void> {
    clearInterval(this.#idle);
    await Promise.all([this.#processes, ...this.#probeTransports].map((processes) => processes.close()));
  }

  #post(body: Rope, sink: ResponseSink, place: Place | undefined): UpstreamRequest {
    const frame = parseLenientFrame(body.toBuffer());
    if (frame.type !== 'request') {
      const to = place ?? this.#common;
      return to === undefined ? synthesizeResponse(sink, 202, '') : to.post(body, sink);
    }
    try {
      if (place !== undefined) return place.request(frame, sink);
      if (frame.method !== INITIALIZE) return this.#ask(frame, sink);
      return this.#options.shared ? this.#join(frame, sink) : this.#open(frame, sink);
    } catch (error) {
      if (!(error instanceof TransportError)) throw error;
      return synthesizeFailure(sink, error);
    }
  }

  /** A session, on a process of its own. */
  #open(frame: RequestFrame, sink: ResponseSink): UpstreamRequest {
    const id = randomUUID();
    const conversation = this.#processes.start(
      (talk) => new OwnRouting(id, talk),
      () => this.#places.delete(id),
    );
    const { session } = conversation.routing;
    this.#places.set(id, {
      conversation,
      session,
      request: (asked, to) => conversation.request(asked, to, session),
      post: (message, to) => conversation.post(message, to),
      end: () => this.#processes.end(conversation, 'its session has ended'),
    });
    return conversation.request(frame, sink, session);
  }

  /** A session, on the process that all of them share. */
  #join(frame: RequestFrame, sink: ResponseSink): UpstreamRequest {
    const id = randomUUID();
    const server = this.#sharedServer(frame);
    const { session, sent } = server.open(frame, id, sink);
    this.#places.set(id, {
      conversation: server.conversation,
      session,
      request: (asked, to) => server.request(asked, to, session),
      post: (message, to) => server.post(message, to, session) ?? synthesizeResponse(to, 202, ''),
      end: () => server.leave(session),
    });
    return sent;
  }

  #sharedServer(frame: RequestFrame): SharedServer {
    if (this.#server !== undefined && !this.#server.conversation.over) return this.#server;
    const conversation = this.#startShared(() => {
      if (this.#server?.conversation === conversation) this.#server = undefined;
      for (const [id, place] of this.#places)
        if (place.conversation === conversation) this.#places.delete(id);
    });
    const revision = this.#refusedNewest ? paramOf(frame, 'protocolVersion') : undefined;
    const server = new SharedServer(conversation, this.#options.handshake(revision), () => {
      this.#refusedNewest = true;
    });
    this.#server = server;
    return server;
  }

  #ask(frame: RequestFrame, sink: ResponseSink): UpstreamRequest {
    if (this.#common === undefined || this.#common.over) {
      const common = this.#startShared(() => {
        if (this.#common === common) this.#common = undefined;
      });
      this.#common = common;
    }
    return this.#common.request(frame, sink, undefined);
  }

  #startShared(onOver: () => void): Conversation<SharedRouting> {
    this.#idle ??= setInterval(() => this.#look(), Math.min(this.#options.idleMs, LOOK_EVERY_MS)).unref();
    return this.#processes.start((talk) => new SharedRouting(talk), onOver);
  }

  /** Ends what has had nothing to do for long. */
  #look(): void {
    const before = performance.now() - this.#options.idleMs;
    for (const conversation of [this.#common, this.#server?.conversation])
      if (conversation !== undefined && conversation.idleSince < before)
        this.#processes.end(conversation, 'it had nothing to do');
  }
}
