import type { NotificationFrame, RequestFrame, Rope } from '../../jsonrpc/index.js';
import type { Backpressure } from '../backpressure.js';
import type { Call, Recipient } from './in-flight-request.js';
import { keyOf, LOG, PROGRESS, paramOf } from './messages.js';
import { StdioSession } from './session.js';

/** The conversation with a process, as far as it takes part in finding out whom a message is for. */
export interface Talk {
  /** In flight, by {@link keyOf} the id under which the process knows them. */
  readonly calls: ReadonlyMap<string, Call>;
  /** The call that is alone in flight: what is said meanwhile is most likely on its account. */
  readonly onlyCall: Call | undefined;
  /** Hands a notification to a call, unless that lags behind. */
  hand(call: Call, message: Buffer): void;
  /** The server has ended what a call was about, without a response. */
  finish(call: Call): void;
  /** Answers a request of the server. */
  write(message: Rope): void;
  refuse(frame: RequestFrame): void;
  lags(recipient: Recipient, backpressure: Backpressure): void;
  reportDeviation(what: string): void;
}

/** Whom the requests and notifications of a process are for. */
export interface Routing {
  /** Callers who do not know of each other speak with the process: their ids and tokens are replaced. */
  readonly renumbers: boolean;
  /** Whether any session is on the process. */
  readonly inUse: boolean;
  onRequest(frame: RequestFrame): void;
  onNotification(frame: NotificationFrame): void;
  /** The process is gone. */
  end(): void;
}

/** A process that belongs to one session: whatever it says is for that, and ids and tokens are its own. */
export class OwnRouting implements Routing {
  readonly renumbers = false;
  readonly inUse = true;
  readonly session: StdioSession;
  readonly #talk: Talk;

  constructor(id: string, talk: Talk) {
    this.#talk = talk;
    this.session = new StdioSession(id, (recipient, backpressure) => talk.lags(recipient, backpressure));
  }

  onRequest(frame: RequestFrame): void {
    const call = this.session.heard ? undefined : this.#call;
    if (call !== undefined) call.tell(frame.bytes);
    else if (!this.session.tell(frame.bytes, true)) this.#talk.refuse(frame);
  }

  onNotification(frame: NotificationFrame): void {
    const { session } = this;
    if (frame.method === PROGRESS) {
      const call = this.#callWithToken(paramOf(frame, 'progressToken'));
      if (call !== undefined) this.#talk.hand(call, frame.bytes);
      return;
    }
    // Over HTTP a log message would come on the stream of its call; all else mostly does not.
    const call = frame.method === LOG || !session.heard ? this.#call : undefined;
    if (call !== undefined) this.#talk.hand(call, frame.bytes);
    else if (!session.lags) session.tell(frame.bytes, false);
  }

  end(): void {
    this.session.end();
  }

  /** The handshake is no call: nobody listens yet to what comes during it. */
  get #call(): Call | undefined {
    const { onlyCall } = this.#talk;
    return onlyCall?.isHandshake === true ? undefined : onlyCall;
  }

  #callWithToken(token: string | undefined): Call | undefined {
    if (token === undefined) return undefined;
    for (const call of this.#talk.calls.values()) {
      const { progressToken } = call.facts;
      if (progressToken !== undefined && keyOf(progressToken) === keyOf(token)) return call;
    }
    return undefined;
  }
}
