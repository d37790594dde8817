import { ANONYMOUS, type Principal } from '../exchange/credentials.js';
import type { Rope } from '../jsonrpc/index.js';
import type { RecordedEvents, ReplayBudget } from './replay-budget.js';
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
  /** When it was written, on the monotonic clock. */
  readonly at: number;
  /** Whether it counts against the share of its session, or only against the budget of all. */
  readonly ofShare: boolean;
}

/** The recorded streams of one client session. */
export class SessionReplay implements EventStore, RecordedEvents {
  readonly principal: Principal;
  readonly #budget: ReplayBudget;
  #streams: ReplayStream[] = [];
  /** Events of all streams, the oldest first. */
  #events: KeptEvent[] = [];
  #bytes = 0;
  #closed = false;

  /** @param principal whose session it is */
  constructor(budget: ReplayBudget, principal: Principal = ANONYMOUS) {
    this.#budget = budget;
    this.principal = principal;
  }

  dropRead(bytes: number, before: number): boolean {
    let freed = 0;
    const kept = this.#events.filter((event) => {
      if (freed >= bytes || event.stream.expiring || event.at >= before) return true;
      freed += event.bytes;
      this.#drop(event);
      return false;
    });
    this.#events = kept;
    return freed > 0;
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
    if (this.#streams.length >= MAX_SESSION_STREAMS || !this.#budget.reserve(OVERHEAD_BYTES, this.principal))
      return undefined;
    const stream = new ReplayStream(this, this.#budget, owner, traits);
    this.#streams.push(stream);
    this.#budget.join(this);
    return stream;
  }

  find(key: string): ReplayStream | undefined {
    return this.#streams.find((stream) => stream.key === key);
  }

  keep(stream: ReplayStream, seq: number, text: Rope): void {
    const bytes = text.byteLength + OVERHEAD_BYTES;
    // A client that the gateway has detached must not miss a large message because of that.
    const ofShare = !stream.detached || bytes <= this.#budget.sessionBytes;
    const reserved = ofShare ? this.#reserveOfShare(bytes) : this.#budget.reserve(bytes, this.principal);
    // The stream itself may have been evicted to make room.
    if (reserved && !stream.forgotten) {
      const kept = text.byteLength <= SMALL_BYTES ? text.toLatin1() : text;
      this.#events.push({ stream, seq, text: kept, bytes, ofShare, at: performance.now() });
      if (ofShare) this.#bytes += bytes;
      return;
    }
    if (reserved) this.#budget.release(bytes, this.principal);
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
    if (this.#streams.length === 0) this.#budget.leave(this);
    this.#budget.release(OVERHEAD_BYTES, this.principal);
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
    return this.#budget.reserve(bytes, this.principal);
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
    this.#budget.release(bytes, this.principal);
  }
}

/** Whether no client is known to want the rest of a stream. */
function isDispensable({ finished, detached }: ReplayStream): boolean {
  return finished && !detached;
}
