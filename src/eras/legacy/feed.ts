import type { ForwardedHeaders } from '../../exchange/types.js';
import {
  type ErrorFrame,
  FrameError,
  parseAnswers,
  type ResultFrame,
  toValidUtf8,
} from '../../jsonrpc/index.js';
import type { TransportError } from '../../transports/errors.js';
import type { AnswerSink, ResponseHeaders, Transfer } from '../../transports/streamable-http.js';
import type { BackendSession, SessionListener } from './backend-session.js';

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 30_000;
/** Some proxies hold the headers of a stream back until its first byte. */
const FIRST_ANSWER_MS = 1_000;

/**
 * The GET stream of a backend session (basic/transports, "Listening for Messages from the Server"). SDK servers send
 * everything there that belongs to no request, so it is kept open: taken up again with growing pauses when it ends,
 * given up when the backend says that it has none.
 */
export class BackendFeed implements AnswerSink {
  readonly #session: BackendSession;
  readonly #listener: SessionListener;
  #forwarded: ForwardedHeaders;
  readonly #onStray: (frame: ResultFrame | ErrorFrame) => void;
  #transfer: Transfer | undefined;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;
  /** The backend refused the credentials; new ones are waited for. */
  #refused = false;
  #lastEventId: string | undefined;
  #retryMs: number | undefined;
  #pauseMs = FIRST_PAUSE_MS;
  #status = 0;
  #wasOpen = false;
  #isOpen = false;
  readonly #opened: () => void;
  /** Resolves when the backend has answered the first GET, one way or the other, or takes too long to. */
  readonly settled: Promise<void>;

  constructor(
    session: BackendSession,
    listener: SessionListener,
    forwarded: ForwardedHeaders,
    onStray: (frame: ResultFrame | ErrorFrame) => void,
  ) {
    this.#session = session;
    this.#listener = listener;
    this.#forwarded = forwarded;
    this.#onStray = onStray;
    let opened = (): void => {};
    this.settled = new Promise((resolve) => {
      const timer = setTimeout(resolve, FIRST_ANSWER_MS);
      opened = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#opened = opened;
  }

  open(): void {
    if (this.#closed || this.#session.lost) return;
    const headers = this.#session.getHeaders(this.#forwarded);
    if (this.#lastEventId !== undefined) headers.push('last-event-id', this.#lastEventId);
    this.#status = 0;
    this.#transfer = this.#session.backend.transport.send('GET', headers, undefined, this);
  }

  /** The client showed other credentials than those that the stream was opened with. */
  renew(forwarded: ForwardedHeaders): void {
    this.#forwarded = forwarded;
    if (!this.#refused) return;
    this.#refused = false;
    this.open();
  }

  get isOpen(): boolean {
    return this.#isOpen;
  }

  close(): void {
    this.#closed = true;
    this.#isOpen = false;
    clearTimeout(this.#timer);
    this.#opened();
    this.#transfer?.abort();
  }

  onHead(status: number, _headers: ResponseHeaders): void {
    this.#status = status;
    this.#opened();
    if (status !== 200) return;
    this.#pauseMs = FIRST_PAUSE_MS;
    // With an event id to go on from, the backend itself sends what was missed.
    if (this.#wasOpen && this.#lastEventId === undefined) this.#session.watcher?.onGap();
    this.#wasOpen = true;
    this.#isOpen = true;
  }

  onMessage(raw: Buffer, eventId: string | undefined): void {
    if (eventId !== undefined) this.#lastEventId = eventId;
    try {
      for (const frame of parseAnswers(toValidUtf8(raw).bytes)) {
        if (frame.type === 'notification') this.#transfer?.waitFor(this.#listener.onNotification(frame));
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
    this.#retryMs = Math.min(ms, LONGEST_PAUSE_MS);
  }

  onEnd(): void {
    this.#isOpen = false;
    if (this.#status === 401 || this.#status === 403) {
      this.#refused = true;
      return;
    }
    // 405 is the specified "no such stream"; 404 and 400 are what servers say who know no GET at all.
    if (this.#status >= 400 && this.#status < 500 && this.#status !== 409 && this.#status !== 429) {
      this.#closed = true;
      if (this.#wasOpen) this.#session.drop();
      else if (this.#status === 405) this.#session.backend.noteNoFeed();
      return;
    }
    this.#later();
  }

  onError(_error: TransportError): void {
    this.#isOpen = false;
    this.#opened();
    this.#later();
  }

  #later(): void {
    if (this.#closed || this.#session.lost) return;
    const pause = this.#retryMs ?? this.#pauseMs;
    this.#pauseMs = Math.min(this.#pauseMs * 2, LONGEST_PAUSE_MS);
    this.#timer = setTimeout(() => this.open(), pause).unref();
  }
}
