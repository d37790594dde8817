import { readEventId } from '../../../downstream/event-id.js';
import type { HttpResponse } from '../../../downstream/http-response.js';
import type { ReplayBudget } from '../../../downstream/replay-budget.js';
import type { Recorder, ReplayStream, StreamOwner } from '../../../downstream/replay-stream.js';
import { SessionReplay } from '../../../downstream/session-replay.js';
import type { Principal } from '../../../exchange/credentials.js';
import type { RevisionFeatures } from '../wire/revisions.js';

export interface SessionStreamsOptions {
  /** Whose session it is: what is recorded counts against the principal first. */
  readonly principal?: Principal | undefined;
  /** Keeps events for clients whose connection breaks; undefined to keep none. */
  readonly replay?: ReplayBudget | undefined;
  /** Longest time of one connection of a client that can resume its stream, in milliseconds; undefined for no limit. */
  readonly holdMs?: number | undefined;
}

/** The standalone GET stream of a session, and what is recorded of this and of response streams. */
export class SessionStreams implements Recorder {
  readonly #features: RevisionFeatures;
  readonly #options: SessionStreamsOptions;
  readonly #onListening: () => void;
  #getStream: HttpResponse | undefined;
  #replay: SessionReplay | undefined;

  /** @param onListening called when the client has opened or closed its GET stream */
  constructor(features: RevisionFeatures, options: SessionStreamsOptions, onListening: () => void) {
    this.#features = features;
    this.#options = options;
    this.#onListening = onListening;
  }

  /** The standalone GET stream; undefined if the client has not opened one. */
  get getStream(): HttpResponse | undefined {
    return this.#getStream;
  }

  /** Whether the client can resume streams of the session. */
  get resumable(): boolean {
    return this.#options.replay !== undefined && this.#features.resumableStreams;
  }

  /** Longest time of one connection of a response stream that the client can resume. */
  get holdMs(): number | undefined {
    return this.#features.primingEvents ? this.#options.holdMs : undefined;
  }

  record(owner: StreamOwner): ReplayStream | undefined {
    const { replay } = this.#options;
    if (replay === undefined) return undefined;
    this.#replay ??= new SessionReplay(replay, this.#options.principal);
    const kind = owner === this.#getStream ? 'session' : 'request';
    return this.#replay.begin(owner, { kind, primed: this.#features.primingEvents });
  }

  /**
   * Resumes the stream of an event id on the connection of a GET.
   * @returns false if the stream is unknown, or events are missing
   */
  resume(lastEventId: string, response: HttpResponse): boolean {
    const id = readEventId(lastEventId);
    const stream = id === undefined ? undefined : this.#replay?.find(id.key);
    if (id !== undefined && stream?.has(id.seq)) {
      // A response of 204 stops clients from reconnecting (HTML standard, "Server-sent events").
      if (stream.finished && id.seq === stream.last) {
        stream.fetched();
        response.endEmpty(204);
      } else response.resume(stream, id.seq);
      return true;
    }
    // The standalone GET stream can be opened anew in place of one that is not known any more.
    if (id?.kind !== 'session') return false;
    this.listen(response);
    return true;
  }

  /**
   * Uses a response as the standalone GET stream, in place of the one before. If the client is known to have lost that, the
   * new connection goes on with it, although the client did not ask for that.
   */
  listen(stream: HttpResponse): void {
    const older = this.#getStream;
    if (older?.detached === true && older.continueOn(stream)) return;
    this.#getStream = stream;
    if (this.resumable) stream.makeResumable(this, this.holdMs);
    stream.openStream();
    older?.endEmpty(200);
    this.#onListening();
    stream.onAbort(() => {
      if (this.#getStream !== stream) return;
      this.#getStream = undefined;
      this.#onListening();
    });
  }

  close(): void {
    this.#replay?.close();
    this.#getStream?.endEmpty(200);
    this.#getStream = undefined;
  }
}
