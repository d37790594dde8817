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
import { isFailure } from '../../../exchange/failures.js';
import type { ForwardedHeaders } from '../../../exchange/forwarded-headers.js';
import type { LogLevel } from '../../../exchange/log-levels.js';
import { PROGRESS, progressTokenOf } from '../../../exchange/progress.js';
import { Backoff, RECONNECT } from '../../../exchange/utils/backoff.js';
import { type NotificationFrame, parseFrame, type RequestFrame, Rope } from '../../../jsonrpc/index.js';
import type { Backpressure } from '../../../upstream/backpressure.js';
import { accepts } from './credential-check.js';
import { type Answering, answerServer } from './server-requests.js';
import type { BackendSession } from './session.js';
import type { SessionListener, SessionWatcher } from './session-events.js';
import type { SetUp } from './session-setup.js';

interface Opener {
  open(caller: Caller): Promise<BackendSession>;
  restore(sealed: SealedBackendSession): BackendSession;
  readonly setUp: SetUp;
  /** Told of every change that the client is told of. */
  readonly onChange: (frame: NotificationFrame) => void;
  readonly onFault: (error: unknown) => void;
}

/** Resources that are subscribed to again on a session that replaces another. */
const MAX_RESOURCES = 1_000;
const NO_META: ReadonlyMap<string, undefined> = new Map();
/** How long the session's stream stays open after a call of a client that does not listen: the next one is often near. */
const LINGER_MS = 5_000;

/**
 * The one backend session that belongs to a client session, replaced when the backend loses it. The client never
 * learns of the replacement: its own session stays.
 */
export class LegacySessionBinding implements SessionBinding, SessionListener, SessionWatcher, Answering {
  readonly #opener: Opener;
  readonly #client: ClientSession;
  /** As of its latest request: credentials are refreshed. */
  #caller: Caller;
  #session: BackendSession | undefined;
  #opening: Promise<BackendSession> | undefined;
  #ended = false;
  #restored = false;
  /** What the client has set up on its session, to be set up again on one that replaces it. */
  #resources: Set<string> | undefined;
  #level: LogLevel | undefined;
  #hadSession = false;
  #timer: NodeJS.Timeout | undefined;
  readonly #backoff = new Backoff(RECONNECT);
  /** Calls in flight during which the server may ask. */
  #expecting = 0;
  #lingering: NodeJS.Timeout | undefined;

  constructor(opener: Opener, client: ClientSession, caller: Caller) {
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

  /** Its server may be told as long as there is one. */
  get over(): boolean {
    return this.#ended;
  }

  /** The session, where there is nothing to wait for. */
  get ready(): BackendSession | undefined {
    return this.#session?.lost === false ? this.#session : undefined;
  }

  /** The session, opened if need be; calls that come at once wait for the same handshake. */
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

  /** A request of the client came, with the credentials of now. */
  touch(caller: Caller): void {
    const renewed = caller.forwarded.authorization !== this.forwarded.authorization;
    this.#caller = caller;
    if (renewed) this.#session?.renewGetStream(caller.forwarded);
  }

  /**
   * Tries the credentials of a caller on the session, or on the handshake of one where there is none; only credentials
   * that the backend took are used further.
   * @throws ExchangeError when it refuses them, or cannot be asked
   */
  async authenticate(caller: Caller): Promise<void> {
    const session = this.#session ?? this.#restore();
    if (session !== undefined && (await accepts(session, caller.forwarded))) {
      this.touch(caller);
      if (this.#session === undefined) this.#keep(session);
      return;
    }
    const opened = await this.#opener.open(caller);
    this.touch(caller);
    // Meanwhile another call may have opened one.
    if (this.#session === undefined || this.#session.lost) await this.#replaceBy(opened);
    else await opened.end(caller.forwarded);
  }

  /** The session was lost; the next call opens another. */
  replace(lost: BackendSession): void {
    if (this.#session === lost) this.#session = undefined;
  }

  /** The client set something up on its session that outlasts the request. */
  remember(method: string, uri: string | undefined, level: LogLevel | undefined): void {
    if (method === 'logging/setLevel') this.#level = level;
    else if (uri === undefined) return;
    else if (method === 'resources/unsubscribe') this.#resources?.delete(uri);
    else if (method === 'resources/subscribe' && (this.#resources?.size ?? 0) < MAX_RESOURCES) {
      this.#resources ??= new Set();
      this.#resources.add(uri);
    }
  }

  onListening(): void {
    if (!this.#client.listening) {
      if (this.#expecting === 0) this.#session?.closeGetStream();
    } else if (this.#session !== undefined) this.#session.openGetStream(this, this.forwarded);
    else if (this.#hadSession) this.#reopen();
  }

  /** Finds out whether the backend has a stream for what belongs to no call, before its client is told so. */
  async tryGetStream(): Promise<void> {
    const session = this.#session;
    const over = this.expectQuestions();
    await session?.getStreamSettled();
    over();
    // Whatever kept it from answering will not last.
    if (session?.backend.knowsGetStream === false) session.backend.noteGetStream();
  }

  /**
   * A call begins during which the server may ask the client something. It may do so on the session's own stream, which
   * is then listened to whether or not the client does.
   * @returns to be called when the call is over
   */
  expectQuestions(): () => void {
    this.#expecting++;
    clearTimeout(this.#lingering);
    this.#session?.openGetStream(this, this.forwarded);
    return () => {
      if (--this.#expecting > 0 || this.#client.listening) return;
      this.#lingering = setTimeout(() => this.onListening(), LINGER_MS).unref();
    };
  }

  notify(method: string, bytes: Buffer): void {
    if (method === 'notifications/initialized') return;
    void this.#session?.post(new Rope().push(bytes), this.forwarded);
  }

  async end(): Promise<void> {
    this.#ended = true;
    clearTimeout(this.#timer);
    clearTimeout(this.#lingering);
    const session = this.#session ?? (await this.#opening?.catch(() => undefined));
    this.#session = undefined;
    await session?.end(this.forwarded);
  }

  onNotification(frame: NotificationFrame): Backpressure | undefined {
    const { bytes, root, method, params } = frame;
    if (method === PROGRESS) {
      // Under a token of the gateway's own: of a call that is over, the client could take it for one of its own.
      return this.#session?.callOf(progressTokenOf(frame))?.listener.onNotification(frame);
    }
    const { channel, listening } = this.#client;
    // A client without a stream for it can be told on that of its call, if what is said is most likely of that.
    const call = listening ? undefined : this.#session?.onlyCall;
    if (call !== undefined) return call.onNotification(frame);
    if (isChange(method)) this.#opener.onChange(frame);
    if (channel.notify({ method, params, bytes: bytes.subarray(root.start, root.end) })) return undefined;
    return (resume) => channel.onDrain(resume);
  }

  onRequest(frame: RequestFrame): void {
    const session = this.#session;
    if (session === undefined) return;
    void answerServer(session, frame, this);
  }

  async answerTo(question: ServerRequest): Promise<ClientAnswer> {
    const answer = await this.#client.channel.ask(question);
    if (answer.forwarded !== undefined) this.touch({ ...this.#caller, forwarded: answer.forwarded });
    return answer;
  }

  /** Takes up the session that another process opened, as the client's sealed session id tells. */
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

  onUnreadable(): void {}

  /** The stream was down for a while: whatever the client watches may have changed. */
  onGap(): void {
    const session = this.#session;
    if (session === undefined || !this.#client.listening) return;
    const lists = [...session.info.changes.lists].map(listChange);
    for (const change of [...lists, ...[...(this.#resources ?? [])].map(resourceUpdate)]) {
      this.#client.channel.notify(
        parseFrame(changeNotification(change, NO_META).toBuffer()) as NotificationFrame,
      );
    }
  }

  /** A client that listens goes on hearing without having to ask for anything. */
  onLost(): void {
    this.#session = undefined;
    if (this.#ended || !this.#client.listening) return;
    clearTimeout(this.#timer);
    this.#backoff.noteDown();
    this.#timer = setTimeout(() => this.#reopen(), this.#backoff.next()).unref();
  }

  #reopen(): void {
    this.session().catch((error) => {
      if (!isFailure(error)) this.#opener.onFault(error);
      this.onLost();
    });
  }

  /** Takes a session in the place of one that was lost, if there was one. */
  async #replaceBy(session: BackendSession): Promise<void> {
    const replaces = this.#hadSession;
    this.#keep(session);
    if (replaces) await this.#setUpAgain(session);
  }

  /** What the backend refuses now it had agreed to before; the client can only find out by itself. */
  async #setUpAgain(session: BackendSession): Promise<void> {
    const { setUp } = this.#opener;
    const forwarded = this.forwarded;
    const level = this.#level;
    await Promise.allSettled([
      level === undefined ? undefined : setUp.ask(session, 'logging/setLevel', { level }, forwarded),
      setUp.askForEach([...(this.#resources ?? [])], session, 'resources/subscribe', forwarded),
      session.getStreamSettled(),
    ]);
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
