import { QuestionRefused } from '../../exchange/errors.js';
import type { Exchange } from '../../exchange/exchange.js';
import type {
  BackendAffinity,
  Caller,
  Channel,
  Answer as ClientAnswer,
  ClientCapabilities,
  ClientSession,
  ForwardedHeaders,
  LogLevel,
  Principal,
  Question,
  Revision,
  SealedBackendSession,
  ServerMessage,
} from '../../exchange/types.js';
import { type ErrorFrame, type RequestId, type ResultFrame, Rope } from '../../jsonrpc/index.js';
import type { Answer } from '../../transports/answer.js';
import { ClientQuestions } from './client-questions.js';

/** What the sealed session id holds: all that a process needs to serve a session that it has never seen. */
export interface SessionFacts {
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

/** Renewed credentials that are remembered; older ones are tried on the backend again. */
const MAX_RENEWALS = 8;

/** Which capability a server request needs; requests that are not listed are passed on unasked. */
const NEEDS: Readonly<Record<string, string>> = {
  'elicitation/create': 'elicitation',
  'sampling/createMessage': 'sampling',
  'roots/list': 'roots',
};

/** A legacy client's session while this process knows of it: what its token says, and what happens on it now. */
export class LegacyClientSession implements ClientSession {
  readonly facts: SessionFacts;
  /** The sealed id that the client sends; empty until the handshake is done. */
  token = '';
  affinity: BackendAffinity | undefined;
  logLevel: LogLevel | undefined;
  lastUsedAt = performance.now();
  readonly #questionMs: number;
  #principals: Set<Principal> | undefined;
  #stream: Answer | undefined;
  #inFlight: Map<RequestId, Exchange> | undefined;
  #questions: ClientQuestions | undefined;

  /** @param questionMs the time that a person has for an answer, in milliseconds */
  constructor(facts: SessionFacts, questionMs: number) {
    this.facts = facts;
    this.#questionMs = questionMs;
  }

  get backendSession(): SealedBackendSession | undefined {
    return this.facts.backendSession;
  }

  get listening(): boolean {
    return this.#stream !== undefined;
  }

  /** Whether something happens on the session, so that it is not idle. */
  get busy(): boolean {
    return this.#stream !== undefined || this.#inFlight !== undefined;
  }

  /** Whether requests are in flight. */
  get calling(): boolean {
    return this.#inFlight !== undefined;
  }

  /** Whether the session is this principal's. */
  isOf(principal: Principal): boolean {
    return this.facts.principal === principal || this.#principals?.has(principal) === true;
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
      principal: facts.principal,
      clientInfo: facts.clientInfo,
      capabilities: facts.capabilities,
      neutralCapabilities: facts.neutralCapabilities,
      logLevel: this.logLevel,
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
    this.lastUsedAt = performance.now();
  }

  inFlight(id: RequestId): Exchange | undefined {
    return this.#inFlight?.get(id);
  }

  /** Takes the GET stream; an older one, most likely of a connection that broke unseen, makes way. */
  listen(stream: Answer): void {
    const older = this.#stream;
    this.#stream = stream;
    older?.endEmpty(200);
    this.affinity?.listen(true);
    stream.onGone(() => {
      if (this.#stream !== stream) return;
      this.#stream = undefined;
      this.lastUsedAt = performance.now();
      this.affinity?.listen(false);
    });
  }

  /**
   * Puts a server's request to the client on a stream, under the server's own id.
   * @throws QuestionRefused
   */
  ask(question: Question, stream: Answer | undefined): Promise<ClientAnswer> {
    const needed = NEEDS[question.method];
    if (needed !== undefined && !(needed in this.facts.capabilities.value)) {
      return Promise.reject(new QuestionRefused(`the client did not declare ${needed}`));
    }
    if (stream === undefined || !stream.takesEvents || stream.done) {
      return Promise.reject(new QuestionRefused('the client holds no stream that could carry the request'));
    }
    this.#questions ??= new ClientQuestions(this.#questionMs, () => this.#stream);
    return this.#questions.ask(question, stream);
  }

  /**
   * Puts a question that came outside any request to the client: on its GET stream, or for want of one on that of a
   * call in flight, whose server it may well be that asks.
   * @throws QuestionRefused
   */
  askOutside(question: Question): Promise<ClientAnswer> {
    const [call] = this.#stream === undefined ? (this.#inFlight?.values() ?? []) : [];
    return call === undefined ? this.ask(question, this.#stream) : call.ask(question);
  }

  /** Takes the client's answer to a server request; one that nobody waits for is dropped. */
  answer(frame: ResultFrame | ErrorFrame): void {
    this.#questions?.answer(frame);
  }

  /** Stops waiting for the answer to a question, and tells the client so. */
  withdraw(id: RequestId, reason: string): void {
    this.#questions?.withdraw(id, reason);
  }

  /** Puts a notification of the server on a stream of the client. */
  notify(message: ServerMessage, stream: Answer | undefined): boolean {
    if (message.method === 'notifications/cancelled') this.#questions?.noteCancellation(message);
    return stream?.event(new Rope().push(message.bytes)) ?? true;
  }

  /** Ends what happens on the session. The backend is told by whoever ends the affinity. */
  close(reason: string): void {
    for (const exchange of this.#inFlight?.values() ?? []) exchange.cancel(reason);
    this.#questions?.withdrawAll(reason);
    this.#stream?.endEmpty(200);
    this.#stream = undefined;
  }
}

/** The way to a legacy client for what belongs to no request. */
class SessionChannel implements Channel {
  readonly #session: LegacyClientSession;
  readonly #stream: () => Answer | undefined;

  constructor(session: LegacyClientSession, stream: () => Answer | undefined) {
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

  ask(question: Question): Promise<ClientAnswer> {
    return this.#session.askOutside(question);
  }
}
