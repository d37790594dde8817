import { CODE } from '../../../exchange/errors.js';
import { type ForwardedHeaders, NO_FORWARDED } from '../../../exchange/forwarded-headers.js';
import { isRepeatable } from '../../../exchange/repeatable-methods.js';
import { NOWHERE, UnorderedSet, type UnorderedSetItem } from '../../../exchange/utils/unordered-set.js';
import {
  type ErrorFrame,
  errorObjectRope,
  errorRope,
  type NotificationFrame,
  notificationRope,
  type RequestFrame,
  type RequestId,
  type ResultFrame,
  Rope,
  requestRope,
  resultRope,
} from '../../../jsonrpc/index.js';
import type { Backpressure } from '../../../upstream/backpressure.js';
import { CookieJar } from '../../../upstream/cookies.js';
import { addForwarded } from '../../../upstream/request-headers.js';
import type { ResponseHeaders } from '../../../upstream/response-headers.js';
import { NO_ID, RpcCall, type RpcListener, type RpcReply, SILENT } from '../../../upstream/rpc-call.js';
import type { InitializeInfo } from '../wire/initialize-info.js';
import type { LegacyBackend } from './legacy-backend.js';
import { getHeaders, postHeaders } from './request-headers.js';
import type { SessionListener, SessionWatcher } from './session-events.js';
import { StandaloneGetStream, type Watch } from './standalone-get-stream.js';

/** The id of `initialize`. Ids begin at 1, since some servers take 0 for a message without an id. */
export const INITIALIZE_ID = 1;

/** A request in flight on a backend session. */
export interface SessionCall {
  /** The id, and the progress token, under which the backend knows it. */
  readonly id: number;
  readonly rpc: RpcCall;
  readonly done: Promise<RpcReply>;
}

/** A request among those in flight on a session. */
class CallInFlight implements SessionCall, RpcListener, UnorderedSetItem {
  place = NOWHERE;
  readonly id: number;
  readonly rpc: RpcCall;
  readonly listener: RpcListener;
  readonly #session: BackendSession;

  constructor(session: BackendSession, id: number, listener: RpcListener) {
    this.#session = session;
    this.id = id;
    this.listener = listener;
    this.rpc = new RpcCall(String(id), session.backend.ticker, this);
  }

  get done(): Promise<RpcReply> {
    return this.rpc.reply;
  }

  onNotification(frame: NotificationFrame): Backpressure | undefined {
    return this.listener.onNotification(frame);
  }

  onRequest(frame: RequestFrame): void {
    this.listener.onRequest(frame);
  }

  onReply(reply: RpcReply): void {
    this.#session.finish(this, reply);
  }
}

/** How long a message that nobody waits for (a notification, an answer to a question) may take. */
const AWAY_MS = 10_000;
/** Answers to requests of the server that are on their way to it at a time; others wait, up to so many. */
const MAX_RESPONSES = 64;
const MAX_WAITING_RESPONSES = 1_024;

export interface PostOptions {
  /** The message may reach the backend twice. */
  readonly repeatable?: boolean;
  /** Longest time for the backend to take the message, in milliseconds. */
  readonly limitMs?: number;
}

/** Of a session that another process opened. */
export interface RestoredState {
  readonly firstRequestId?: number;
  /** Value of the `Cookie` header. */
  readonly cookies?: string | undefined;
}

const NO_WATCHERS: readonly SessionWatcher[] = [];

/**
 * A session with a legacy backend, from its handshake to its end. Ids of requests are the gateway's own, from 1 and
 * never used twice: SDK servers cannot cancel the request 0, and hang or refuse when two in flight share an id.
 */
export class BackendSession {
  readonly backend: LegacyBackend;
  readonly info: InitializeInfo;
  /** The backend's session id; undefined where it keeps no sessions. */
  readonly id: string | undefined;
  /** The backend does not know the session any more. */
  lost = false;
  lastUsedAt = performance.now();
  #cookies: CookieJar | undefined;
  /** Of every POST, name and value in turn; the session's own stand last. */
  readonly #headers: readonly string[];
  #nextId: number;
  #calls: UnorderedSet<CallInFlight> | undefined;
  #holder: RpcListener | undefined;
  #watchers: readonly SessionWatcher[] = NO_WATCHERS;
  #getStream: StandaloneGetStream | undefined;
  #withoutGetStream = false;
  #responses = 0;
  #waitingResponses: (() => void)[] | undefined;

  constructor(
    backend: LegacyBackend,
    info: InitializeInfo,
    id: string | undefined,
    { firstRequestId = INITIALIZE_ID + 1, cookies }: RestoredState = {},
  ) {
    this.backend = backend;
    this.info = info;
    this.id = id;
    this.#headers = postHeaders(info.revision, id);
    this.#nextId = firstRequestId;
    if (cookies !== undefined) this.#cookies = new CookieJar(cookies);
  }

  /** The call that has the session to itself: what comes outside any call belongs to it. */
  get holder(): RpcListener | undefined {
    return this.#holder;
  }

  /** Hands what comes outside any call to a listener, in place of the one before, until it is disposed of. */
  hold(listener: RpcListener): Disposable {
    this.#holder = listener;
    return {
      [Symbol.dispose]: () => {
        if (this.#holder === listener) this.#holder = undefined;
      },
    };
  }

  /** Those that observe the session. */
  get watchers(): readonly SessionWatcher[] {
    return this.#watchers;
  }

  /** Adds an observer of the session until it is disposed of. */
  observe(watcher: SessionWatcher): Disposable {
    this.#watchers = [...this.#watchers, watcher];
    return {
      [Symbol.dispose]: () => {
        this.#watchers = this.#watchers.filter((other) => other !== watcher);
      },
    };
  }

  /** Headers of a POST on this session, name and value in turn. */
  headers(forwarded: ForwardedHeaders): readonly string[] {
    // Most requests of a session have the same ones, and one list serves them all.
    return forwarded === NO_FORWARDED && this.#cookies === undefined
      ? this.#headers
      : this.#withForwarded([...this.#headers], forwarded);
  }

  #withForwarded(headers: string[], forwarded: ForwardedHeaders): string[] {
    addForwarded(headers, forwarded);
    const { cookies } = this;
    if (cookies !== undefined) headers.push('cookie', cookies);
    return headers;
  }

  /** An id for a request that is sent as a message by itself. */
  takeId(): number {
    return this.#nextId++;
  }

  /**
   * Sends a request.
   * @param params makes the params, given the id and progress token that the request will have
   */
  request(
    method: string,
    params: (id: number) => Rope | undefined,
    forwarded: ForwardedHeaders,
    listener: RpcListener,
  ): SessionCall {
    const id = this.#nextId++;
    const call = new CallInFlight(this, id, listener);
    this.#calls ??= new UnorderedSet();
    this.#calls.add(call);
    const body = requestRope(id, method, params(id));
    call.rpc.post({
      transport: this.backend.transport,
      headers: this.headers(forwarded),
      body,
      repeatable: isRepeatable(method),
    });
    return call;
  }

  /** Takes up the broken answer stream of a call again (basic/transports, "Resumability and Redelivery"). */
  resumeCall(id: number, lastEventId: string, forwarded: ForwardedHeaders, listener: RpcListener): RpcCall {
    const { transport, ticker } = this.backend;
    const rpc = new RpcCall(String(id), ticker, listener);
    return rpc.resume(transport, [...this.getHeaders(forwarded), 'last-event-id', lastEventId]);
  }

  /** Headers of a GET on this session. */
  getHeaders(forwarded: ForwardedHeaders): string[] {
    return this.#withForwarded(getHeaders(this.info.revision, this.id), forwarded);
  }

  /** Sends a notification; resolves when the backend took it, also when it did so with an error. */
  notify(
    method: string,
    params: Rope | undefined,
    forwarded: ForwardedHeaders,
    limitMs = AWAY_MS,
  ): Promise<RpcReply> {
    return this.post(notificationRope(method, params), forwarded, {
      repeatable: isRepeatable(method),
      limitMs,
    });
  }

  /**
   * Answers a server request; never throws.
   * @param onReply told what the backend makes of that
   */
  answer(
    id: RequestId,
    answer: { result: Buffer } | { error: Buffer },
    forwarded: ForwardedHeaders,
    onReply?: (reply: RpcReply) => void,
  ): void {
    const body =
      'result' in answer
        ? resultRope(id, new Rope().push(answer.result))
        : errorObjectRope(id, new Rope().push(answer.error));
    this.#respond(body, forwarded, onReply);
  }

  /** Refuses a server request. */
  refuse(
    id: RequestId,
    message: string,
    forwarded: ForwardedHeaders,
    code: number = CODE.methodNotFound,
  ): void {
    this.#respond(errorRope(id, code, message), forwarded);
  }

  /** A server that takes no answers, and asks and asks, is not to have the gateway pile them up. */
  #respond(body: Rope, forwarded: ForwardedHeaders, onReply?: (reply: RpcReply) => void): void {
    const send = (): void => {
      this.#responses++;
      const answered = this.post(body, forwarded).finally(() => {
        this.#responses--;
        this.#waitingResponses?.shift()?.();
      });
      void answered.then(onReply);
    };
    if (this.#responses < MAX_RESPONSES) send();
    else {
      this.#waitingResponses ??= [];
      if (this.#waitingResponses.length < MAX_WAITING_RESPONSES) this.#waitingResponses.push(send);
    }
  }

  /**
   * Sends a message that has no response of its own.
   */
  async post(
    body: Rope,
    forwarded: ForwardedHeaders,
    { repeatable = false, limitMs = AWAY_MS }: PostOptions = {},
  ): Promise<RpcReply> {
    const { transport, ticker } = this.backend;
    const rpc = new RpcCall(NO_ID, ticker, SILENT);
    const timer = setTimeout(
      () => rpc.abort(`a message was not taken within ${Math.round(limitMs)} ms`),
      limitMs,
    ).unref();
    try {
      const reply = await rpc.post({ transport, headers: this.headers(forwarded), body, repeatable }).reply;
      if (reply.kind !== 'failed') this.keepCookies(reply.headers);
      return reply;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Opens the stream for messages outside any request; it is kept open until {@link BackendSession.closeGetStream}. */
  openGetStream(listener: SessionListener, forwarded: ForwardedHeaders): void {
    this.#withoutGetStream = this.backend.hasNoGetStream;
    if (this.#getStream !== undefined || this.#withoutGetStream) return;
    this.#getStream = new StandaloneGetStream(this, listener, forwarded, (frame) => this.#takeStray(frame));
    this.#getStream.open();
  }

  /** The client showed other credentials than those that the stream was opened with. */
  renewGetStream(forwarded: ForwardedHeaders): void {
    this.#getStream?.renew(forwarded);
  }

  /** Resolves when what the backend sends outside any call can come in; at once where there is no such stream. */
  getStreamSettled(): Promise<void> | undefined {
    return this.#getStream?.settled;
  }

  /** While the stream for messages outside any call is open. */
  get watch(): Watch | undefined {
    return this.#getStream?.watch;
  }

  /** Nothing can come in outside any call: the backend has no such stream, or refuses it. */
  get unreadable(): boolean {
    return this.#getStream === undefined ? this.#withoutGetStream : this.#getStream.unreadable;
  }

  closeGetStream(): void {
    this.#getStream?.close();
    this.#getStream = undefined;
  }

  /** The call that is alone in flight: what is said meanwhile is most likely of it. */
  get onlyCall(): RpcListener | undefined {
    return this.#calls?.size === 1 ? this.#calls.find(() => true)?.listener : undefined;
  }

  /** The call whose progress token this is, as JSON text. */
  callOf(progressToken: string | undefined): CallInFlight | undefined {
    return progressToken === undefined ? undefined : this.#withId(progressToken);
  }

  /** Session affinity of load balancers in front of the backend rides on cookies; they stay within the session. */
  keepCookies(headers: ResponseHeaders): void {
    if (headers['set-cookie'] === undefined) return;
    this.#cookies ??= new CookieJar();
    this.#cookies.keep(headers);
  }

  /** Value of the `Cookie` header; undefined where the backend set none. */
  get cookies(): string | undefined {
    return this.#cookies?.header;
  }

  /** A request of the gateway's own, which may take as long as a handshake. */
  async ask(method: string, params: Rope | undefined, forwarded: ForwardedHeaders): Promise<RpcReply> {
    const { handshakeMs } = this.backend;
    const { rpc, done } = this.request(method, () => params, forwarded, SILENT);
    const expire = (): void => rpc.abort(`no answer to ${method} within ${handshakeMs} ms`);
    const timer = setTimeout(expire, handshakeMs).unref();
    return done.finally(() => clearTimeout(timer));
  }

  /** Finds out whether the backend still knows the session, which is dropped if it does not (basic/utilities/ping). */
  async check(forwarded: ForwardedHeaders): Promise<void> {
    const reply = await this.ask('ping', undefined, forwarded);
    if (this.backend.losses.saysLost(reply, this.id)) this.drop();
  }

  /** The backend does not know the session any more: nothing is asked of it again, and it need not be ended. */
  drop(): void {
    if (this.lost) return;
    this.lost = true;
    this.closeGetStream();
    if (this.id !== undefined) this.backend.transport.dropSession?.(this.id);
    for (const watcher of this.#watchers) watcher.onLost();
  }

  /** Ends the session at the backend; never throws, and takes no longer than a few seconds. */
  async end(forwarded: ForwardedHeaders): Promise<void> {
    this.closeGetStream();
    this.#calls?.each(({ rpc }) => rpc.abort('session ended'));
    if (this.id === undefined || this.lost) return;
    this.lost = true;
    await this.backend.deleteSession(this.headers(forwarded));
  }

  /** A call has its reply. */
  finish(call: CallInFlight, reply: RpcReply): void {
    this.#calls?.remove(call);
    if (this.#calls?.size === 0) this.#calls = undefined;
    this.lastUsedAt = performance.now();
    if (reply.kind !== 'failed' && reply.headers['set-cookie'] !== undefined) this.keepCookies(reply.headers);
  }

  #takeStray(frame: ResultFrame | ErrorFrame): void {
    if (frame.id !== undefined) this.#withId(frame.id)?.rpc.take(frame);
  }

  /** @param token an id as the backend writes it: a number, or a number in a string */
  #withId(token: string): CallInFlight | undefined {
    const wanted = Number(JSON.parse(token));
    return this.#calls?.find(({ id }) => id === wanted);
  }
}
