import {
  type Change,
  type ChangeFilter,
  changeNotification,
  LIST_CHANGE_KEYS,
} from '../../exchange/changes.js';
import type { Subscriber, Subscription } from '../../exchange/hub.js';
import type { BackendAffinity, Caller, ClientSession } from '../../exchange/types.js';
import { type NotificationFrame, parseFrame } from '../../jsonrpc/index.js';
import { META } from './names.js';

/** Resources that one session may subscribe to. */
const MAX_RESOURCES = 1_000;
/** Changes kept for a client that does not read: those of its resources, and of what lies below them. */
const MAX_LATE = 2 * MAX_RESOURCES;
const UNTAGGED: ReadonlyMap<string, undefined> = new Map([[META.subscriptionId, undefined]]);

type Subscribe = (caller: Caller, filter: ChangeFilter, subscriber: Subscriber) => Promise<Subscription>;

/**
 * What a client with a session hears of from a backend that knows no sessions: changes of the lists, while it holds a
 * stream for them, and of the resources that it has subscribed to.
 */
export class ModernAffinity implements BackendAffinity, Subscriber {
  readonly backendSession = undefined;
  readonly #client: ClientSession;
  readonly #subscribe: Subscribe;
  readonly #resources = new Set<string>();
  #caller: Caller;
  #subscription: Promise<Subscription> | undefined;
  #ended = false;
  #late: Map<string, Change> | undefined;

  constructor(client: ClientSession, caller: Caller, subscribe: Subscribe) {
    this.#client = client;
    this.#caller = caller;
    this.#subscribe = subscribe;
    if (client.listening) this.listen();
  }

  /** A request of the client came, with the credentials of now. */
  touch(caller: Caller): void {
    this.#caller = caller;
  }

  listen(): void {
    this.#settle().catch(() => {});
  }

  /** Notifications of the client's era that mean nothing to a backend of this one. */
  notify(): void {}

  /**
   * @returns whether the backend tells of changes of the resource
   * @throws ExchangeError when it cannot be asked
   */
  async subscribe(uri: string): Promise<boolean> {
    if (this.#resources.has(uri)) return true;
    if (this.#resources.size >= MAX_RESOURCES) return false;
    this.#resources.add(uri);
    let honoured: ChangeFilter | undefined;
    try {
      honoured = await this.#settle();
    } finally {
      if (honoured?.resources.has(uri) !== true) this.#resources.delete(uri);
    }
    return this.#resources.has(uri);
  }

  async unsubscribe(uri: string): Promise<void> {
    if (this.#resources.delete(uri)) await this.#settle();
  }

  async end(): Promise<void> {
    this.#ended = true;
    (await this.#subscription?.catch(() => undefined))?.close();
  }

  onChange(change: Change): void {
    const late = this.#late;
    if (late === undefined) {
      this.#tell(change);
      return;
    }
    const key = `${change.method} ${change.uri ?? ''}`;
    late.delete(key);
    if (late.size < MAX_LATE) late.set(key, change);
  }

  /** What changes while the client does not read is told once it does, and once: others listen to the same backend. */
  #tell(change: Change): void {
    const frame = parseFrame(changeNotification(change, UNTAGGED).toBuffer()) as NotificationFrame;
    const { channel } = this.#client;
    if (channel.notify(frame)) return;
    const late = new Map<string, Change>();
    this.#late = late;
    channel.onDrain(() => {
      this.#late = undefined;
      for (const one of late.values()) this.onChange(one);
    });
  }

  /** Brings the subscription to what the client wants to hear of now. */
  async #settle(): Promise<ChangeFilter | undefined> {
    if (this.#ended) return undefined;
    const filter: ChangeFilter = {
      lists: new Set(this.#client.listening ? LIST_CHANGE_KEYS : []),
      resources: new Set(this.#resources),
    };
    if (this.#subscription !== undefined) return (await this.#subscription).update(filter);
    const opening = this.#subscribe(this.#caller, filter, this);
    this.#subscription = opening;
    try {
      const subscription = await opening;
      if (this.#ended) subscription.close();
      return subscription.honoured;
    } catch (error) {
      this.#subscription = undefined;
      throw error;
    }
  }
}
