import { randomUUID } from 'node:crypto';
import { parseLenientFrame, type RequestFrame, type Rope } from '../../jsonrpc/index.js';
import { TransportError } from '../errors.js';
import { synthesizeFailure, synthesizeResponse } from '../synthetic-response.js';
import type { ResponseSink, Transport, UpstreamRequest } from '../transport.js';
import { INITIALIZE, paramOf } from './messages.js';
import { ProbeTransport } from './probe-transport.js';
import type { ProcessConnection } from './process-connection.js';
import { ProcessLimit } from './process-limit.js';
import { ProcessPool, type ProcessPoolOptions } from './process-pool.js';
import type { StdioSession } from './session.js';
import { SessionRouting } from './session-routing.js';
import { SharedRouting } from './shared-routing.js';
import { SharedServer } from './shared-server.js';

export interface StdioOptions extends ProcessPoolOptions {
  /** Whether all sessions share one process. */
  readonly shared: boolean;
  /**
   * JSON text of the params of the gateway's own `initialize`, for a process that sessions share.
   * @param revision JSON text of the one that the caller asks for; undefined unless the server has refused the newest
   */
  readonly handshake: (revision: string | undefined) => string;
  /** How long a shared process is kept while idle, in milliseconds. */
  readonly idleMs: number;
}

/** A session, and the process that it is on. */
interface SessionEntry {
  readonly connection: ProcessConnection;
  readonly session: StdioSession;
  request(frame: RequestFrame, sink: ResponseSink): UpstreamRequest;
  post(message: Rope, sink: ResponseSink): UpstreamRequest;
  end(): void;
}

/** Longest interval between checks for idle processes. */
const IDLE_CHECK_MS = 5_000;

/**
 * Emulates Streamable HTTP for a server on standard streams: `initialize` starts a process and assigns a session id, a
 * GET opens the standalone stream of the session, a DELETE ends it, and an id whose process is gone gets a 404. Requests
 * without a session go to one process that all callers share.
 */
export class StdioTransport implements Transport {
  readonly ownsSessions = true;
  readonly #options: StdioOptions;
  readonly #processes: ProcessPool;
  readonly #sessions = new Map<string, SessionEntry>();
  /** Of probe transports that are open. */
  readonly #probePools = new Set<ProcessPool>();
  /** The process for requests without a session. */
  #sessionless: ProcessConnection | undefined;
  #sharedServer: SharedServer | undefined;
  /** The shared server has refused the newest revision. */
  #refusedNewest = false;
  #idleTimer: NodeJS.Timeout | undefined;

  constructor(options: StdioOptions) {
    this.#options = options;
    this.#processes = new ProcessPool(options);
  }

  send(
    method: 'POST' | 'GET' | 'DELETE',
    headers: readonly string[],
    body: Rope | undefined,
    sink: ResponseSink,
  ): UpstreamRequest {
    const at = headers.indexOf('mcp-session-id');
    const entry = at === -1 ? undefined : this.#sessions.get(headers[at + 1] as string);
    if (at !== -1 && entry === undefined) return synthesizeResponse(sink, 404, 'Session not found');
    if (method === 'POST' && body !== undefined) return this.#post(body, sink, entry);
    if (entry === undefined) return synthesizeResponse(sink, 405, 'there is no stream without a session');
    if (method === 'GET') return entry.session.openStream(sink);
    this.dropSession(entry.session.id);
    return synthesizeResponse(sink, 200, '');
  }

  /** Ends a session, and the process that it has to itself. */
  dropSession(sessionId: string): void {
    const entry = this.#sessions.get(sessionId);
    this.#sessions.delete(sessionId);
    entry?.end();
  }

  reportDeviation(what: string): void {
    this.#options.onDeviation?.(what);
  }

  probeTransport(): Transport {
    // A limit of its own: probes are short, and must not fail because the processes of sessions use up the other one.
    const pool = new ProcessPool({ ...this.#options, limit: new ProcessLimit(2) });
    this.#probePools.add(pool);
    return new ProbeTransport(pool, () => this.#probePools.delete(pool));
  }

  async close(): Promise<void> {
    clearInterval(this.#idleTimer);
    await Promise.all([this.#processes, ...this.#probePools].map((pool) => pool.close()));
  }

  #post(body: Rope, sink: ResponseSink, entry: SessionEntry | undefined): UpstreamRequest {
    const frame = parseLenientFrame(body.toBuffer());
    if (frame.type !== 'request') {
      const target = entry ?? this.#sessionless;
      return target === undefined ? synthesizeResponse(sink, 202, '') : target.post(body, sink);
    }
    try {
      if (entry !== undefined) return entry.request(frame, sink);
      if (frame.method !== INITIALIZE) return this.#requestWithoutSession(frame, sink);
      return this.#options.shared ? this.#openOnSharedServer(frame, sink) : this.#open(frame, sink);
    } catch (error) {
      if (!(error instanceof TransportError)) throw error;
      return synthesizeFailure(sink, error);
    }
  }

  /** Opens a session on a process of its own. */
  #open(frame: RequestFrame, sink: ResponseSink): UpstreamRequest {
    const id = randomUUID();
    const connection = this.#processes.start(
      (context) => new SessionRouting(id, context),
      () => this.#sessions.delete(id),
    );
    const { session } = connection.routing;
    this.#sessions.set(id, {
      connection,
      session,
      request: (request, to) => connection.request(request, to, session),
      post: (message, to) => connection.post(message, to),
      end: () => this.#processes.end(connection, 'its session has ended'),
    });
    return connection.request(frame, sink, session);
  }

  #openOnSharedServer(frame: RequestFrame, sink: ResponseSink): UpstreamRequest {
    const id = randomUUID();
    const server = this.#runningSharedServer(frame);
    const { session, sent } = server.open(frame, id, sink);
    this.#sessions.set(id, {
      connection: server.connection,
      session,
      request: (request, to) => server.request(request, to, session),
      post: (message, to) => server.post(message, to, session) ?? synthesizeResponse(to, 202, ''),
      end: () => server.leave(session),
    });
    return sent;
  }

  /** @param frame the `initialize` of a caller */
  #runningSharedServer(frame: RequestFrame): SharedServer {
    if (this.#sharedServer !== undefined && !this.#sharedServer.connection.over) return this.#sharedServer;
    const connection = this.#startShared(() => {
      if (this.#sharedServer?.connection === connection) this.#sharedServer = undefined;
      for (const [id, entry] of this.#sessions)
        if (entry.connection === connection) this.#sessions.delete(id);
    });
    const revision = this.#refusedNewest ? paramOf(frame, 'protocolVersion') : undefined;
    this.#sharedServer = new SharedServer(connection, this.#options.handshake(revision), () => {
      this.#refusedNewest = true;
    });
    return this.#sharedServer;
  }

  #requestWithoutSession(frame: RequestFrame, sink: ResponseSink): UpstreamRequest {
    if (this.#sessionless === undefined || this.#sessionless.over) {
      const connection = this.#startShared(() => {
        if (this.#sessionless === connection) this.#sessionless = undefined;
      });
      this.#sessionless = connection;
    }
    return this.#sessionless.request(frame, sink, undefined);
  }

  #startShared(onLost: () => void): ProcessConnection<SharedRouting> {
    const checkMs = Math.min(this.#options.idleMs, IDLE_CHECK_MS);
    this.#idleTimer ??= setInterval(() => this.#endIdle(), checkMs).unref();
    return this.#processes.start((context) => new SharedRouting(context), onLost);
  }

  /** Ends shared processes that have been idle for too long. */
  #endIdle(): void {
    const before = performance.now() - this.#options.idleMs;
    for (const connection of [this.#sessionless, this.#sharedServer?.connection])
      if (connection !== undefined && connection.idleSince < before)
        this.#processes.end(connection, 'it was idle');
  }
}
