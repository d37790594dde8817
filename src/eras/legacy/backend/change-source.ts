import { changeOf } from '../../../exchange/changes/change.js';
import { type ChangeFilter, isEmpty, NO_CHANGES } from '../../../exchange/changes/change-filter.js';
import type { ChangeSource, ChangeSourceListener } from '../../../exchange/changes/change-source.js';
import { ignoreFailure } from '../../../exchange/failures.js';
import type { ForwardedHeaders } from '../../../exchange/forwarded-headers.js';
import type { NotificationFrame } from '../../../jsonrpc/index.js';
import type { BackendSession } from './session.js';
import type { SessionObserver } from './session-events.js';
import type { Lease } from './session-lease.js';
import { configureEach } from './session-setup.js';

/**
 * The changes that a legacy backend notifies: on the standalone GET stream of a shared session, with one subscription per
 * resource. A lost session is replaced when the filter is applied again.
 */
export class LegacyChangeSource implements ChangeSource, SessionObserver {
  readonly #acquire: () => Promise<Lease>;
  readonly #forwarded: () => ForwardedHeaders;
  readonly #listener: ChangeSourceListener;
  #lease: Lease | undefined;
  #observation: Disposable | undefined;
  #subscribed = new Set<string>();
  #closed = false;

  /**
   * @param acquire acquires the session that the calls of the same callers share
   * @param forwarded returns the headers to use now
   */
  constructor(
    acquire: () => Promise<Lease>,
    forwarded: () => ForwardedHeaders,
    listener: ChangeSourceListener,
  ) {
    this.#acquire = acquire;
    this.#forwarded = forwarded;
    this.#listener = listener;
  }

  async apply(filter: ChangeFilter): Promise<ChangeFilter> {
    if (isEmpty(filter)) {
      if (this.#lease !== undefined) await this.#unsubscribe(this.#lease.session, [...this.#subscribed]);
      this.#release();
      return NO_CHANGES;
    }
    for (let attempt = 0; ; attempt++) {
      const session = await this.#session();
      try {
        return await this.#applyOn(session, filter);
      } catch (error) {
        if (!session.lost || attempt > 0) throw error;
      }
    }
  }

  close(): void {
    this.#closed = true;
    this.#release();
  }

  onChange(frame: NotificationFrame): void {
    this.#listener.onChange(changeOf(frame));
  }

  onGap(): void {
    this.#listener.onGap();
  }

  onUnavailable(): void {
    this.#listener.onDown();
  }

  onLost(): void {
    this.#release();
    this.#listener.onDown();
  }

  async #session(): Promise<BackendSession> {
    if (this.#lease !== undefined && !this.#lease.session.lost) return this.#lease.session;
    this.#release();
    const lease = await this.#acquire();
    if (this.#closed) lease.release();
    else {
      this.#lease = lease;
      // Subscriptions have a limit of their own and leave the room in the pool to calls.
      lease.park();
      this.#observation = lease.session.observe(this);
    }
    await lease.session.getStreamSettled();
    return lease.session;
  }

  async #applyOn(session: BackendSession, { lists, resources }: ChangeFilter): Promise<ChangeFilter> {
    const declared = session.info.changes;
    if (session.getStreamUnavailable) return NO_CHANGES;
    const subscribed = this.#subscribed;
    const wanted = declared.subscribe ? resources : NO_CHANGES.resources;
    const added = [...wanted].filter((uri) => !subscribed.has(uri));
    const removed = [...subscribed].filter((uri) => !wanted.has(uri));
    // Awaited, so that the requests of the next filter do not overtake these.
    await Promise.all([
      this.#unsubscribe(session, removed),
      configureEach(session, 'resources/subscribe', added, this.#forwarded(), (uri) => subscribed.add(uri)),
    ]);
    return {
      lists: new Set([...lists].filter((key) => declared.lists.has(key))),
      resources: new Set([...resources].filter((uri) => subscribed.has(uri))),
    };
  }

  /** Ignores failures: further notifications of these resources reach no client. */
  async #unsubscribe(session: BackendSession, uris: readonly string[]): Promise<void> {
    for (const uri of uris) this.#subscribed.delete(uri);
    const unsubscribed = configureEach(session, 'resources/unsubscribe', uris, this.#forwarded());
    await unsubscribed.catch(ignoreFailure);
  }

  #release(): void {
    const lease = this.#lease;
    this.#lease = undefined;
    this.#subscribed = new Set();
    if (lease === undefined) return;
    this.#observation?.[Symbol.dispose]();
    this.#observation = undefined;
    lease.release();
  }
}
