import type { Rope } from '../jsonrpc/index.js';
import type { ReplayRoom } from './replay-buffer.js';
import { type EventText, ReplayStream } from './replay-stream.js';
import type { ClientResponse } from './response.js';

const MAX_SESSION_STREAMS = 100;
/** What an event, and what a stream takes up beside the text of its events. */
const OVERHEAD_BYTES = 256;
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
  begin(response: ClientResponse, primed: boolean, lasting: boolean): ReplayStream | undefined {
    if (this.#closed) return undefined;
    if (this.#streams.length >= MAX_SESSION_STREAMS) {
      const spare = this.#streams.find(isSpare) ?? this.#streams.find(({ leaving }) => leaving);
      spare?.forget();
    }
    if (this.#streams.length >= MAX_SESSION_STREAMS || !this.#room.take(OVERHEAD_BYTES)) return undefined;
    const stream = new ReplayStream(this, this.#room, response, { primed, lasting });
    this.#streams.push(stream);
    return stream;
  }

  find(key: string): ReplayStream | undefined {
    return this.#streams.find((stream) => stream.key === key);
  }

  keep(stream: ReplayStream, seq: number, text: Rope): void {
    const bytes = text.byteLength + OVERHEAD_BYTES;
    // Whoever was sent away is not to lose by it what would have reached it otherwise.
    const ofShare = !stream.detach || bytes <= this.#room.sessionBytes;
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

  /** The oldest event of a stream that is read, which most likely has arrived; else of one that nobody waits for. */
  #leastWanted(): number {
    const read = this.#events.findIndex(({ stream }) => !stream.leaving);
    if (read !== -1) return read;
    return Math.max(
      this.#events.findIndex(({ stream }) => isSpare(stream)),
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

/** Nobody is known to want anything of it. */
function isSpare({ finished, detach }: ReplayStream): boolean {
  return finished && !detach;
}
