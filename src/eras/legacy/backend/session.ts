import { CODE } from '../../../exchange/errors.js';
import type { ForwardedHeaders } from '../../../exchange/forwarded-headers.js';
import { isRepeatable } from '../../../exchange/repeatable-methods.js';
import {
  type ErrorFrame,
  errorObjectRope,
  errorRope,
  notificationRope,
  type RequestId,
  type ResultFrame,
  Rope,
  requestRope,
  resultRope,
} from '../../../jsonrpc/index.js';
import type { ResponseHeaders } from '../../../upstream/response-headers.js';
import { NO_ID, RpcCall, type RpcListener, type RpcReply, SILENT } from '../../../upstream/rpc-call.js';
import type { InitializeInfo } from '../wire/initialize-info.js';
import { CallsInFlight, INITIALIZE_ID, type SessionCall } from './calls-in-flight.js';
import type { LegacyBackend } from './legacy-backend.js';
import { SessionHeaders } from './request-headers.js';
import { ResponseQueue } from './response-queue.js';
import type { SessionListener, SessionObserver } from './session-events.js';
import { StandaloneGetStream, type Watch } from './standalone-get-stream.js';

export interface MessageOptions {
  /** The message may reach the backend twice. */
  readonly repeatable?: boolean;
  /** Longest time for the backend to accept the message. */
  readonly limitMs?: number;
}

export interface TimedRequestOptions {
  readonly listener?: RpcListener;
  /** Longest time for the response; the time of a handshake if left out. */
  readonly limitMs?: number;
}

/** State of a session that another process opened. */
export interface RestoredState {
  readonly firstRequestId?: number;
  /** Value of the `Cookie` header. */
  readonly cookies?: string | undefined;
}

/** Whether HTTP refused a ping as a bad request, as a server of the other era does that took the place of this one. */
function isPingRefused(reply: RpcReply): boolean {
  return reply.kind === 'response' && reply.frame.type === 'error' && reply.status === 400;
}

const NO_OBSERVERS: readonly SessionObserver[] = [];

/** A session with a legacy backend, from its handshake to its end. */
export class BackendSession {
  readonly backend: LegacyBackend;
  readonly info: InitializeInfo;
  /** The backend's session id; undefined if it keeps no sessions. */
  readonly id: string | undefined;
  /** The backend does not know the session any more, or the session was ended. */
  lost = false;
  #lastUsedAt = performance.now();
  readonly #headers: SessionHeaders;
  readonly #calls: CallsInFlight;
  #exclusiveCall: RpcListener | undefined;
  #observers: readonly SessionObserver[] = NO_OBSERVERS;
  #getStream: StandaloneGetStream | undefined;
  /** The backend was known to have no standalone GET stream when it was to be opened. */
  #withoutGetStream = false;
  /** Of the ping that is in flight. */
  #checking: Promise<void> | undefined;
  /** Undefined until the backend sends a request. */
  #responses: ResponseQueue | undefined;

  constructor(
    backend: LegacyBackend,
    info: InitializeInfo,
    id: string | undefined,
    { firstRequestId = INITIALIZE_ID + 1, cookies }: RestoredState = {},
  ) {
    this.backend = backend;
    this.info = info;
    this.id = id;
    this.#headers = new SessionHeaders(info.revision, id, cookies);
    this.#calls = new CallsInFlight(backend.ticker, firstRequestId, (reply) => this.#onReply(reply));
  }

  /** On the monotonic clock. */
  get lastUsedAt(): number {
    return this.#lastUsedAt;
  }

  /** The session is in use now. */
  touch(): void {
    this.#lastUsedAt = performance.now();
  }

  /** The call that uses the session alone, to which everything outside a response stream belongs. */
  get exclusiveCall(): RpcListener | undefined {
    return this.#exclusiveCall;
  }

  /** Makes a call the {@link BackendSession.exclusiveCall}, in place of the one before, until it is disposed of. */
  reserveFor(call: RpcListener): Disposable {
    this.#exclusiveCall = call;
    return {
      [Symbol.dispose]: () => {
        if (this.#exclusiveCall === call) this.#exclusiveCall = undefined;
      },
    };
  }

  get observers(): readonly SessionObserver[] {
    return this.#observers;
  }

  /** Adds an observer of the session until it is disposed of. */
  observe(observer: SessionObserver): Disposable {
    this.#observers = [...this.#observers, observer];
    return {
      [Symbol.dispose]: () => {
        this.#observers = this.#observers.filter((other) => other !== observer);
      },
    };
  }

  /** The call that is alone in flight: a message that names no call most likely belongs to it. */
  get onlyCall(): RpcListener | undefined {
    return this.#calls.only?.listener;
  }

  /** @param progressToken JSON text of the token */
  callOf(progressToken: string | undefined): RpcListener | undefined {
    return progressToken === undefined ? undefined : this.#calls.withId(progressToken)?.listener;
  }

  /**
   * Sends a request.
   * @param params makes the params, given the id and progress token of the request
   */
  request(
    method: string,
    params: (id: number) => Rope | undefined,
    forwarded: ForwardedHeaders,
    listener: RpcListener,
  ): SessionCall {
    const call = this.#calls.add(listener);
    call.rpc.post({
      transport: this.backend.transport,
      headers: this.#headers.post(forwarded),
      body: requestRope(call.id, method, params(call.id)),
      repeatable: isRepeatable(method),
    });
    return call;
  }

  /** Sends a request of the gateway's own, and aborts it when its time is over. */
  async timedRequest(
    method: string,
    params: Rope | undefined,
    forwarded: ForwardedHeaders,
    { listener = SILENT, limitMs = this.backend.handshakeMs }: TimedRequestOptions = {},
  ): Promise<RpcReply> {
    const { rpc, done } = this.request(method, () => params, forwarded, listener);
    const expire = (): void => rpc.abort(`no answer to ${method} within ${limitMs} ms`);
    const timer = setTimeout(expire, limitMs).unref();
    return done.finally(() => clearTimeout(timer));
  }

  /** Resumes the broken response stream of a request (basic/transports, "Resumability and Redelivery"). */
  resume(id: number, lastEventId: string, forwarded: ForwardedHeaders, listener: RpcListener): RpcCall {
    const { transport, ticker } = this.backend;
    const rpc = new RpcCall(String(id), ticker, listener);
    return rpc.resume(transport, [...this.#headers.get(forwarded), 'last-event-id', lastEventId]);
  }

  /** Sends a request whose response is not awaited beyond the time limit, and is not read. */
  postRequest(
    method: string,
    params: Rope | undefined,
    forwarded: ForwardedHeaders,
    options: MessageOptions,
  ): Promise<RpcReply> {
    return this.post(requestRope(this.#calls.takeId(), method, params), forwarded, options);
  }

  /** Sends a notification; resolves when the backend has accepted or refused it. */
  notify(
    method: string,
    params: Rope | undefined,
    forwarded: ForwardedHeaders,
    options: MessageOptions = {},
  ): Promise<RpcReply> {
    return this.post(notificationRope(method, params), forwarded, {
      repeatable: isRepeatable(method),
      ...options,
    });
  }

  /**
   * Sends the client's answer to a server request; never throws.
   * @param onReply called with what the backend makes of it
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

  /** Refuses a server request; never throws. */
  refuse(
    id: RequestId,
    message: string,
    forwarded: ForwardedHeaders,
    code: number = CODE.methodNotFound,
  ): void {
    this.#respond(errorRope(id, code, message), forwarded);
  }

  #respond(body: Rope, forwarded: ForwardedHeaders, onReply?: (reply: RpcReply) => void): void {
    this.#responses ??= new ResponseQueue();
    this.#responses.push(() => this.post(body, forwarded), onReply);
  }

  /** Sends a message that has no response of its own. */
  async post(
    body: Rope,
    forwarded: ForwardedHeaders,
    { repeatable = false, limitMs = this.backend.times.messageMs }: MessageOptions = {},
  ): Promise<RpcReply> {
    const { transport, ticker } = this.backend;
    const rpc = new RpcCall(NO_ID, ticker, SILENT);
    const timer = setTimeout(
      () => rpc.abort(`a message was not taken within ${Math.round(limitMs)} ms`),
      limitMs,
    ).unref();
    try {
      const headers = this.#headers.post(forwarded);
      const reply = await rpc.post({ transport, headers, body, repeatable }).reply;
      if (reply.kind !== 'failed') this.keepCookies(reply.headers);
      return reply;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Opens the standalone GET stream, which stays open until {@link BackendSession.closeGetStream}. */
  openGetStream(listener: SessionListener, forwarded: ForwardedHeaders): void {
    this.#withoutGetStream = this.backend.hasNoGetStream;
    if (this.#getStream !== undefined || this.#withoutGetStream) return;
    this.#getStream = new StandaloneGetStream(this, listener, forwarded, (frame) => this.#takeReply(frame));
    this.#getStream.open();
  }

  closeGetStream(): void {
    this.#getStream?.close();
    this.#getStream = undefined;
  }

  /** Reopens a stream that was refused, with other credentials. */
  renewGetStream(forwarded: ForwardedHeaders): void {
    this.#getStream?.renew(forwarded);
  }

  /** Resolves when the standalone GET stream is open or not available; undefined if there is nothing to wait for. */
  getStreamSettled(): Promise<void> | undefined {
    return this.#getStream?.settled;
  }

  /** The present period in which the standalone GET stream is open. */
  get watch(): Watch | undefined {
    return this.#getStream?.watch;
  }

  /** The backend has no standalone GET stream, or refuses it, so nothing can arrive outside a response stream. */
  get getStreamUnavailable(): boolean {
    return this.#getStream === undefined ? this.#withoutGetStream : this.#getStream.unavailable;
  }

  /** Headers of a GET on this session, name and value in turn. */
  getHeaders(forwarded: ForwardedHeaders): string[] {
    return this.#headers.get(forwarded);
  }

  keepCookies(headers: ResponseHeaders): void {
    this.#headers.keepCookies(headers);
  }

  /** Value of the `Cookie` header; undefined if the backend set none. */
  get cookies(): string | undefined {
    return this.#headers.cookies;
  }

  /**
   * Pings the backend, and marks the session as lost if the backend does not know it (basic/utilities/ping). Concurrent
   * callers share one ping.
   */
  check(forwarded: ForwardedHeaders): Promise<void> {
    this.#checking ??= this.#ping(forwarded).finally(() => {
      this.#checking = undefined;
    });
    return this.#checking;
  }

  async #ping(forwarded: ForwardedHeaders): Promise<void> {
    const limitMs = this.backend.times.messageMs;
    const reply = await this.timedRequest('ping', undefined, forwarded, { limitMs });
    if (this.backend.lostSessions.isLost(reply, this.id) || isPingRefused(reply)) this.markLost();
  }

  /**
   * Whether a reply means that the session is lost, which marks it. Unless the reply proves it, the backend is asked, since
   * tools report about sessions of their own in the same words.
   */
  async isLostBy(reply: RpcReply, forwarded: ForwardedHeaders): Promise<boolean> {
    const { lostSessions } = this.backend;
    if (!lostSessions.isLost(reply, this.id)) return false;
    if (this.id === undefined || lostSessions.proves(reply)) this.markLost();
    else if (!this.lost) await this.check(forwarded);
    return this.lost;
  }

  /** The backend does not know the session any more: no further request is sent on it, not even to end it. */
  markLost(): void {
    if (this.lost) return;
    this.lost = true;
    this.closeGetStream();
    if (this.id !== undefined) this.backend.transport.dropSession?.(this.id);
    for (const observer of this.#observers) observer.onLost();
  }

  /** Ends the session at the backend; never throws, and takes a few seconds at most. */
  async end(forwarded: ForwardedHeaders): Promise<void> {
    this.closeGetStream();
    this.#calls.abortAll('session ended');
    if (this.id === undefined || this.lost) return;
    this.lost = true;
    await this.backend.deleteSession(this.#headers.post(forwarded));
  }

  #onReply(reply: RpcReply): void {
    this.touch();
    if (reply.kind !== 'failed') this.keepCookies(reply.headers);
  }

  /** Hands over a response that arrived on the standalone GET stream. */
  #takeReply(frame: ResultFrame | ErrorFrame): void {
    if (frame.id !== undefined) this.#calls.withId(frame.id)?.rpc.take(frame);
  }
}
