import {
  type ChangeFilter,
  changeOf,
  LIST_CHANGE_KEYS,
  type ListChange,
  NO_CHANGES,
} from '../../exchange/changes.js';
import type { Upstream, UpstreamListener } from '../../exchange/hub.js';
import type { ForwardedHeaders } from '../../exchange/types.js';
import { type NotificationFrame, Rope } from '../../jsonrpc/index.js';
import { SILENT } from '../../transports/rpc-call.js';
import type { BackendSession, SessionWatcher } from './backend-session.js';
import type { Lease } from './pool.js';

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 30_000;

/** Member of a server's capabilities that promises the notifications of a list. */
const PROMISED_BY: Readonly<Record<ListChange, string>> = {
  toolsListChanged: 'tools',
  promptsListChanged: 'prompts',
  resourcesListChanged: 'resources',
};

interface Promises {
  readonly lists: ReadonlySet<ListChange>;
  readonly subscribe: boolean;
}

/** What a legacy server promises to tell of. */
export function promisesOf(capabilities: string): Promises {
  const declared = JSON.parse(capabilities) as Record<
    string,
    { listChanged?: unknown; subscribe?: unknown } | undefined
  >;
  const lists = LIST_CHANGE_KEYS.filter((key) => declared[PROMISED_BY[key]]?.listChanged === true);
  return { lists: new Set(lists), subscribe: declared['resources']?.subscribe === true };
}

/**
 * Subscribes to a resource on a session, or unsubscribes (server/resources, "Subscriptions").
 * @returns whether the backend agreed
 */
export async function subscribeOn(
  session: BackendSession,
  method: 'resources/subscribe' | 'resources/unsubscribe',
  uri: string,
  forwarded: ForwardedHeaders,
): Promise<boolean> {
  const params = new Rope().push(JSON.stringify({ uri }));
  const reply = await session.request(method, () => params, forwarded, SILENT).done;
  return reply.kind === 'answer' && reply.frame.type === 'result';
}

/**
 * The changes that a legacy backend tells of: on the GET stream of a session that is kept for them, with one
 * subscription for each resource. When the session is lost, another one takes its place and subscribes anew.
 */
export class LegacyUpstream implements Upstream, SessionWatcher {
  readonly #lease: () => Promise<Lease>;
  readonly #forwarded: ForwardedHeaders;
  readonly #listener: UpstreamListener;
  #held: Lease | undefined;
  #wanted: ChangeFilter = NO_CHANGES;
  #subscribed = new Set<string>();
  #pauseMs = FIRST_PAUSE_MS;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  /** @param lease gets the session that calls of the same callers share */
  constructor(lease: () => Promise<Lease>, forwarded: ForwardedHeaders, listener: UpstreamListener) {
    this.#lease = lease;
    this.#forwarded = forwarded;
    this.#listener = listener;
  }

  async apply(filter: ChangeFilter): Promise<ChangeFilter> {
    this.#wanted = filter;
    const session = await this.#session();
    const promises = promisesOf(session.info.capabilities);
    if (session.backend.hasNoFeed) return NO_CHANGES;
    if (promises.subscribe) await this.#subscribe(session, filter.resources);
    return {
      lists: new Set([...filter.lists].filter((key) => promises.lists.has(key))),
      resources: new Set([...filter.resources].filter((uri) => this.#subscribed.has(uri))),
    };
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    const held = this.#held;
    if (held === undefined) return;
    for (const uri of this.#subscribed)
      void subscribeOn(held.session, 'resources/unsubscribe', uri, this.#forwarded);
    this.#letGo();
  }

  onChange(frame: NotificationFrame): void {
    this.#listener.onChange(changeOf(frame));
  }

  onGap(): void {
    this.#listener.onGap();
  }

  onLost(): void {
    this.#letGo();
    if (!this.#closed) this.#later();
  }

  async #session(): Promise<BackendSession> {
    if (this.#held !== undefined && !this.#held.session.lost) return this.#held.session;
    this.#letGo();
    const held = await this.#lease();
    if (this.#closed) held.release();
    else {
      this.#held = held;
      held.session.watcher = this;
    }
    await held.session.feedSettled();
    return held.session;
  }

  /** Brings the subscriptions on the session to what is wanted. */
  async #subscribe(session: BackendSession, wanted: ReadonlySet<string>): Promise<void> {
    const added = [...wanted].filter((uri) => !this.#subscribed.has(uri));
    const removed = [...this.#subscribed].filter((uri) => !wanted.has(uri));
    for (const uri of removed) {
      this.#subscribed.delete(uri);
      void subscribeOn(session, 'resources/unsubscribe', uri, this.#forwarded);
    }
    await Promise.all(
      added.map(async (uri) => {
        if (await subscribeOn(session, 'resources/subscribe', uri, this.#forwarded))
          this.#subscribed.add(uri);
      }),
    );
  }

  #letGo(): void {
    const held = this.#held;
    this.#held = undefined;
    this.#subscribed = new Set();
    if (held === undefined) return;
    if (held.session.watcher === this) held.session.watcher = undefined;
    held.release();
  }

  /** Takes everything up again on another session, and tells that something may have been missed. */
  #later(): void {
    this.#timer = setTimeout(async () => {
      try {
        await this.apply(this.#wanted);
        this.#pauseMs = FIRST_PAUSE_MS;
        this.#listener.onGap();
      } catch {
        if (!this.#closed) this.#later();
      }
    }, this.#pauseMs).unref();
    this.#pauseMs = Math.min(this.#pauseMs * 2, LONGEST_PAUSE_MS);
  }
}
