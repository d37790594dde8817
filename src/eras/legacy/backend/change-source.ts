import { changeOf } from '../../../exchange/changes/change.js';
import { type ChangeFilter, isEmpty, NO_CHANGES } from '../../../exchange/changes/change-filter.js';
import type { ChangeSource, ChangeSourceListener } from '../../../exchange/changes/change-source.js';
import { ignoreFailure } from '../../../exchange/failures.js';
import type { ForwardedHeaders } from '../../../exchange/forwarded-headers.js';
import type { NotificationFrame } from '../../../jsonrpc/index.js';
import type { BackendSession } from './session.js';
import type { SessionWatcher } from './session-events.js';
import type { Lease } from './session-lease.js';
import type { SetUp } from './session-setup.js';

/**
 * The changes that a legacy backend tells of: on the GET stream of a session that is kept for them, with one
 * subscription for each resource. A session that is lost is replaced by another when the filter is applied anew.
 */
export class LegacyChangeSource implements ChangeSource, SessionWatcher {
  readonly #lease: () => Promise<Lease>;
  readonly #setUp: SetUp;
  readonly #forwarded: () => ForwardedHeaders;
  readonly #listener: ChangeSourceListener;
  #held: Lease | undefined;
  #watching: Disposable | undefined;
  #subscribed = new Set<string>();
  #closed = false;

  /**
   * @param lease gets the session that calls of the same callers share
   * @param forwarded whose credentials to use now
   */
  constructor(
    lease: () => Promise<Lease>,
    setUp: SetUp,
    forwarded: () => ForwardedHeaders,
    listener: ChangeSourceListener,
  ) {
    this.#lease = lease;
    this.#setUp = setUp;
    this.#forwarded = forwarded;
    this.#listener = listener;
  }

  async apply(filter: ChangeFilter): Promise<ChangeFilter> {
    if (isEmpty(filter)) {
      if (this.#held !== undefined) await this.#unsubscribe(this.#held.session, [...this.#subscribed]);
      this.#detach();
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
    this.#detach();
  }

  onChange(frame: NotificationFrame): void {
    this.#listener.onChange(changeOf(frame));
  }

  onGap(): void {
    this.#listener.onGap();
  }

  onUnreadable(): void {
    this.#listener.onDown();
  }

  onLost(): void {
    this.#detach();
    this.#listener.onDown();
  }

  async #session(): Promise<BackendSession> {
    if (this.#held !== undefined && !this.#held.session.lost) return this.#held.session;
    this.#detach();
    const held = await this.#lease();
    if (this.#closed) held.release();
    else {
      this.#held = held;
      // Listeners have a limit of their own; calls are not to wait until they have left.
      held.park();
      this.#watching = held.session.observe(this);
    }
    await held.session.getStreamSettled();
    return held.session;
  }

  async #applyOn(session: BackendSession, { lists, resources }: ChangeFilter): Promise<ChangeFilter> {
    const declared = session.info.changes;
    if (session.unreadable) return NO_CHANGES;
    const subscribed = this.#subscribed;
    const wanted = declared.subscribe ? resources : NO_CHANGES.resources;
    const added = [...wanted].filter((uri) => !subscribed.has(uri));
    const removed = [...subscribed].filter((uri) => !wanted.has(uri));
    // All is awaited: what is asked for next must not overtake what was asked for before.
    await Promise.all([
      this.#unsubscribe(session, removed),
      this.#setUp.askForEach(added, session, 'resources/subscribe', this.#forwarded(), (uri) =>
        subscribed.add(uri),
      ),
    ]);
    return {
      lists: new Set([...lists].filter((key) => declared.lists.has(key))),
      resources: new Set([...resources].filter((uri) => subscribed.has(uri))),
    };
  }

  /** What a subscription that the backend does not end still tells, nobody wants to hear. */
  async #unsubscribe(session: BackendSession, uris: readonly string[]): Promise<void> {
    for (const uri of uris) this.#subscribed.delete(uri);
    await this.#setUp
      .askForEach(uris, session, 'resources/unsubscribe', this.#forwarded())
      .catch(ignoreFailure);
  }

  #detach(): void {
    const held = this.#held;
    this.#held = undefined;
    this.#subscribed = new Set();
    if (held === undefined) return;
    this.#watching?.[Symbol.dispose]();
    this.#watching = undefined;
    held.release();
  }
}
