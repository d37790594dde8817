import { isEventStream } from '../../../body/media-type.js';
import type { ForwardedHeaders } from '../../../exchange/forwarded-headers.js';
import { Backoff, RECONNECT } from '../../../exchange/utils/backoff.js';
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
import type { SessionListener, SessionWatcher } from './session-events.js';

/** A server may ask for any pause; none at all would be a loop. */
const SHORTEST_PAUSE_MS = 100;
/** There is no such stream (basic/transports, "Listening for Messages from the Server"). */
const NO_STREAM = 405;
/** Some proxies hold the headers of a stream back until its first byte. */
const FIRST_ANSWER_MS = 1_000;

/** One stretch of time in which all that a backend has to tell is heard. */
export interface Watch {
  readonly live: boolean;
}

/** The session that a stream belongs to. */
interface StreamSession {
  readonly backend: LegacyBackend;
  readonly lost: boolean;
  readonly watchers: readonly SessionWatcher[];
  /** Headers of a GET on the session, name and value in turn. */
  getHeaders(forwarded: ForwardedHeaders): string[];
  /** Finds out whether the backend still knows the session, and drops it otherwise. */
  check(forwarded: ForwardedHeaders): Promise<void>;
  drop(): void;
}

/**
 * The GET stream of a backend session (basic/transports, "Listening for Messages from the Server"). SDK servers send
 * everything there that belongs to no request, so it is kept open: taken up again with growing pauses when it ends,
 * given up when the backend says that it has none.
 */
export class StandaloneGetStream implements ResponseSink {
  readonly #session: StreamSession;
  readonly #listener: SessionListener;
  #forwarded: ForwardedHeaders;
  readonly #onStray: (frame: ResultFrame | ErrorFrame) => void;
  #upstreamRequest: UpstreamRequest | undefined;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;
  /** Nothing is tried any more: there is no such stream, or other credentials are waited for. */
  #givenUp: 'none' | 'refused' | undefined;
  #lastEventId: string | undefined;
  #retryMs: number | undefined;
  readonly #backoff = new Backoff(RECONNECT);
  #status = 0;
  #wasOpen = false;
  /** Something may have been told meanwhile. */
  #missed = false;
  #askedAt = 0;
  #watch: { live: boolean } | undefined;
  readonly #opened: () => void;
  #settled: Promise<void> | undefined;

  constructor(
    session: StreamSession,
    listener: SessionListener,
    forwarded: ForwardedHeaders,
    onStray: (frame: ResultFrame | ErrorFrame) => void,
  ) {
    this.#session = session;
    this.#listener = listener;
    this.#forwarded = forwarded;
    this.#onStray = onStray;
    let opened = (): void => {};
    this.#settled = new Promise((resolve) => {
      const { backend } = session;
      const settle = (): void => {
        this.#settled = undefined;
        resolve();
      };
      const late = (): void => {
        backend.noteGetStreamDelay();
        settle();
      };
      const timer = setTimeout(late, backend.delaysGetStream ? 0 : FIRST_ANSWER_MS);
      opened = () => {
        clearTimeout(timer);
        settle();
      };
    });
    this.#opened = opened;
  }

  /** Until the backend has answered the first GET in any way, or takes too long to. */
  get settled(): Promise<void> | undefined {
    return this.#settled;
  }

  open(): void {
    if (this.#closed || this.#session.lost) return;
    const headers = this.#session.getHeaders(this.#forwarded);
    if (this.#lastEventId !== undefined) headers.push('last-event-id', this.#lastEventId);
    this.#status = 0;
    this.#askedAt = performance.now();
    this.#upstreamRequest = this.#session.backend.transport.send('GET', headers, undefined, this);
  }

  /** The client showed other credentials than those that the stream was opened with. */
  renew(forwarded: ForwardedHeaders): void {
    this.#forwarded = forwarded;
    if (this.#givenUp !== 'refused') return;
    this.#givenUp = undefined;
    this.open();
  }

  /** While the stream is open. */
  get watch(): Watch | undefined {
    return this.#watch;
  }

  /** Nothing will come any more. */
  get unreadable(): boolean {
    return this.#givenUp !== undefined;
  }

  close(): void {
    this.#closed = true;
    this.#endWatch();
    clearTimeout(this.#timer);
    this.#opened();
    this.#upstreamRequest?.abort();
  }

  onHead(status: number, headers: ResponseHeaders): void {
    const isStream = isEventStream(headers['content-type']);
    // Some servers have a page for whoever comes with a GET.
    this.#status = status === 200 && !isStream ? NO_STREAM : status;
    if (performance.now() - this.#askedAt < FIRST_ANSWER_MS) this.#session.backend.noteNoGetStreamDelay();
    if (this.#status === 200) this.#begin();
  }

  #begin(): void {
    const { backend, watchers } = this.#session;
    backend.noteGetStream();
    this.#wasOpen = true;
    this.#backoff.noteUp();
    this.#watch = { live: true };
    const missed = this.#missed;
    this.#missed = false;
    // With an event id to go on from, the backend itself sends what was missed.
    if (missed && this.#lastEventId === undefined) for (const watcher of watchers) watcher.onGap();
    this.#opened();
  }

  onMessage(raw: Buffer, eventId: string | undefined): void {
    if (eventId !== undefined) this.#lastEventId = eventId;
    try {
      for (const frame of parseLenientFrames(toValidUtf8(raw).bytes)) {
        if (frame.type === 'notification')
          this.#upstreamRequest?.waitFor(this.#listener.onNotification(frame));
        else if (frame.type === 'request') this.#listener.onRequest(frame);
        else this.#onStray(frame);
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
    else if (status < 400 || status >= 500 || status === 409 || status === 429) this.#later();
    else if (this.#lastEventId !== undefined) {
      // It may be the event that is not known any more.
      this.#lastEventId = undefined;
      this.open();
    } else if (this.#wasOpen) this.#session.drop();
    else if (status === NO_STREAM) this.#giveUp('none');
    else void this.#ask();
  }

  onError(_error: TransportError): void {
    this.#endWatch();
    this.#later();
  }

  /** 404 and 400 are what servers say who know no GET at all, or who do not know the session any more. */
  async #ask(): Promise<void> {
    await this.#session.check(this.#forwarded);
    if (!this.#session.lost) this.#giveUp('none');
  }

  #giveUp(reason: 'none' | 'refused'): void {
    if (this.#closed) return;
    this.#givenUp = reason;
    if (reason === 'none') this.#session.backend.noteNoGetStream();
    for (const watcher of this.#session.watchers) watcher.onUnreadable();
    this.#opened();
  }

  #endWatch(): void {
    if (this.#watch !== undefined) {
      this.#watch.live = false;
      this.#backoff.noteDown();
    }
    this.#watch = undefined;
    this.#missed = true;
  }

  #later(): void {
    this.#opened();
    if (this.#closed || this.#session.lost) return;
    const pauseMs = this.#backoff.next();
    this.#timer = setTimeout(() => this.open(), this.#retryMs ?? pauseMs).unref();
  }
}
