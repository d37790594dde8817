import type { Rope } from '../jsonrpc/index.js';
import type { ReplayBudget } from './replay-budget.js';
import { type EventStore, ReplayStream, type StreamOwner, type StreamTraits } from './replay-stream.js';
import type { EventText } from './response-writer.js';

const MAX_SESSION_STREAMS = 100;
/** What an event, or a stream, costs beside the text of its events. */
const OVERHEAD_BYTES = 256;
/** Texts up to this size are kept as strings. */
const SMALL_BYTES = 16 * 1024;

/** An event as it was written, or would have been. */
interface KeptEvent {
  readonly stream: ReplayStream;
  readonly seq: number;
  readonly text: EventText;
  readonly bytes: number;
  /** Whether it counts against the share of its session, or only against the budget of all. */
  readonly ofShare: boolean;
}

/** The recorded streams of one client session. */
export class SessionReplay implements EventStore {
  readonly #budget: ReplayBudget;
  #streams: ReplayStream[] = [];
  /** Events of all streams, the oldest first. */
  #events: KeptEvent[] = [];
  #bytes = 0;
  #closed = false;

  constructor(budget: ReplayBudget) {
    this.#budget = budget;
  }

  /**
   * Begins to record a stream.
   * @returns undefined where the session or the budget has no room
   */
  begin(owner: StreamOwner, traits: StreamTraits): ReplayStream | undefined {
    if (this.#closed) return undefined;
    if (this.#streams.length >= MAX_SESSION_STREAMS) {
      const evicted = this.#streams.find(isDispensable) ?? this.#streams.find(({ expiring }) => expiring);
      evicted?.forget();
    }
    if (this.#streams.length >= MAX_SESSION_STREAMS || !this.#budget.reserve(OVERHEAD_BYTES))
      return undefined;
    const stream = new ReplayStream(this, this.#budget, owner, traits);
    this.#streams.push(stream);
    return stream;
  }

  find(key: string): ReplayStream | undefined {
    return this.#streams.find((stream) => stream.key === key);
  }

  keep(stream: ReplayStream, seq: number, text: Rope): void {
    const bytes = text.byteLength + OVERHEAD_BYTES;
    // A client that the gateway has detached must not miss a large message because of that.
    const ofShare = !stream.detached || bytes <= this.#budget.sessionBytes;
    const reserved = ofShare ? this.#reserveOfShare(bytes) : this.#budget.reserve(bytes);
    // The stream itself may have been evicted to make room.
    if (reserved && !stream.forgotten) {
      const kept = text.byteLength <= SMALL_BYTES ? text.toLatin1() : text;
      this.#events.push({ stream, seq, text: kept, bytes, ofShare });
      if (ofShare) this.#bytes += bytes;
      return;
    }
    if (reserved) this.#budget.release(bytes);
    // Earlier events are of no use either: a client that resumes must not miss any.
    this.#dropAll(stream);
    stream.lostUpTo = seq;
  }

  after(stream: ReplayStream, seq: number): EventText[] {
    return this.#events.filter((event) => event.stream === stream && event.seq > seq).map(({ text }) => text);
  }

  remove(stream: ReplayStream): void {
    this.#streams = this.#streams.filter((other) => other !== stream);
    this.#dropAll(stream);
    this.#budget.release(OVERHEAD_BYTES);
  }

  /** The session has ended: none of its streams can be resumed. */
  close(): void {
    this.#closed = true;
    for (const stream of [...this.#streams]) stream.forget();
  }

  #reserveOfShare(bytes: number): boolean {
    const { sessionBytes, sessionEvents } = this.#budget;
    if (bytes > sessionBytes) return false;
    while (this.#events.length >= sessionEvents || this.#bytes + bytes > sessionBytes) {
      const [dropped] = this.#events.splice(this.#leastWanted(), 1);
      this.#drop(dropped as KeptEvent);
    }
    return this.#budget.reserve(bytes);
  }

  /** The oldest event of a stream with a reader, which most likely has it; else of a stream that may never be resumed. */
  #leastWanted(): number {
    const read = this.#events.findIndex(({ stream }) => !stream.expiring);
    if (read !== -1) return read;
    return Math.max(
      this.#events.findIndex(({ stream }) => isDispensable(stream)),
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
    this.#budget.release(bytes);
  }
}

/** Whether no client is known to want the rest of a stream. */
function isDispensable({ finished, detached }: ReplayStream): boolean {
  return finished && !detached;
}
