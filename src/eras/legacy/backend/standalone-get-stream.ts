import { isEventStream } from '../../../body/media-type.js';
import type { ForwardedHeaders } from '../../../exchange/forwarded-headers.js';
import { Backoff, RECONNECT } from '../../../exchange/utils/backoff.js';
import { deferred } from '../../../exchange/utils/deferred.js';
import {
  type ErrorFrame,
  FrameError,
  parseLenientFrames,
  type ResultFrame,
  toValidUtf8,
} from '../../../jsonrpc/index.js';
import type { TransportError } from '../../../upstream/errors.js';
import type { ResponseHeaders } from '../../../upstream/response-headers.js';
import type { ResponseSink, UpstreamRequest } from '../../../upstream/transport.js';
import type { LegacyBackend } from './legacy-backend.js';
import type { SessionListener, SessionObserver } from './session-events.js';

/** Lower limit of the pause that a server may set by `retry`. */
const SHORTEST_PAUSE_MS = 100;
/** The same after a stream that ended at once and brought nothing, which some servers send for ever. */
const SHORTEST_IDLE_PAUSE_MS = 1_000;
/** A stream that was open for longer did not end at once. */
const SHORT_STREAM_MS = 1_000;
/** The server has no such stream (basic/transports, "Listening for Messages from the Server"). */
const NO_STREAM = 405;

/** One period in which the stream is open, so that no change is missed. */
export interface Watch {
  readonly live: boolean;
}

/** The session that a stream belongs to. */
interface StreamSession {
  readonly backend: LegacyBackend;
  readonly lost: boolean;
  readonly observers: readonly SessionObserver[];
  /** Headers of a GET on the session, name and value in turn. */
  getHeaders(forwarded: ForwardedHeaders): string[];
  /** Asks the backend whether it knows the session, and marks it as lost if not. */
  check(forwarded: ForwardedHeaders): Promise<void>;
  markLost(): void;
}

/**
 * The standalone GET stream of a backend session (basic/transports, "Listening for Messages from the Server"). SDK servers
 * send there everything that belongs to no request, so it is kept open: reopened with growing pauses when it ends, and given
 * up if the backend has none.
 */
export class StandaloneGetStream implements ResponseSink {
  readonly #session: StreamSession;
  readonly #listener: SessionListener;
  #forwarded: ForwardedHeaders;
  readonly #onReply: (frame: ResultFrame | ErrorFrame) => void;
  #upstreamRequest: UpstreamRequest | undefined;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;
  /** Why the stream is not reopened: there is none, or the credentials were refused. */
  #givenUp: 'none' | 'refused' | undefined;
  #lastEventId: string | undefined;
  #retryMs: number | undefined;
  readonly #backoff = new Backoff(RECONNECT);
  #status = 0;
  #wasOpen = false;
  /** The last stream brought a message, or was open for more than a moment. */
  #useful = false;
  #openedAt = 0;
  /** The stream was not open for a time, in which messages may have been lost. */
  #missed = false;
  #sentAt = 0;
  #watch: { live: boolean } | undefined;
  readonly #settle: () => void;
  #settled: Promise<void> | undefined;

  constructor(
    session: StreamSession,
    listener: SessionListener,
    forwarded: ForwardedHeaders,
    onReply: (frame: ResultFrame | ErrorFrame) => void,
  ) {
    this.#session = session;
    this.#listener = listener;
    this.#forwarded = forwarded;
    this.#onReply = onReply;
    const { backend } = session;
    const settled = deferred<void>();
    this.#settled = settled.promise;
    const settle = (): void => {
      clearTimeout(timer);
      this.#settled = undefined;
      settled.resolve();
    };
    const late = (): void => {
      backend.noteGetStreamDelay();
      settle();
    };
    const timer = setTimeout(late, backend.delaysGetStream ? 0 : backend.times.getStreamHeadMs);
    this.#settle = settle;
  }

  /** Resolves when the backend has answered the first GET, or takes too long; undefined after that. */
  get settled(): Promise<void> | undefined {
    return this.#settled;
  }

  open(): void {
    if (this.#closed || this.#session.lost) return;
    const headers = this.#session.getHeaders(this.#forwarded);
    if (this.#lastEventId !== undefined) headers.push('last-event-id', this.#lastEventId);
    this.#status = 0;
    this.#sentAt = performance.now();
    this.#upstreamRequest = this.#session.backend.transport.send('GET', headers, undefined, this);
  }

  /** Uses other credentials from now on, and reopens the stream if the ones before were refused. */
  renew(forwarded: ForwardedHeaders): void {
    this.#forwarded = forwarded;
    if (this.#givenUp !== 'refused') return;
    this.#givenUp = undefined;
    this.open();
  }

  /** The present period in which the stream is open. */
  get watch(): Watch | undefined {
    return this.#watch;
  }

  /** The stream is given up, so no message will arrive. */
  get unavailable(): boolean {
    return this.#givenUp !== undefined;
  }

  close(): void {
    this.#closed = true;
    this.#endWatch();
    clearTimeout(this.#timer);
    this.#settle();
    this.#upstreamRequest?.abort();
  }

  onHead(status: number, headers: ResponseHeaders): void {
    const isStream = isEventStream(headers['content-type']);
    // Some servers answer a GET with a web page.
    this.#status = status === 200 && !isStream ? NO_STREAM : status;
    const { backend } = this.#session;
    if (performance.now() - this.#sentAt < backend.times.getStreamHeadMs) backend.noteNoGetStreamDelay();
    if (this.#status === 200) this.#begin();
  }

  #begin(): void {
    const { backend, observers } = this.#session;
    backend.noteGetStream();
    this.#wasOpen = true;
    this.#openedAt = performance.now();
    this.#backoff.noteUp();
    this.#watch = { live: true };
    const missed = this.#missed;
    this.#missed = false;
    // With an event id the backend itself sends what was missed.
    if (missed && this.#lastEventId === undefined) for (const observer of observers) observer.onGap();
    this.#settle();
  }

  onMessage(raw: Buffer, eventId: string | undefined): void {
    this.#useful = true;
    if (eventId !== undefined) this.#lastEventId = eventId;
    try {
      for (const frame of parseLenientFrames(toValidUtf8(raw).bytes)) {
        if (frame.type === 'notification')
          this.#upstreamRequest?.waitFor(this.#listener.onNotification(frame));
        else if (frame.type === 'request') this.#listener.onRequest(frame);
        else this.#onReply(frame);
      }
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
    }
  }

  onPriming(eventId: string): void {
    this.#lastEventId = eventId;
  }

  onRetry(ms: number): void {
    this.#retryMs = Math.min(Math.max(ms, SHORTEST_PAUSE_MS), RECONNECT.longestMs);
  }

  onEnd(): void {
    this.#endWatch();
    const status = this.#status;
    if (status === 401 || status === 403) this.#giveUp('refused');
    else if (status < 400 || status >= 500 || status === 409 || status === 429) this.#reopenLater();
    else if (this.#lastEventId !== undefined) {
      // The backend may not know the event any more.
      this.#lastEventId = undefined;
      this.open();
    } else if (status === 404 && this.#wasOpen) this.#session.markLost();
    else if (status === NO_STREAM && !this.#wasOpen) this.#giveUp('none');
    else void this.#check();
  }

  onError(_error: TransportError): void {
    this.#endWatch();
    this.#reopenLater();
  }

  /**
   * Finds out what a refusal means: that the server has no GET, that it does not know the session, or that it still holds
   * the stream before (mcp-go: 400 "session already exists"), so that the GET is tried again.
   */
  async #check(): Promise<void> {
    await this.#session.check(this.#forwarded);
    if (this.#session.lost) return;
    const there = this.#wasOpen || this.#session.backend.hasGetStream;
    if (there && this.#status !== NO_STREAM) this.#reopenLater();
    else this.#giveUp('none');
  }

  #giveUp(reason: 'none' | 'refused'): void {
    if (this.#closed) return;
    this.#givenUp = reason;
    if (reason === 'none') this.#session.backend.noteNoGetStream();
    for (const observer of this.#session.observers) observer.onUnavailable();
    this.#settle();
  }

  #endWatch(): void {
    if (this.#watch !== undefined) {
      this.#watch.live = false;
      if (performance.now() - this.#openedAt > SHORT_STREAM_MS) this.#useful = true;
      this.#backoff.noteDown();
    }
    this.#watch = undefined;
    this.#missed = true;
  }

  #reopenLater(): void {
    this.#settle();
    if (this.#closed || this.#session.lost) return;
    const pauseMs = this.#backoff.next();
    this.#timer = setTimeout(() => this.open(), this.#pauseFor(pauseMs)).unref();
    this.#useful = false;
  }

  /** The server's own pause, unless its last stream ended at once and brought nothing: then a growing one. */
  #pauseFor(pauseMs: number): number {
    if (this.#retryMs === undefined) return pauseMs;
    return this.#useful ? this.#retryMs : Math.max(this.#retryMs, pauseMs, SHORTEST_IDLE_PAUSE_MS);
  }
}
