import type { Caller } from '../../../exchange/caller.js';
import {
  changeNotification,
  isChange,
  listChange,
  resourceUpdate,
} from '../../../exchange/changes/change.js';
import type { ClientAnswer, ServerRequest } from '../../../exchange/channel.js';
import type {
  ClientSession,
  SealedBackendSession,
  SessionBinding,
} from '../../../exchange/client-session.js';
import type { ExchangeRequest } from '../../../exchange/exchange.js';
import { isFailure } from '../../../exchange/failures.js';
import type { ForwardedHeaders } from '../../../exchange/forwarded-headers.js';
import { PROGRESS, progressTokenOf } from '../../../exchange/progress.js';
import { Backoff, RECONNECT } from '../../../exchange/utils/backoff.js';
import { type NotificationFrame, parseFrame, type RequestFrame, Rope } from '../../../jsonrpc/index.js';
import type { Backpressure } from '../../../upstream/backpressure.js';
import { accepts } from './credential-check.js';
import { NotificationQueue } from './notification-queue.js';
import { respondTo, type ServerRequestHandler } from './server-requests.js';
import type { BackendSession } from './session.js';
import type { SessionListener, SessionObserver } from './session-events.js';
import { SessionSettings } from './session-settings.js';

interface SessionOpener {
  /** Opens a session with a handshake. */
  open(caller: Caller): Promise<BackendSession>;
  /** Continues a session that another process opened. */
  restore(sealed: SealedBackendSession): BackendSession;
  /** Called for each change that the client is notified of. */
  readonly onChange: (frame: NotificationFrame) => void;
  readonly onFault: (error: unknown) => void;
  /** How long the stream stays open after a call of a client that does not listen. */
  readonly keepGetStreamMs: number;
}

const NO_META: ReadonlyMap<string, undefined> = new Map();

/**
 * The backend session that belongs to a client session. It is replaced if the backend loses it, which the client does not
 * notice: its own session stays.
 */
export class LegacySessionBinding
  implements SessionBinding, SessionListener, SessionObserver, ServerRequestHandler
{
  readonly #opener: SessionOpener;
  readonly #client: ClientSession;
  /** Of the latest request: credentials are renewed. */
  #caller: Caller;
  #session: BackendSession | undefined;
  #opening: Promise<BackendSession> | undefined;
  #ended = false;
  #restored = false;
  readonly #settings = new SessionSettings();
  #hadSession = false;
  #reopenTimer: NodeJS.Timeout | undefined;
  readonly #backoff = new Backoff(RECONNECT);
  #notifications: NotificationQueue | undefined;
  /** Calls in flight during which the server may send requests. */
  #expecting = 0;
  #closeStreamTimer: NodeJS.Timeout | undefined;

  constructor(opener: SessionOpener, client: ClientSession, caller: Caller) {
    this.#opener = opener;
    this.#client = client;
    this.#caller = caller;
  }

  get backendSession(): SealedBackendSession | undefined {
    const session = this.#session;
    if (session?.id === undefined) return undefined;
    return { id: session.id, revision: session.info.revision, cookies: session.cookies };
  }

  get forwarded(): ForwardedHeaders {
    return this.#caller.forwarded;
  }

  get over(): boolean {
    return this.#ended;
  }

  /** The session, if it is open. */
  get ready(): BackendSession | undefined {
    return this.#session?.lost === false ? this.#session : undefined;
  }

  /** Opens the session if necessary; concurrent calls wait for the same handshake. */
  session(): Promise<BackendSession> {
    if (this.ready !== undefined) return Promise.resolve(this.ready);
    if (this.#opening === undefined) {
      const opening = this.#open().finally(() => {
        if (this.#opening === opening) this.#opening = undefined;
      });
      this.#opening = opening;
    }
    return this.#opening;
  }

  /** Uses the headers of a new request of the client from now on. */
  update(caller: Caller): void {
    const renewed = caller.forwarded.authorization !== this.forwarded.authorization;
    this.#caller = caller;
    if (renewed) this.#session?.renewGetStream(caller.forwarded);
  }

  /**
   * Tries the credentials of a caller on the session, or on a handshake if there is none. Only credentials that the backend
   * accepts are used from then on.
   * @throws ExchangeError if the backend refuses them, or cannot be reached
   */
  async authenticate(caller: Caller): Promise<void> {
    const session = this.#session ?? this.#restore();
    if (session !== undefined && (await accepts(session, caller.forwarded))) {
      this.update(caller);
      if (this.#session === undefined) this.#keep(session);
      return;
    }
    const opened = await this.#opener.open(caller);
    this.update(caller);
    // Another call may have opened a session meanwhile.
    if (this.#session === undefined || this.#session.lost) await this.#replaceBy(opened);
    else await opened.end(caller.forwarded);
  }

  /** Forgets a lost session; the next call opens another. */
  forget(lost: BackendSession): void {
    if (this.#session === lost) this.#session = undefined;
  }

  /** Notes a request that the backend accepted, in case it changes the session. */
  noteAccepted({ method, params }: ExchangeRequest): void {
    this.#settings.note(method, params.bytes, params.node);
  }

  onListening(): void {
    if (!this.#client.listening) {
      if (this.#expecting === 0) this.#session?.closeGetStream();
    } else if (this.#session !== undefined) this.#session.openGetStream(this, this.forwarded);
    else if (this.#hadSession) this.#reopen();
  }

  /** Finds out whether the backend has a standalone GET stream. */
  async tryGetStream(): Promise<void> {
    const session = this.#session;
    const expectation = this.expectServerRequests();
    await session?.getStreamSettled();
    expectation[Symbol.dispose]();
    // Still unknown, for a reason that is likely temporary: the stream counts as there.
    if (session?.backend.knowsGetStream === false) session.backend.noteGetStream();
  }

  /**
   * Keeps the standalone GET stream open during a call, whether or not the client listens: the server may send its requests
   * there.
   * @returns to be disposed of after the call
   */
  expectServerRequests(): Disposable {
    this.#expecting++;
    clearTimeout(this.#closeStreamTimer);
    this.#session?.openGetStream(this, this.forwarded);
    return {
      [Symbol.dispose]: () => {
        if (--this.#expecting > 0 || this.#client.listening) return;
        this.#closeStreamTimer = setTimeout(() => this.onListening(), this.#opener.keepGetStreamMs).unref();
      },
    };
  }

  notify(method: string, bytes: Buffer): void {
    if (method === 'notifications/initialized') return;
    const session = this.#session;
    if (session === undefined) return;
    this.#notifications ??= new NotificationQueue(session.backend.notificationSlots);
    const send = (): Promise<unknown> => session.post(new Rope().push(bytes), this.forwarded);
    this.#notifications.push(send, bytes.length);
  }

  async end(): Promise<void> {
    this.#ended = true;
    this.#notifications?.clear();
    clearTimeout(this.#reopenTimer);
    clearTimeout(this.#closeStreamTimer);
    const session = this.#session ?? (await this.#opening?.catch(() => undefined));
    this.#session = undefined;
    await session?.end(this.forwarded);
  }

  onNotification(frame: NotificationFrame): Backpressure | undefined {
    const { bytes, root, method, params } = frame;
    if (method === PROGRESS) {
      // The token is the gateway's own. Without its call it is dropped: the client may use the same token.
      return this.#session?.callOf(progressTokenOf(frame))?.onNotification(frame);
    }
    const { channel, listening } = this.#client;
    // Without a stream of its own for this, the client gets it on that of the call that it most likely belongs to.
    const call = listening ? undefined : this.#session?.onlyCall;
    if (call !== undefined) return call.onNotification(frame);
    if (isChange(method)) this.#opener.onChange(frame);
    if (channel.notify({ method, params, bytes: bytes.subarray(root.start, root.end) })) return undefined;
    return (resume) => channel.onDrain(resume);
  }

  onRequest(frame: RequestFrame): void {
    const session = this.#session;
    if (session === undefined) return;
    void respondTo(session, frame, this);
  }

  async answerTo(request: ServerRequest): Promise<ClientAnswer> {
    const answer = await this.#client.channel.ask(request);
    if (answer.forwarded !== undefined) this.update({ ...this.#caller, forwarded: answer.forwarded });
    return answer;
  }

  /** Continues the session that another process opened, if the client's sealed session id names one. */
  #restore(): BackendSession | undefined {
    const { backendSession } = this.#client;
    if (this.#restored || backendSession === undefined) return undefined;
    this.#restored = true;
    return this.#opener.restore(backendSession);
  }

  async #open(): Promise<BackendSession> {
    const restored = this.#restore();
    const session = restored ?? (await this.#opener.open(this.#caller));
    if (this.#ended) await session.end(this.forwarded);
    if (restored === undefined) await this.#replaceBy(session);
    else this.#keep(session);
    return session;
  }

  onChange(): void {}

  onUnavailable(): void {}

  /** Notifies the client of every change that it may have missed. */
  onGap(): void {
    const session = this.#session;
    if (session === undefined || !this.#client.listening) return;
    const lists = [...session.info.changes.lists].map(listChange);
    for (const change of [...lists, ...this.#settings.resources.map(resourceUpdate)]) {
      this.#client.channel.notify(
        parseFrame(changeNotification(change, NO_META).toBuffer()) as NotificationFrame,
      );
    }
  }

  /** Reopens the session of a client that listens, which may send no request for a long time. */
  onLost(): void {
    this.#session = undefined;
    if (this.#ended || !this.#client.listening) return;
    clearTimeout(this.#reopenTimer);
    this.#backoff.noteDown();
    this.#reopenTimer = setTimeout(() => this.#reopen(), this.#backoff.next()).unref();
  }

  #reopen(): void {
    this.session().catch((error) => {
      if (!isFailure(error)) this.#opener.onFault(error);
      this.onLost();
    });
  }

  /** Uses a new session, with the settings of the one before. */
  async #replaceBy(session: BackendSession): Promise<void> {
    const replaces = this.#hadSession;
    this.#keep(session);
    if (!replaces) return;
    await Promise.all([this.#settings.restoreOn(session, this.forwarded), session.getStreamSettled()]);
    this.onGap();
  }

  #keep(session: BackendSession): void {
    this.#session = session;
    this.#backoff.noteUp();
    this.#hadSession = true;
    session.observe(this);
    if (this.#client.listening || this.#expecting > 0) session.openGetStream(this, this.forwarded);
  }
}
