import { randomUUID } from 'node:crypto';
import { readEventId } from '../../../downstream/event-id.js';
import type { HttpResponse } from '../../../downstream/http-response.js';
import type { ReplayBudget } from '../../../downstream/replay-budget.js';
import type { Recorder, ReplayStream, StreamOwner } from '../../../downstream/replay-stream.js';
import type { ClientResponse } from '../../../downstream/response.js';
import { SessionReplay } from '../../../downstream/session-replay.js';
import type { Caller } from '../../../exchange/caller.js';
import type { Channel, ClientAnswer, ServerMessage, ServerRequest } from '../../../exchange/channel.js';
import type { ClientCapabilities } from '../../../exchange/client-capabilities.js';
import type {
  ClientSession,
  SealedBackendSession,
  SessionBinding,
} from '../../../exchange/client-session.js';
import type { Principal } from '../../../exchange/credentials.js';
import { ServerRequestRefused } from '../../../exchange/errors.js';
import type { Exchange } from '../../../exchange/exchange.js';
import type { ForwardedHeaders } from '../../../exchange/forwarded-headers.js';
import type { LogLevel } from '../../../exchange/log-levels.js';
import type { Revision } from '../../../exchange/revision.js';
import { type ErrorFrame, type RequestId, type ResultFrame, Rope } from '../../../jsonrpc/index.js';
import { neutralClientCapabilities } from '../wire/client-capabilities.js';
import { knowsNotification } from '../wire/downgrade.js';
import { featuresFor, NEWEST_LEGACY } from '../wire/revisions.js';
import { downgradeServerRequest, encodeServerRequest, missingCapability } from '../wire/server-requests.js';
import { PendingServerRequests } from './pending-server-requests.js';

/** What the sealed session id holds: all that a process needs to serve a session that it has never seen. */
export interface SessionClaims {
  readonly route: string;
  readonly revision: Revision;
  readonly principal: Principal;
  /** Whose the credential of the handshake is by its own words; undefined where it tells nothing. */
  readonly owner: string | undefined;
  /** JSON text of the client's Implementation object. */
  readonly clientInfo: string | undefined;
  readonly capabilities: ClientCapabilities;
  readonly neutralCapabilities: ClientCapabilities;
  readonly backendSession: SealedBackendSession | undefined;
}

export interface ClientSessionOptions {
  /** The time that a person has for the answer to a question, in milliseconds. */
  readonly questionMs: number;
  /** Where what clients may miss is kept; undefined where nothing is. */
  readonly replay?: ReplayBudget | undefined;
  /** How long one connection is held for a client that is told to come back, in milliseconds; as long as it lasts without. */
  readonly holdMs?: number | undefined;
}

/** How long after a refused credential another one is waited for: people log in meanwhile. */
const LOGIN_MS = 15 * 60_000;

/** Renewed credentials that are remembered; older ones are tried on the backend again. */
const MAX_RENEWALS = 8;

/** A legacy client's session while this process knows of it: what its token says, and what happens on it now. */
export class LegacyClientSession implements ClientSession, Recorder {
  readonly facts: SessionClaims;
  #token = '';
  #binding: SessionBinding | undefined;
  #logLevel: LogLevel | undefined;
  #lastUsedAt = performance.now();
  readonly #options: ClientSessionOptions;
  /** Whose the session is now. */
  #principal: Principal;
  #owner: string | undefined;
  /** Other credentials of the same owner. */
  #principals: Set<Principal> | undefined;
  #challengedAt = Number.NEGATIVE_INFINITY;
  #stream: HttpResponse | undefined;
  #inFlight: Map<RequestId, Exchange> | undefined;
  #questions: PendingServerRequests | undefined;
  #replay: SessionReplay | undefined;

  constructor(facts: SessionClaims, options: ClientSessionOptions) {
    this.facts = facts;
    this.#principal = facts.principal;
    this.#owner = facts.owner;
    this.#options = options;
  }

  /** The sealed id that the client sends; empty until the handshake is done. */
  get token(): string {
    return this.#token;
  }

  /** The handshake is done, and the client knows the session by this id. */
  named(token: string): void {
    this.#token = token;
  }

  get backendSession(): SealedBackendSession | undefined {
    return this.facts.backendSession;
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

  /** The session is in use now. */
  touch(): void {
    this.#lastUsedAt = performance.now();
  }

  /** The client asks for log messages of this level and above. */
  setLogLevel(level: LogLevel): void {
    this.#logLevel = level;
  }

  get listening(): boolean {
    return this.#stream !== undefined;
  }

  /** Whether something happens on the session, so that it is not idle. */
  get busy(): boolean {
    return (this.#stream !== undefined && !this.#stream.disconnected) || this.#inFlight !== undefined;
  }

  /** Whether requests are in flight. */
  get calling(): boolean {
    return this.#inFlight !== undefined;
  }

  /** Whether the session is this principal's. */
  isOf(principal: Principal): boolean {
    return this.#principal === principal || this.#principals?.has(principal) === true;
  }

  /** Whether a credential is its owner's by its own words. */
  isOfOwner(owner: string | undefined): boolean {
    return owner !== undefined && owner === this.#owner;
  }

  /** The backend refused the credential of a request on the session, or wants one. */
  challenge(): void {
    this.#challengedAt = performance.now();
  }

  /**
   * Whether a credential may be what the client comes back with after a login. Only who had the session could bring the
   * challenge about. One that names another owner is none of this session's.
   */
  awaits(owner: string | undefined): boolean {
    if (performance.now() - this.#challengedAt > LOGIN_MS) return false;
    return owner === undefined || this.#owner === undefined;
  }

  /** The backend took another credential after it had refused the one before, which has lost the session. */
  handOver(principal: Principal, owner: string | undefined): void {
    this.#principal = principal;
    this.#owner = owner;
    this.#principals = undefined;
    this.#challengedAt = Number.NEGATIVE_INFINITY;
  }

  /** The backend took another credential for this session: the same owner's, renewed. */
  adopt(principal: Principal): void {
    this.#principals ??= new Set();
    const [oldest] = this.#principals;
    if (this.#principals.size >= MAX_RENEWALS && oldest !== undefined) this.#principals.delete(oldest);
    this.#principals.add(principal);
  }

  /** The channel for messages outside any request: the GET stream, while the client holds one. */
  get channel(): Channel {
    return new SessionChannel(this, () => this.#stream);
  }

  caller(forwarded: ForwardedHeaders): Caller {
    const { facts } = this;
    return {
      era: 'legacy',
      revision: facts.revision,
      principal: this.#principal,
      clientInfo: facts.clientInfo,
      capabilities: facts.capabilities,
      neutralCapabilities: facts.neutralCapabilities,
      logLevel: this.#logLevel,
      forwarded,
      session: this,
    };
  }

  /** @returns false for an id that is in use by another request in flight */
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

  /** Whether the streams of its requests may be taken up again. */
  get resumable(): boolean {
    return this.#options.replay !== undefined && featuresFor(this.facts.revision).resumableStreams;
  }

  /** How long one connection of an answer is held, where the client knows how to come back for the rest. */
  get holdMs(): number | undefined {
    return featuresFor(this.facts.revision).primingEvents ? this.#options.holdMs : undefined;
  }

  /** Begins to record a stream whose client can resume it. */
  record(owner: StreamOwner): ReplayStream | undefined {
    const { replay } = this.#options;
    if (replay === undefined) return undefined;
    this.#replay ??= new SessionReplay(replay);
    const { primingEvents } = featuresFor(this.facts.revision);
    const kind = owner === this.#stream ? 'session' : 'request';
    return this.#replay.begin(owner, { kind, primed: primingEvents });
  }

  /**
   * Takes up the stream that an event id is of, on the connection of a GET.
   * @returns false for an id whose stream is not known, or of which something is missing
   */
  resume(lastEventId: string, response: HttpResponse): boolean {
    const id = readEventId(lastEventId);
    const stream = id === undefined ? undefined : this.#replay?.find(id.key);
    if (id !== undefined && stream?.has(id.seq)) {
      // Such an answer has the client stop asking, as the standard of event streams has it.
      if (stream.finished && id.seq === stream.last) {
        stream.fetched();
        response.endEmpty(204);
      } else response.resume(stream, id.seq);
      return true;
    }
    // Whatever the client missed, the session's own stream can only be begun anew.
    if (id?.kind !== 'session') return false;
    this.listen(response);
    return true;
  }

  /**
   * Takes the GET stream; an older one, most likely of a connection that broke unseen, makes way. Where the client is
   * known to have lost that, it is told what came meanwhile, though it did not ask.
   */
  listen(stream: HttpResponse): void {
    const older = this.#stream;
    if (older?.detached === true && older.continueOn(stream)) return;
    this.#stream = stream;
    if (this.resumable) stream.makeResumable(this, this.holdMs);
    stream.openStream();
    older?.endEmpty(200);
    this.#binding?.onListening();
    stream.onAbort(() => {
      if (this.#stream !== stream) return;
      this.#stream = undefined;
      this.touch();
      this.#binding?.onListening();
    });
  }

  /**
   * Puts a server's request to the client on a stream, under the server's own id.
   * @throws ServerRequestRefused
   */
  ask(question: ServerRequest, stream: ClientResponse | undefined): Promise<ClientAnswer> {
    // Whoever declares what came after its revision has it all the same.
    const declared = neutralClientCapabilities(this.facts.capabilities, NEWEST_LEGACY);
    const lacking = missingCapability(question, declared);
    if (lacking !== undefined) {
      return Promise.reject(new ServerRequestRefused(`the client did not declare ${lacking}`));
    }
    if (stream === undefined || !stream.acceptsEvents || stream.done) {
      return Promise.reject(
        new ServerRequestRefused('the client holds no stream that could carry the request'),
      );
    }
    this.#questions ??= new PendingServerRequests(this.#options.questionMs, () => this.#stream);
    return this.#questions.ask(downgradeServerRequest(question, featuresFor(this.facts.revision)), stream);
  }

  /**
   * Puts a question that came outside any request to the client: on its GET stream, or for want of one on that of a
   * call in flight, whose server it may well be that asks.
   * @throws ServerRequestRefused
   */
  askOutside(question: ServerRequest): Promise<ClientAnswer> {
    if (question.task !== undefined) return this.#askOfTask(question, question.task);
    const unreadable = this.#stream === undefined || this.#stream.detached;
    const [call] = unreadable ? (this.#inFlight?.values() ?? []) : [];
    return call === undefined ? this.ask(question, this.#stream) : call.ask(question);
  }

  /** Puts what a task of a server of the other era wants to know to a client that does not wait for its result. */
  async #askOfTask(asked: ServerRequest, task: string): Promise<ClientAnswer> {
    const { revision, neutralCapabilities } = this.facts;
    const lacking = missingCapability(asked, neutralCapabilities);
    if (lacking !== undefined) throw new ServerRequestRefused(`the client did not declare ${lacking}`);
    const { request } = encodeServerRequest(asked, {
      features: featuresFor(revision),
      newElicitationId: randomUUID,
      task,
    });
    return this.ask(request, this.#stream);
  }

  /** Whether a server waits for this answer of the client. */
  expects(frame: ResultFrame | ErrorFrame): boolean {
    return this.#questions?.expects(frame) === true;
  }

  /** Takes the client's answer to a server request, and what it came with; one that nobody waits for is dropped. */
  answer(frame: ResultFrame | ErrorFrame, forwarded: ForwardedHeaders): void {
    this.#questions?.answer(frame, forwarded);
  }

  /** Stops waiting for the answer to a question, and tells the client so. */
  withdraw(id: RequestId, reason: string): void {
    this.#questions?.withdraw(id, reason);
  }

  /** Puts a notification of the server on a stream of the client. */
  notify(message: ServerMessage, stream: ClientResponse | undefined): boolean {
    if (message.method === 'notifications/cancelled') this.#questions?.noteCancellation(message);
    if (stream === undefined || !knowsNotification(message, featuresFor(this.facts.revision))) return true;
    return stream.writeEvent(new Rope().push(message.bytes));
  }

  /** Ends what happens on the session. The backend is told by whoever ends the affinity. */
  close(reason: string): void {
    for (const exchange of this.#inFlight?.values() ?? []) exchange.cancel(reason);
    this.#questions?.withdrawAll(reason);
    this.#replay?.close();
    this.#stream?.endEmpty(200);
    this.#stream = undefined;
  }
}

/** The way to a legacy client for what belongs to no request. */
class SessionChannel implements Channel {
  readonly #session: LegacyClientSession;
  readonly #stream: () => ClientResponse | undefined;

  constructor(session: LegacyClientSession, stream: () => ClientResponse | undefined) {
    this.#session = session;
    this.#stream = stream;
  }

  notify(message: ServerMessage): boolean {
    return this.#session.notify(message, this.#stream());
  }

  onDrain(resume: () => void): void {
    const stream = this.#stream();
    if (stream === undefined) resume();
    else stream.onDrain(resume);
  }

  ask(question: ServerRequest): Promise<ClientAnswer> {
    return this.#session.askOutside(question);
  }
}
