import { LRUCache } from 'lru-cache';
import type { Revision } from '../../../exchange/revision.js';
import type { Ticker } from '../../../exchange/utils/ticker.js';
import type { ResponseSink, Transport } from '../../../upstream/transport.js';
import type { ConfiguredLoss } from '../../era.js';
import type { InitializeInfo } from '../wire/initialize-info.js';
import { NEWEST_LEGACY } from '../wire/revisions.js';
import { LossTable } from './lost-session.js';

/** How long a backend may take over the end of a session. */
const DELETE_MS = 3_000;
const REMEMBERED_INFOS = 100;
/** What a backend cannot do is believed for so long: it may be replaced by one that can. */
const BELIEVED_MS = 600_000;

export interface LegacyBackendOptions {
  /** For messages to people. */
  readonly name: string;
  readonly transport: Transport;
  readonly ticker: Ticker;
  readonly onFault: (error: unknown) => void;
  /** Longest time for one handshake. */
  readonly handshakeMs: number;
  /** The newest revision to offer. */
  readonly newestRevision?: Revision | undefined;
  /** Responses that mean a lost session, beside the known ones. */
  readonly lost?: readonly ConfiguredLoss[];
}

/** What all sessions with one legacy backend share. */
export class LegacyBackend {
  /** For messages to people. */
  readonly name: string;
  readonly transport: Transport;
  readonly ticker: Ticker;
  /** Reports an error of the gateway itself that reaches no client. */
  readonly onFault: (error: unknown) => void;
  /** Longest time for one handshake. */
  readonly handshakeMs: number;
  /** Tells the responses that mean a lost session. */
  readonly losses: LossTable;
  #delaysGetStream = false;
  readonly #newestAllowed: Revision;
  /** Whether the backend has a GET stream. */
  #getStream: { readonly there: boolean; readonly until: number } | undefined;
  #lowered: { readonly revision: Revision; readonly until: number } | undefined;
  readonly #infos = new LRUCache<string, InitializeInfo>({ max: REMEMBERED_INFOS });

  constructor(options: LegacyBackendOptions) {
    this.name = options.name;
    this.transport = options.transport;
    this.ticker = options.ticker;
    this.onFault = options.onFault;
    this.handshakeMs = options.handshakeMs;
    this.losses = new LossTable(options.lost, options.transport.ownsSessions);
    this.#newestAllowed = options.newestRevision ?? NEWEST_LEGACY;
  }

  /** The backend said that it has no GET stream. */
  get hasNoGetStream(): boolean {
    return this.knowsGetStream && this.#getStream?.there === false;
  }

  /** Whether it is known if the backend has a GET stream. */
  get knowsGetStream(): boolean {
    if (this.transport.ownsSessions === true) return true;
    return this.#getStream !== undefined && performance.now() < this.#getStream.until;
  }

  /** The backend has a GET stream. */
  noteGetStream(): void {
    this.#getStream = { there: true, until: performance.now() + BELIEVED_MS };
  }

  /** The backend has no GET stream. */
  noteNoGetStream(): void {
    this.#getStream = { there: false, until: performance.now() + BELIEVED_MS };
  }

  /** The backend, or a proxy before it, sends nothing of a GET stream until something happens on it. */
  get delaysGetStream(): boolean {
    return this.#delaysGetStream;
  }

  noteGetStreamDelay(): void {
    this.#delaysGetStream = true;
  }

  noteNoGetStreamDelay(): void {
    this.#delaysGetStream = false;
  }

  /** Newest revision to offer: the backend may refuse newer ones instead of negotiating. */
  get newestRevision(): Revision {
    if (this.#lowered === undefined || performance.now() > this.#lowered.until) return this.#newestAllowed;
    return this.#lowered.revision;
  }

  /** The backend refused what is newer than this revision. */
  noteNewest(revision: Revision): void {
    this.#lowered = { revision, until: performance.now() + BELIEVED_MS };
  }

  /** One object for equal answers: thousands of sessions are told the same. */
  rememberInfo(info: InitializeInfo): InitializeInfo {
    const key = info.bytes.toString('latin1', info.result.start, info.result.end);
    const known = this.#infos.get(key);
    if (known !== undefined) return known;
    this.#infos.set(key, info);
    return info;
  }

  /** Tells the backend that a session is over; what it answers does not matter. */
  deleteSession(headers: readonly string[]): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        resolve();
      };
      const sink: ResponseSink = { onHead() {}, onMessage() {}, onEnd: done, onError: done };
      const upstreamRequest = this.transport.send('DELETE', headers, undefined, sink);
      const timer = setTimeout(() => {
        upstreamRequest.abort();
        resolve();
      }, DELETE_MS);
    });
  }
}
