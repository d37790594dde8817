import { LRUCache } from 'lru-cache';
import type { BackendLabel } from '../../../exchange/backend-label.js';
import type { Revision } from '../../../exchange/revision.js';
import type { Ticker } from '../../../exchange/utils/ticker.js';
import type { ResponseSink, Transport } from '../../../upstream/transport.js';
import type { ConfiguredLoss } from '../../era.js';
import type { InitializeInfo } from '../wire/initialize-info.js';
import { NEWEST_LEGACY } from '../wire/revisions.js';
import { LostSessionRules } from './lost-sessions.js';
import { NotificationSlots } from './notification-queue.js';
import { TIME_LIMITS, type TimeLimits } from './time-limits.js';

const MAX_INFOS = 100;

export interface LegacyBackendOptions extends BackendLabel {
  readonly transport: Transport;
  readonly ticker: Ticker;
  readonly onFault: (error: unknown) => void;
  /** Longest time for one handshake. */
  readonly handshakeMs: number;
  /** The newest revision to offer. */
  readonly newestRevision?: Revision | undefined;
  /** Responses that mean a lost session, beside the known ones. */
  readonly lost?: readonly ConfiguredLoss[];
  readonly times?: Partial<TimeLimits>;
}

/** State that all sessions with one legacy backend share. */
export class LegacyBackend implements BackendLabel {
  readonly notificationSlots = new NotificationSlots();
  readonly route: string;
  readonly name: string;
  readonly transport: Transport;
  readonly ticker: Ticker;
  /** Reports an error of the gateway itself that reaches no client. */
  readonly onFault: (error: unknown) => void;
  /** Longest time for one handshake. */
  readonly handshakeMs: number;
  readonly times: TimeLimits;
  readonly lostSessions: LostSessionRules;
  #delaysGetStream = false;
  readonly #newestAllowed: Revision;
  /** Whether the backend has a GET stream. */
  #getStream: { readonly there: boolean; readonly until: number } | undefined;
  #lowered: { readonly revision: Revision; readonly until: number } | undefined;
  readonly #infos = new LRUCache<string, InitializeInfo>({ max: MAX_INFOS });

  constructor(options: LegacyBackendOptions) {
    this.route = options.route;
    this.name = options.name;
    this.transport = options.transport;
    this.ticker = options.ticker;
    this.onFault = options.onFault;
    this.handshakeMs = options.handshakeMs;
    this.times = { ...TIME_LIMITS, ...options.times };
    this.lostSessions = new LostSessionRules(options.lost, options.transport.ownsSessions);
    this.#newestAllowed = options.newestRevision ?? NEWEST_LEGACY;
  }

  /** The backend said that it has no GET stream. */
  get hasNoGetStream(): boolean {
    return this.knowsGetStream && this.#getStream?.there === false;
  }

  /** The backend has opened a GET stream lately. */
  get hasGetStream(): boolean {
    return this.knowsGetStream && this.#getStream?.there === true;
  }

  /** Whether it is known if the backend has a GET stream. */
  get knowsGetStream(): boolean {
    if (this.transport.ownsSessions === true) return true;
    return this.#getStream !== undefined && performance.now() < this.#getStream.until;
  }

  /** The backend has a GET stream. */
  noteGetStream(): void {
    this.#getStream = { there: true, until: performance.now() + this.times.limitationMs };
  }

  /** The backend has no GET stream. */
  noteNoGetStream(): void {
    this.#getStream = { there: false, until: performance.now() + this.times.limitationMs };
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
    this.#lowered = { revision, until: performance.now() + this.times.limitationMs };
  }

  /** Returns one object for equal results: thousands of sessions may have the same. */
  shareInfo(info: InitializeInfo): InitializeInfo {
    const key = info.bytes.toString('latin1', info.result.start, info.result.end);
    const known = this.#infos.get(key);
    if (known !== undefined) return known;
    this.#infos.set(key, info);
    return info;
  }

  /** Ends a session at the backend, whatever it answers. */
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
      }, this.times.endSessionMs);
    });
  }
}
