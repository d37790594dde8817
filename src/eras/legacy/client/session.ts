import { randomUUID } from 'node:crypto';
import type { HttpResponse } from '../../../downstream/http-response.js';
import type { ClientResponse } from '../../../downstream/response.js';
import type { Caller } from '../../../exchange/caller.js';
import type { Channel, ClientAnswer, ServerMessage, ServerRequest } from '../../../exchange/channel.js';
import type {
  ClientSession,
  SealedBackendSession,
  SessionBinding,
} from '../../../exchange/client-session.js';
import { ServerRequestRefused } from '../../../exchange/errors.js';
import type { Exchange } from '../../../exchange/exchange.js';
import type { ForwardedHeaders } from '../../../exchange/forwarded-headers.js';
import type { LogLevel } from '../../../exchange/log-levels.js';
import { type ErrorFrame, type RequestId, type ResultFrame, Rope } from '../../../jsonrpc/index.js';
import { neutralClientCapabilities } from '../wire/client-capabilities.js';
import { knowsNotification } from '../wire/downgrade.js';
import { featuresFor, NEWEST_LEGACY, type RevisionFeatures } from '../wire/revisions.js';
import {
  downgradeServerRequest,
  type EncodedServerRequest,
  encodeServerRequest,
  missingCapability,
} from '../wire/server-requests.js';
import { PendingServerRequests } from './pending-server-requests.js';
import type { SessionClaims } from './session-claims.js';
import { SessionOwner } from './session-owner.js';
import { SessionStreams, type SessionStreamsOptions } from './session-streams.js';

export interface ClientSessionOptions extends SessionStreamsOptions {
  /** Longest time for the answer to a server request, in milliseconds. */
  readonly answerTimeoutMs: number;
}

/** The session of a legacy client in this process: its claims, its streams, and the requests in flight. */
export class LegacyClientSession implements ClientSession {
  readonly claims: SessionClaims;
  readonly features: RevisionFeatures;
  readonly owner: SessionOwner;
  readonly streams: SessionStreams;
  readonly #options: ClientSessionOptions;
  #token = '';
  #binding: SessionBinding | undefined;
  #logLevel: LogLevel | undefined;
  #lastUsedAt = performance.now();
  #inFlight: Map<RequestId, Exchange> | undefined;
  #serverRequests: PendingServerRequests | undefined;

  constructor(claims: SessionClaims, options: ClientSessionOptions) {
    this.claims = claims;
    this.features = featuresFor(claims.revision);
    this.owner = new SessionOwner(claims.principal, claims.owner);
    this.streams = new SessionStreams(this.features, { ...options, principal: claims.principal }, () =>
      this.#onListening(),
    );
    this.#options = options;
  }

  /** The sealed id; empty until the handshake is done. */
  get token(): string {
    return this.#token;
  }

  setToken(token: string): void {
    this.#token = token;
  }

  get backendSession(): SealedBackendSession | undefined {
    return this.claims.backendSession;
  }

  get binding(): SessionBinding | undefined {
    return this.#binding;
  }

  bind(binding: SessionBinding | undefined): void {
    this.#binding = binding;
  }

  /** On the monotonic clock. */
  get lastUsedAt(): number {
    return this.#lastUsedAt;
  }

  touch(): void {
    this.#lastUsedAt = performance.now();
  }

  /** Sets the lowest level of the log messages that the client wants. */
  setLogLevel(level: LogLevel): void {
    this.#logLevel = level;
  }

  get listening(): boolean {
    return this.streams.getStream !== undefined;
  }

  /** Whether a request is in flight, or a client reads the standalone GET stream. */
  get busy(): boolean {
    const { getStream } = this.streams;
    return (getStream !== undefined && !getStream.disconnected) || this.#inFlight !== undefined;
  }

  /** Whether a request is in flight. */
  get calling(): boolean {
    return this.#inFlight !== undefined;
  }

  #onListening(): void {
    if (!this.listening) this.touch();
    this.#binding?.onListening();
  }

  /** The way to the client for messages outside any request. */
  get channel(): Channel {
    return new SessionChannel(this);
  }

  caller(forwarded: ForwardedHeaders): Caller {
    const { revision, clientInfo, capabilities, neutralCapabilities } = this.claims;
    return {
      era: 'legacy',
      revision,
      principal: this.owner.principal,
      clientInfo,
      capabilities,
      neutralCapabilities,
      logLevel: this.#logLevel,
      forwarded,
      session: this,
    };
  }

  /** @returns false if another request in flight has the id */
  begin(id: RequestId, exchange: Exchange): boolean {
    this.#inFlight ??= new Map();
    if (this.#inFlight.has(id)) return false;
    this.#inFlight.set(id, exchange);
    return true;
  }

  finish(id: RequestId): void {
    this.#inFlight?.delete(id);
    if (this.#inFlight?.size === 0) this.#inFlight = undefined;
    this.touch();
  }

  inFlight(id: RequestId): Exchange | undefined {
    return this.#inFlight?.get(id);
  }

  /**
   * Sends a server's request to the client on a stream, under the server's own id.
   * @throws ServerRequestRefused
   */
  ask(request: ServerRequest, stream: ClientResponse | undefined): Promise<ClientAnswer> {
    // Capabilities of a later revision count if the client declares them.
    const declared = neutralClientCapabilities(this.claims.capabilities, NEWEST_LEGACY);
    const missing = missingCapability(request, declared);
    if (missing !== undefined) return Promise.reject(undeclared(missing));
    if (stream === undefined || !stream.acceptsEvents || stream.done) {
      return Promise.reject(
        new ServerRequestRefused('the client holds no stream that could carry the request'),
      );
    }
    this.#serverRequests ??= new PendingServerRequests(
      this.#options.answerTimeoutMs,
      () => this.streams.getStream,
    );
    return this.#serverRequests.ask(downgradeServerRequest(request, this.features), stream);
  }

  /**
   * Sends a server's request that belongs to no request of the client: on the standalone GET stream, or else on that of a
   * request in flight, during which the server most likely sent it.
   * @throws ServerRequestRefused
   */
  askOutside(request: ServerRequest): Promise<ClientAnswer> {
    if (request.task !== undefined) return this.#askForTask(request, request.task);
    const { getStream } = this.streams;
    const unavailable = getStream === undefined || getStream.detached;
    const [exchange] = unavailable ? (this.#inFlight?.values() ?? []) : [];
    return exchange === undefined ? this.ask(request, getStream) : exchange.ask(request);
  }

  /** Sends the request of a modern server's task to a client that does not wait for the result of the task. */
  async #askForTask(neutral: ServerRequest, task: string): Promise<ClientAnswer> {
    return this.ask(this.encode(neutral, task).request, this.streams.getStream);
  }

  /**
   * A modern server's request in the client's revision.
   * @param task the task that it belongs to
   * @throws ServerRequestRefused
   */
  encode(neutral: ServerRequest, task: string | undefined): EncodedServerRequest {
    const missing = missingCapability(neutral, this.claims.neutralCapabilities);
    if (missing !== undefined) throw undeclared(missing);
    return encodeServerRequest(neutral, { features: this.features, newElicitationId: randomUUID, task });
  }

  /** Whether a server waits for this answer of the client. */
  expects(frame: ResultFrame | ErrorFrame): boolean {
    return this.#serverRequests?.expects(frame) === true;
  }

  /**
   * Hands the client's answer to the server that waits for it; an unexpected one is dropped.
   * @param forwarded headers that the answer came with
   */
  answer(frame: ResultFrame | ErrorFrame, forwarded: ForwardedHeaders): void {
    this.#serverRequests?.answer(frame, forwarded);
  }

  /** Cancels a server request. */
  withdraw(id: RequestId, reason: string): void {
    this.#serverRequests?.withdraw(id, reason);
  }

  /** Writes a notification of the server to a stream of the client. */
  notify(message: ServerMessage, stream: ClientResponse | undefined): boolean {
    if (message.method === 'notifications/cancelled') this.#serverRequests?.noteCancellation(message);
    if (stream === undefined || !knowsNotification(message, this.features)) return true;
    return stream.writeEvent(new Rope().push(message.bytes));
  }

  /** Ends requests, server requests and streams. The backend session is ended by its binding. */
  close(reason: string): void {
    for (const exchange of this.#inFlight?.values() ?? []) exchange.cancel(reason);
    this.#serverRequests?.withdrawAll(reason);
    this.streams.close();
  }
}

function undeclared(capability: string): ServerRequestRefused {
  return new ServerRequestRefused(`the client did not declare ${capability}`);
}

/** The standalone GET stream of a session, while the client holds one. */
class SessionChannel implements Channel {
  readonly #session: LegacyClientSession;

  constructor(session: LegacyClientSession) {
    this.#session = session;
  }

  notify(message: ServerMessage): boolean {
    return this.#session.notify(message, this.#stream);
  }

  onDrain(resume: () => void): void {
    const stream = this.#stream;
    if (stream === undefined) resume();
    else stream.onDrain(resume);
  }

  ask(request: ServerRequest): Promise<ClientAnswer> {
    return this.#session.askOutside(request);
  }

  get #stream(): HttpResponse | undefined {
    return this.#session.streams.getStream;
  }
}
