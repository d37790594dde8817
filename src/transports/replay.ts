import { randomBytes } from 'node:crypto';
import { NOWHERE } from '../exchange/bag.js';
import type { Ticker, Ticking } from '../exchange/ticker.js';
import type { Rope } from '../jsonrpc/index.js';
import type { Answer } from './answer.js';
import { type EventText, ReplayStream } from './replay-stream.js';

/** How long what a client may have missed is kept for it, and a stream that nobody reads waits for its reader. */
const KEEP_MS = 60_000;
/** Of the whole that one session may take up. */
const SESSION_SHARE = 1 / 8;
const MAX_SESSION_STREAMS = 100;
/** What an event, and what a stream takes up beside the text of its events. */
const OVERHEAD_BYTES = 256;

export interface ReplayOptions {
  /** For all that is kept, of all clients. */
  readonly maxBytes: number;
  readonly ticker: Ticker;
  readonly keepMs?: number | undefined;
}

/** Texts up to this size are kept as strings. */
const SMALL_BYTES = 16 * 1024;

/** An event as it went out, or would have. */
interface KeptEvent {
  readonly stream: ReplayStream;
  readonly seq: number;
  readonly text: EventText;
  readonly bytes: number;
  /** Whether it takes up a part of the share of its session, or only of the room. */
  readonly ofShare: boolean;
}

/** The room that all sessions share for what their clients may have missed. */
export class ReplayRoom implements Ticking {
  place = NOWHERE;
  /** Of one session. */
  readonly sessionBytes: number;
  readonly sessionEvents = 10_000;
  readonly #maxBytes: number;
  readonly #ticker: Ticker;
  readonly #keepMs: number;
  /** Tells ids of this process from those that another one gave. */
  readonly #prefix = randomBytes(4).toString('hex');
  /** Streams without a reader, and finished ones; the first to be forgotten first. */
  readonly #leaving = new Set<ReplayStream>();
  #bytes = 0;
  #streams = 0;
  #closing = false;
  #onBack: (() => void) | undefined;

  constructor({ maxBytes, ticker, keepMs = KEEP_MS }: ReplayOptions) {
    this.#maxBytes = maxBytes;
    this.sessionBytes = maxBytes * SESSION_SHARE;
    this.#ticker = ticker;
    this.#keepMs = keepMs;
  }

  /** Whether nobody is to be let go any more. */
  get closing(): boolean {
    return this.#closing;
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

  /**
   * From now on nobody is let go.
   * @returns when all who were let go have come back for their answers, or after `limitMs`
   */
  async close(limitMs: number): Promise<void> {
    this.#closing = true;
    if (!this.#awaits) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, limitMs);
      this.#onBack = () => {
        if (this.#awaits) return;
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** Somebody came back, or is not expected any longer. */
  back(): void {
    this.#onBack?.();
  }

  get #awaits(): boolean {
    for (const { awaited } of this.#leaving) if (awaited) return true;
    return false;
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
    const stream = new ReplayStream(this, this.#room, answer, { primed, lasting });
    this.#streams.push(stream);
    return stream;
  }

  find(key: string): ReplayStream | undefined {
    return this.#streams.find((stream) => stream.key === key);
  }

  keep(stream: ReplayStream, seq: number, text: Rope): void {
    const bytes = text.byteLength + OVERHEAD_BYTES;
    // Whoever was sent away is not to lose by it what would have reached it otherwise.
    const ofShare = !stream.letGo || bytes <= this.#room.sessionBytes;
    const taken = ofShare ? this.#takeRoom(bytes) : this.#room.take(bytes);
    // To make room for it the stream itself may have had to go.
    if (taken && !stream.forgotten) {
      const kept = text.byteLength <= SMALL_BYTES ? text.toLatin1() : text;
      this.#events.push({ stream, seq, text: kept, bytes, ofShare });
      if (ofShare) this.#bytes += bytes;
      return;
    }
    if (taken) this.#room.give(bytes);
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
    const { sessionBytes, sessionEvents } = this.#room;
    if (bytes > sessionBytes) return false;
    while (this.#events.length >= sessionEvents || this.#bytes + bytes > sessionBytes) {
      const [dropped] = this.#events.splice(this.#leastWanted(), 1);
      this.#drop(dropped as KeptEvent);
    }
    return this.#room.take(bytes);
  }

  /** The oldest event of a stream that is read, which most likely has arrived; else of one that is finished. */
  #leastWanted(): number {
    const read = this.#events.findIndex(({ stream }) => !stream.leaving);
    if (read !== -1) return read;
    return Math.max(
      this.#events.findIndex(({ stream }) => stream.finished),
      0,
    );
  }

  #dropAll(stream: ReplayStream): void {
    const events = this.#events;
    this.#events = events.filter((event) => event.stream !== stream);
    for (const event of events) if (event.stream === stream) this.#drop(event);
  }

  #drop({ stream, seq, bytes, ofShare }: KeptEvent): void {
    stream.lostUpTo = seq;
    if (ofShare) this.#bytes -= bytes;
    this.#room.give(bytes);
  }
}
