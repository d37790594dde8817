import { type Rope, sseEvent } from '../jsonrpc/index.js';
import type { SessionReplay } from './replay.js';
import type { ReplayRoom } from './replay-buffer.js';
import type { ClientResponse } from './response.js';

/** When a client is to come back; without it SDK clients wait longer with each attempt, and give up after two. */
const RETRY_MS = 1_000;
/** The text of an event. A small one is a string of one character for each byte: a buffer would hold the pool it is from. */
export type EventText = string | Rope;

export interface StreamTraits {
  /** The client knows events that carry an id alone. */
  readonly primed: boolean;
  /** It is the session's own stream rather than that of a request. */
  readonly lasting: boolean;
}

const LASTING = 's';
const PASSING = 'r';

/** One event stream toward a client, over however many connections it reads it. */
export class ReplayStream {
  readonly key: string;
  /** When it is to be forgotten, on the monotonic clock. */
  forgetAt = Number.POSITIVE_INFINITY;
  /** The gateway itself ended the connection of its reader, who is on the way back. */
  detach = false;
  /** Events up to this one are not kept any longer. */
  lostUpTo = 0;
  /** Not kept beyond its end: the response and the socket hang on it. */
  #response: ClientResponse | undefined;
  readonly #session: SessionReplay;
  readonly #room: ReplayRoom;
  readonly #primed: boolean;
  readonly #lasting: boolean;
  #last = 0;
  #lastRead = 0;
  #unreadBytes = 0;
  #forgotten = false;

  constructor(
    session: SessionReplay,
    room: ReplayRoom,
    response: ClientResponse,
    { primed, lasting }: StreamTraits,
  ) {
    this.#session = session;
    this.#room = room;
    this.#response = response;
    this.key = `${lasting ? LASTING : PASSING}${room.newKey()}`;
    this.#primed = primed;
    this.#lasting = lasting;
  }

  /** The answer that writes the stream; undefined once nothing more will come. */
  get response(): ClientResponse | undefined {
    return this.#response;
  }

  /** Whether its reader may be let go: it was told with the first event how to come back, and will be served then. */
  get mayBeLeft(): boolean {
    return this.#primed && !this.#forgotten && !this.#room.closing;
  }

  /** Somebody is on the way back for an answer. */
  get awaited(): boolean {
    return this.detach && !this.#lasting;
  }

  /** Nothing more will come. */
  get finished(): boolean {
    return this.#response === undefined;
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

  /** So much is kept since the client left that whoever writes should wait for it to come back. */
  get crowded(): boolean {
    const events = this.#last - this.#lastRead;
    const { sessionEvents, sessionBytes } = this.#room;
    return events >= sessionEvents / 2 || this.#unreadBytes >= sessionBytes / 2;
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
    this.#unreadBytes += text.byteLength;
    if (!this.#forgotten) this.#session.keep(this, seq, text);
    return text;
  }

  /**
   * The client's connection broke.
   * @param detach or was ended, for it to come back
   * @returns whether it is waited for
   */
  leave(detach = false): boolean {
    if (this.#forgotten) return false;
    this.detach = detach;
    this.#lastRead = this.#last;
    this.#unreadBytes = 0;
    this.#room.leave(this);
    return true;
  }

  /** The client came back. */
  return(): void {
    this.#room.stay(this);
    this.fetched();
  }

  /** The client came back for what there was. */
  fetched(): void {
    this.detach = false;
    this.#room.back();
  }

  /** Nothing more will come; what came may still be fetched. */
  finish(): void {
    this.#response = undefined;
    if (!this.#forgotten) this.#room.leave(this);
  }

  /** Nobody is expected any longer. */
  forget(): void {
    if (this.#forgotten) return;
    this.#forgotten = true;
    this.#room.stay(this);
    this.fetched();
    this.#session.remove(this);
    this.#response?.giveUp();
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
