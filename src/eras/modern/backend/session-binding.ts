import type { Caller } from '../../../exchange/caller.js';
import {
  type Change,
  changeNotification,
  LIST_CHANGE_KEYS,
  subjectOf,
} from '../../../exchange/changes/change.js';
import { type ChangeFilter, isEmpty, NO_CHANGES } from '../../../exchange/changes/change-filter.js';
import type { Subscriber, Subscription, UpdateOptions } from '../../../exchange/changes/subscription.js';
import type { ClientSession, SessionBinding } from '../../../exchange/client-session.js';
import { type NotificationFrame, parseFrame } from '../../../jsonrpc/index.js';
import { META } from '../wire/names.js';

/** Limit of the resources that one session is subscribed to. */
const MAX_RESOURCES = 1_000;
/** Limit of the changes that are kept for a client that does not read: of its resources and of those below them. */
const MAX_HELD = 2 * MAX_RESOURCES;
const UNTAGGED: ReadonlyMap<string, undefined> = new Map([[META.subscriptionId, undefined]]);

type Join = (caller: Caller, subscriber: Subscriber) => Subscription;

/**
 * The subscriptions of a legacy session at a modern backend, which has no sessions: changes of the lists while the client
 * has its standalone GET stream open, and of the resources that it has subscribed to.
 */
export class ModernSessionBinding implements SessionBinding, Subscriber {
  readonly backendSession = undefined;
  readonly #client: ClientSession;
  readonly #join: Join;
  readonly #onFault: (error: unknown) => void;
  readonly #resources = new Set<string>();
  #caller: Caller;
  #subscription: Subscription | undefined;
  #ended = false;
  /** Changes for when the client opens its stream or reads again; undefined while it reads. */
  #held: Map<string, Change> | undefined;

  constructor(client: ClientSession, caller: Caller, join: Join, onFault: (error: unknown) => void) {
    this.#client = client;
    this.#caller = caller;
    this.#join = join;
    this.#onFault = onFault;
    if (client.listening) this.onListening();
  }

  /**
   * Uses the credentials of the client's present request from now on.
   * @returns whether they differ from the ones before
   */
  touch(caller: Caller): boolean {
    const renewed = caller.forwarded.authorization !== this.#caller.forwarded.authorization;
    this.#caller = caller;
    return renewed;
  }

  onListening(): void {
    if (this.#client.listening) this.#sendHeld();
    this.#updateSubscription({ keepTrying: true }).catch(this.#onFault);
  }

  /** Notifications of legacy clients have no meaning for a modern backend. */
  notify(): void {}

  /**
   * @returns whether the backend notifies of changes of the resource
   * @throws ExchangeError if it cannot be asked
   */
  async subscribe(uri: string): Promise<boolean> {
    if (this.#resources.has(uri)) return true;
    if (this.#resources.size >= MAX_RESOURCES) return false;
    this.#resources.add(uri);
    let honoured = NO_CHANGES;
    try {
      honoured = await this.#updateSubscription();
    } finally {
      if (!honoured.resources.has(uri)) this.#resources.delete(uri);
    }
    return this.#resources.has(uri);
  }

  async unsubscribe(uri: string): Promise<void> {
    if (this.#resources.delete(uri)) await this.#updateSubscription({ keepTrying: true });
  }

  async end(): Promise<void> {
    this.#ended = true;
    this.#subscription?.close();
  }

  /** Holds changes while the client does not read, one for each subject: the upstream is shared with other clients. */
  onChange(change: Change): void {
    if (this.#held === undefined && this.#client.listening) {
      this.#send(change);
      return;
    }
    this.#held ??= new Map();
    const subject = subjectOf(change);
    this.#held.delete(subject);
    if (this.#held.size < MAX_HELD) this.#held.set(subject, change);
  }

  /** A legacy client cannot be told. */
  onNarrowed(): void {}

  #send(change: Change): void {
    const frame = parseFrame(changeNotification(change, UNTAGGED).toBuffer()) as NotificationFrame;
    const { channel } = this.#client;
    if (channel.notify(frame)) return;
    this.#held = new Map();
    channel.onDrain(() => this.#sendHeld());
  }

  #sendHeld(): void {
    const held = this.#held;
    this.#held = undefined;
    for (const change of held?.values() ?? []) this.onChange(change);
  }

  /**
   * Updates the subscription to what the client now subscribes to.
   * @returns the filter that the backend honours
   */
  async #updateSubscription(options?: UpdateOptions): Promise<ChangeFilter> {
    const filter: ChangeFilter = {
      lists: new Set(this.#client.listening ? LIST_CHANGE_KEYS : []),
      resources: new Set(this.#resources),
    };
    if (isEmpty(filter) || this.#ended) {
      this.#subscription?.close();
      this.#subscription = undefined;
      return NO_CHANGES;
    }
    this.#subscription ??= this.#join(this.#caller, this);
    return this.#subscription.update(filter, options);
  }
}
