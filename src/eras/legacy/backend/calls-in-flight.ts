import type { Ticker } from '../../../exchange/utils/ticker.js';
import { NOWHERE, UnorderedSet, type UnorderedSetItem } from '../../../exchange/utils/unordered-set.js';
import type { NotificationFrame, RequestFrame } from '../../../jsonrpc/index.js';
import type { Backpressure } from '../../../upstream/backpressure.js';
import { RpcCall, type RpcListener, type RpcReply } from '../../../upstream/rpc-call.js';

/** A request in flight on a backend session. */
export interface SessionCall {
  /** The id and the progress token of the request at the backend. */
  readonly id: number;
  readonly rpc: RpcCall;
  readonly listener: RpcListener;
  readonly done: Promise<RpcReply>;
}

class CallInFlight implements SessionCall, RpcListener, UnorderedSetItem {
  place = NOWHERE;
  readonly id: number;
  readonly rpc: RpcCall;
  readonly listener: RpcListener;
  readonly #calls: CallsInFlight;

  constructor(id: number, ticker: Ticker, listener: RpcListener, calls: CallsInFlight) {
    this.id = id;
    this.listener = listener;
    this.#calls = calls;
    this.rpc = new RpcCall(String(id), ticker, this);
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
    this.#calls.finish(this, reply);
  }
}

/** The id of `initialize`. Ids begin at 1: some servers take 0 for a message without an id, and cannot cancel it. */
export const INITIALIZE_ID = 1;

/**
 * The requests in flight on a session. Their ids are the gateway's own, ascending and never reused: SDK servers hang or
 * refuse if two requests in flight share an id.
 */
export class CallsInFlight {
  readonly #ticker: Ticker;
  readonly #onReply: (reply: RpcReply) => void;
  #nextId: number;
  /** Undefined while there are none, since most sessions are idle. */
  #calls: UnorderedSet<CallInFlight> | undefined;

  /** @param onReply called with the reply of each request */
  constructor(ticker: Ticker, firstId: number, onReply: (reply: RpcReply) => void) {
    this.#ticker = ticker;
    this.#nextId = firstId;
    this.#onReply = onReply;
  }

  /** Returns an id for a request that is sent outside this set. */
  takeId(): number {
    return this.#nextId++;
  }

  /** Adds a request, which the caller sends. */
  add(listener: RpcListener): SessionCall {
    const call = new CallInFlight(this.takeId(), this.#ticker, listener, this);
    this.#calls ??= new UnorderedSet();
    this.#calls.add(call);
    return call;
  }

  /** Removes a request that has its reply; called by the request. */
  finish(call: CallInFlight, reply: RpcReply): void {
    this.#calls?.remove(call);
    if (this.#calls?.size === 0) this.#calls = undefined;
    this.#onReply(reply);
  }

  /** The request in flight, if there is exactly one. */
  get only(): SessionCall | undefined {
    return this.#calls?.size === 1 ? this.#calls.find(() => true) : undefined;
  }

  /** @param token JSON text of an id or progress token, as a backend repeats it: a number, or a number in a string */
  withId(token: string): SessionCall | undefined {
    const wanted = Number(JSON.parse(token));
    return this.#calls?.find(({ id }) => id === wanted);
  }

  abortAll(reason: string): void {
    this.#calls?.each(({ rpc }) => rpc.abort(reason));
  }
}
