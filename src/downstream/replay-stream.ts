import type { Principal } from '../exchange/credentials.js';
import { type Rope, sseComment, sseEvent } from '../jsonrpc/index.js';
import { type StreamKind, streamKey, writeEventId } from './event-id.js';
import type { EventStream } from './event-stream.js';
import type { Expiring, ReplayBudget } from './replay-budget.js';
import type { EventText } from './response-writer.js';

/** When a client is to reconnect: SDK clients wait longer with each attempt by default, and give up after two. */
const RETRY_MS = 1_000;

/** The response that writes a recorded stream. */
export interface StreamOwner {
  /** Continues the stream on another connection, which has got all events so far. */
  attach(connection: EventStream): void;
  /** The stream was forgotten, so that a client that is detached can no longer resume it. */
  expire(): void;
}

/** Begins the record of a response that has just become a stream; undefined where none is kept. */
export interface Recorder {
  record(owner: StreamOwner): ReplayStream | undefined;
}

/** The kept events of all streams of a session. */
export interface EventStore {
  /** Whose events they are. */
  readonly principal: Principal;
  keep(stream: ReplayStream, seq: number, text: Rope): void;
  after(stream: ReplayStream, seq: number): readonly EventText[];
  remove(stream: ReplayStream): void;
}

export interface StreamTraits {
  readonly kind: StreamKind;
  /** The client knows events that have an id and no data. */
  readonly primed: boolean;
}

/** The record of one event stream, over all connections on which a client reads it. */
export class ReplayStream implements Expiring {
  readonly key: string;
  forgetAt = Number.POSITIVE_INFINITY;
  /** Events up to this number are no longer kept. */
  lostUpTo = 0;
  /** Dropped when the stream ends, since it holds the socket. */
  #owner: StreamOwner | undefined;
  readonly #store: EventStore;
  readonly #budget: ReplayBudget;
  readonly #traits: StreamTraits;
  /** The gateway closed the connection, and the client knows to reconnect. */
  #detached = false;
  #last = 0;
  #lastRead = 0;
  #unreadBytes = 0;
  #forgotten = false;

  constructor(store: EventStore, budget: ReplayBudget, owner: StreamOwner, traits: StreamTraits) {
    this.#store = store;
    this.#budget = budget;
    this.#owner = owner;
    this.#traits = traits;
    this.key = streamKey(traits.kind, budget.newKey());
  }

  /** Whether the connection may be closed in the middle: the client knows how to resume, and can. */
  get detachable(): boolean {
    return this.#traits.primed && !this.#forgotten && !this.#budget.closing;
  }

  /** The gateway closed the connection and expects the client to reconnect. */
  get detached(): boolean {
    return this.#detached;
  }

  get principal(): Principal {
    return this.#store.principal;
  }

  get awaited(): boolean {
    return this.#detached && this.#traits.kind === 'request';
  }

  /** No further event will come. */
  get finished(): boolean {
    return this.#owner === undefined;
  }

  /** No event is kept any longer. */
  get forgotten(): boolean {
    return this.#forgotten;
  }

  /** Whether it has no reader, and will be forgotten. */
  get expiring(): boolean {
    return this.forgetAt < Number.POSITIVE_INFINITY;
  }

  /** The number of the last event. */
  get last(): number {
    return this.#last;
  }

  /** The last event that was written to a connection. */
  get lastRead(): number {
    return this.#lastRead;
  }

  /** Whether so much was recorded without a reader that its writer should wait for the client to reconnect. */
  get crowded(): boolean {
    const events = this.#last - this.#lastRead;
    const { sessionEvents, sessionBytes } = this.#budget;
    return events >= sessionEvents / 2 || this.#unreadBytes >= sessionBytes / 2;
  }

  /** Whether a client that has the event of this number can be given all that came after it. */
  has(seq: number): boolean {
    return seq >= this.lostUpTo && seq <= this.#last;
  }

  /** The events after this one, as they were written. */
  after(seq: number): readonly EventText[] {
    return this.#store.after(this, seq);
  }

  /**
   * The event that a connection begins with: an id from which to resume, and no data (SEP-1699). Undefined for clients
   * that would parse the empty data as JSON.
   */
  priming(seq = 0): string | undefined {
    return this.#traits.primed ? `id: ${this.#id(seq)}\nretry: ${RETRY_MS}\ndata: \n\n` : undefined;
  }

  /** Records a message; returns the text of its event. */
  event(message: Rope): Rope {
    const seq = ++this.#last;
    const text = sseEvent(message, { id: this.#id(seq) });
    this.#unreadBytes += text.byteLength;
    if (!this.#forgotten) this.#store.keep(this, seq, text);
    return text;
  }

  /** Writes what the client missed to a new connection, and hands that to the response that writes the stream. */
  resume(connection: EventStream, seq: number): void {
    connection.write(this.priming(seq) ?? sseComment());
    connection.writeAll(this.after(seq));
    if (this.#owner !== undefined) this.#owner.attach(connection);
    else {
      this.fetched();
      connection.end();
    }
  }

  /**
   * The client's connection broke.
   * @returns false where the stream cannot be resumed
   */
  disconnect(): boolean {
    return this.#loseReader(false);
  }

  /** The gateway closes the connection; the client knows to reconnect. */
  detach(): void {
    this.#loseReader(true);
  }

  /** The client resumed the stream. */
  attached(): void {
    this.#budget.stopExpiry(this);
    this.fetched();
  }

  /** The client has got all that there was. */
  fetched(): void {
    this.#detached = false;
    this.#budget.settled();
  }

  /** No further event will come; those that came can be fetched for a while. */
  finish(): void {
    this.#owner = undefined;
    if (!this.#forgotten) this.#budget.startExpiry(this);
  }

  /** Drops all events; the stream cannot be resumed any more. */
  forget(): void {
    if (this.#forgotten) return;
    this.#forgotten = true;
    this.#budget.stopExpiry(this);
    this.fetched();
    this.#store.remove(this);
    this.#owner?.expire();
  }

  #loseReader(detached: boolean): boolean {
    if (this.#forgotten) return false;
    this.#detached = detached;
    this.#lastRead = this.#last;
    this.#unreadBytes = 0;
    this.#budget.startExpiry(this);
    return true;
  }

  #id(seq: number): string {
    return writeEventId(this.key, seq);
  }
}
