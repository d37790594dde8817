import { randomBytes } from 'node:crypto';
import { NOWHERE } from '../exchange/bag.js';
import type { Ticker, Ticking } from '../exchange/ticker.js';
import { type Rope, sseEvent } from '../jsonrpc/index.js';
import type { Answer } from './answer.js';

/** How long what a client may have missed is kept for it, and a stream that nobody reads waits for its reader. */
const KEEP_MS = 60_000;
/** When a client is to come back; without it SDK clients wait longer with each attempt, and give up after two. */
const RETRY_MS = 1_000;
/** Of the whole that one session may take up. */
const SESSION_SHARE = 1 / 8;
const MAX_SESSION_EVENTS = 1_000;
const MAX_SESSION_STREAMS = 100;
/** What an event, and what a stream takes up beside the text of its events. */
const OVERHEAD_BYTES = 256;

export interface ReplayOptions {
  /** For all that is kept, of all clients. */
  readonly maxBytes: number;
  readonly ticker: Ticker;
  readonly keepMs?: number | undefined;
}

/** The text of an event. A small one is a string of one character for each byte: a buffer would hold the pool it is from. */
export type EventText = string | Rope;

/** Texts up to this size are kept as strings. */
const SMALL_BYTES = 16 * 1024;

/** An event as it went out, or would have. */
interface KeptEvent {
  readonly stream: ReplayStream;
  readonly seq: number;
  readonly text: EventText;
  readonly bytes: number;
}

/** The room that all sessions share for what their clients may have missed. */
export class ReplayRoom implements Ticking {
  place = NOWHERE;
  readonly sessionBytes: number;
  readonly #maxBytes: number;
  readonly #ticker: Ticker;
  readonly #keepMs: number;
  /** Tells ids of this process from those that another one gave. */
  readonly #prefix = randomBytes(4).toString('hex');
  /** Streams without a reader, and finished ones; the first to be forgotten first. */
  readonly #leaving = new Set<ReplayStream>();
  #bytes = 0;
  #streams = 0;

  constructor({ maxBytes, ticker, keepMs = KEEP_MS }: ReplayOptions) {
    this.#maxBytes = maxBytes;
    this.sessionBytes = maxBytes * SESSION_SHARE;
    this.#ticker = ticker;
    this.#keepMs = keepMs;
  }

  /** Bytes that are taken up. */
  get bytes(): number {
    return this.#bytes;
  }

  newKey(): string {
    return `${this.#prefix}${(this.#streams++).toString(36)}`;
  }

  /** Takes room; who left longest ago makes way. False where all of it is in use. */
  take(bytes: number): boolean {
    while (this.#bytes + bytes > this.#maxBytes) {
      const [oldest] = this.#leaving;
      if (oldest === undefined) return false;
      oldest.forget();
    }
    this.#bytes += bytes;
    return true;
  }

  give(bytes: number): void {
    this.#bytes -= bytes;
  }

  /** From now on the stream waits to be taken up. */
  leave(stream: ReplayStream): void {
    stream.forgetAt = performance.now() + this.#keepMs;
    this.#leaving.delete(stream);
    this.#leaving.add(stream);
    this.#ticker.add(this);
  }

  stay(stream: ReplayStream): void {
    stream.forgetAt = Number.POSITIVE_INFINITY;
    this.#leaving.delete(stream);
  }

  tick(now: number): void {
    for (const stream of this.#leaving) {
      if (stream.forgetAt > now) return;
      stream.forget();
    }
    this.#ticker.remove(this);
  }
}

/** What a client may have missed on the streams of its session. */
export class SessionReplay {
  readonly #room: ReplayRoom;
  #streams: ReplayStream[] = [];
  /** Of all streams in the order in which they went out, so that the oldest can make way. */
  #events: KeptEvent[] = [];
  #bytes = 0;
  #closed = false;

  constructor(room: ReplayRoom) {
    this.#room = room;
  }

  /**
   * Begins to keep the events of a stream.
   * @param primed whether the client knows events that carry an id alone
   * @param lasting whether it is the session's own stream rather than that of a request
   * @returns undefined where there is no room
   */
  begin(answer: Answer, primed: boolean, lasting: boolean): ReplayStream | undefined {
    if (this.#closed) return undefined;
    if (this.#streams.length >= MAX_SESSION_STREAMS) this.#streams.find(({ leaving }) => leaving)?.forget();
    if (this.#streams.length >= MAX_SESSION_STREAMS || !this.#room.take(OVERHEAD_BYTES)) return undefined;
    const key = `${lasting ? LASTING : PASSING}${this.#room.newKey()}`;
    const stream = new ReplayStream(this, this.#room, answer, key, primed);
    this.#streams.push(stream);
    return stream;
  }

  find(key: string): ReplayStream | undefined {
    return this.#streams.find((stream) => stream.key === key);
  }

  keep(stream: ReplayStream, seq: number, text: Rope): void {
    const bytes = text.byteLength + OVERHEAD_BYTES;
    if (this.#takeRoom(bytes) && !stream.forgotten) {
      const kept = text.byteLength <= SMALL_BYTES ? text.toLatin1() : text;
      this.#events.push({ stream, seq, text: kept, bytes });
      this.#bytes += bytes;
      return;
    }
    // What came before is of no use either: whoever takes the stream up is to miss nothing.
    this.#dropAll(stream);
    stream.lostUpTo = seq;
  }

  after(stream: ReplayStream, seq: number): EventText[] {
    return this.#events.filter((event) => event.stream === stream && event.seq > seq).map(({ text }) => text);
  }

  remove(stream: ReplayStream): void {
    this.#streams = this.#streams.filter((other) => other !== stream);
    this.#dropAll(stream);
    this.#room.give(OVERHEAD_BYTES);
  }

  /** The session is over, and with it all that its client could have come back for. */
  close(): void {
    this.#closed = true;
    for (const stream of [...this.#streams]) stream.forget();
  }

  #takeRoom(bytes: number): boolean {
    const { sessionBytes } = this.#room;
    if (bytes > sessionBytes) return false;
    while (this.#events.length >= MAX_SESSION_EVENTS || this.#bytes + bytes > sessionBytes)
      this.#drop(this.#events.shift() as KeptEvent);
    return this.#room.take(bytes);
  }

  #dropAll(stream: ReplayStream): void {
    const events = this.#events;
    this.#events = events.filter((event) => event.stream !== stream);
    for (const event of events) if (event.stream === stream) this.#drop(event);
  }

  #drop({ stream, seq, bytes }: KeptEvent): void {
    stream.lostUpTo = seq;
    this.#bytes -= bytes;
    this.#room.give(bytes);
  }
}

const LASTING = 's';
const PASSING = 'r';

/** One event stream toward a client, over however many connections it reads it. */
export class ReplayStream {
  readonly key: string;
  /** The answer that writes the stream. */
  readonly answer: Answer;
  /** When it is to be forgotten, on the monotonic clock. */
  forgetAt = Number.POSITIVE_INFINITY;
  /** Events up to this one are not kept any longer. */
  lostUpTo = 0;
  readonly #session: SessionReplay;
  readonly #room: ReplayRoom;
  readonly #primed: boolean;
  #last = 0;
  #lastRead = 0;
  #finished = false;
  #forgotten = false;

  constructor(session: SessionReplay, room: ReplayRoom, answer: Answer, key: string, primed: boolean) {
    this.#session = session;
    this.#room = room;
    this.answer = answer;
    this.key = key;
    this.#primed = primed;
  }

  /** Nothing more will come. */
  get finished(): boolean {
    return this.#finished;
  }

  /** Nothing of it is kept any longer. */
  get forgotten(): boolean {
    return this.#forgotten;
  }

  /** Whether it waits to be taken up, or to be forgotten. */
  get leaving(): boolean {
    return this.forgetAt < Number.POSITIVE_INFINITY;
  }

  /** The number of the last event. */
  get last(): number {
    return this.#last;
  }

  /** The last event that was written while somebody read. */
  get lastRead(): number {
    return this.#lastRead;
  }

  /** Whether all events after this one are there to be sent again; it must have been sent itself. */
  has(seq: number): boolean {
    return seq >= this.lostUpTo && seq <= this.#last;
  }

  /** The events after this one, as they went out. */
  after(seq: number): readonly EventText[] {
    return this.#session.after(this, seq);
  }

  /**
   * What a connection begins with (SEP-1699): an event that carries nothing but the id from which to go on. Undefined
   * for clients that would take its empty data for JSON.
   */
  priming(seq = 0): string | undefined {
    return this.#primed ? `id: ${this.#id(seq)}\nretry: ${RETRY_MS}\ndata: \n\n` : undefined;
  }

  /** The text of the event that carries a message; kept from now on. */
  event(message: Rope): Rope {
    const seq = ++this.#last;
    const text = sseEvent(message, { id: this.#id(seq) });
    if (!this.#forgotten) this.#session.keep(this, seq, text);
    return text;
  }

  /**
   * The client's connection broke.
   * @returns whether it is waited for
   */
  leave(): boolean {
    if (this.#forgotten) return false;
    this.#lastRead = this.#last;
    this.#room.leave(this);
    return true;
  }

  /** The client came back. */
  return(): void {
    this.#room.stay(this);
  }

  /** Nothing more will come; what came may still be fetched. */
  finish(): void {
    this.#finished = true;
    if (!this.#forgotten) this.#room.leave(this);
  }

  /** Nobody is expected any longer. */
  forget(): void {
    if (this.#forgotten) return;
    this.#forgotten = true;
    this.#room.stay(this);
    this.#session.remove(this);
    if (!this.#finished) this.answer.giveUp();
  }

  #id(seq: number): string {
    return `${this.key}-${seq.toString(36)}`;
  }
}

/** What an event id says, as far as it can have been given here. */
export interface EventId {
  readonly key: string;
  readonly seq: number;
  /** Of a session's own stream. */
  readonly lasting: boolean;
}

/** @returns undefined for an id that no gateway can have given */
export function readEventId(id: string): EventId | undefined {
  const [, key, kind, seq] = /^(([rs])[0-9a-z]{8,20})-([0-9a-z]{1,9})$/.exec(id) ?? [];
  if (key === undefined || seq === undefined) return undefined;
  return { key, seq: Number.parseInt(seq, 36), lasting: kind === LASTING };
}
