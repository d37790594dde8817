import {
  type Change,
  type ChangeFilter,
  changeNotification,
  isEmpty,
  LIST_CHANGE_KEYS,
  NO_CHANGES,
  subjectOf,
} from '../../../exchange/changes.js';
import type { Subscriber, Subscription, UpdateOptions } from '../../../exchange/hub.js';
import type { Caller, ClientSession, SessionBinding } from '../../../exchange/types.js';
import { type NotificationFrame, parseFrame } from '../../../jsonrpc/index.js';
import { META } from '../wire/names.js';

/** Resources that one session may subscribe to. */
const MAX_RESOURCES = 1_000;
/** Changes kept for a client that does not read: those of its resources, and of what lies below them. */
const MAX_LATE = 2 * MAX_RESOURCES;
const UNTAGGED: ReadonlyMap<string, undefined> = new Map([[META.subscriptionId, undefined]]);

type Join = (caller: Caller, subscriber: Subscriber) => Subscription;

/**
 * What a client with a session hears of from a backend that knows no sessions: changes of the lists, while it holds a
 * stream for them, and of the resources that it has subscribed to.
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
  /** What is to be told once the client holds a stream, or reads on. */
  #late: Map<string, Change> | undefined;

  constructor(client: ClientSession, caller: Caller, join: Join, onFault: (error: unknown) => void) {
    this.#client = client;
    this.#caller = caller;
    this.#join = join;
    this.#onFault = onFault;
    if (client.listening) this.listen();
  }

  /**
   * A request of the client came, with the credentials of now.
   * @returns whether they are other ones than before
   */
  touch(caller: Caller): boolean {
    const renewed = caller.forwarded.authorization !== this.#caller.forwarded.authorization;
    this.#caller = caller;
    return renewed;
  }

  listen(): void {
    if (this.#client.listening) this.#backpressure();
    this.#settle({ keepTrying: true }).catch(this.#onFault);
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
    let honoured = NO_CHANGES;
    try {
      honoured = await this.#settle();
    } finally {
      if (!honoured.resources.has(uri)) this.#resources.delete(uri);
    }
    return this.#resources.has(uri);
  }

  async unsubscribe(uri: string): Promise<void> {
    if (this.#resources.delete(uri)) await this.#settle({ keepTrying: true });
  }

  async end(): Promise<void> {
    this.#ended = true;
    this.#subscription?.close();
  }

  /** What changes while the client does not read is told once it does, and once: others listen to the same backend. */
  onChange(change: Change): void {
    if (this.#late === undefined && this.#client.listening) {
      this.#tell(change);
      return;
    }
    this.#late ??= new Map();
    const subject = subjectOf(change);
    this.#late.delete(subject);
    if (this.#late.size < MAX_LATE) this.#late.set(subject, change);
  }

  /** The era has no words for it. */
  onNarrowed(): void {}

  #tell(change: Change): void {
    const frame = parseFrame(changeNotification(change, UNTAGGED).toBuffer()) as NotificationFrame;
    const { channel } = this.#client;
    if (channel.notify(frame)) return;
    this.#late = new Map();
    channel.onDrain(() => this.#backpressure());
  }

  #backpressure(): void {
    const late = this.#late;
    this.#late = undefined;
    for (const change of late?.values() ?? []) this.onChange(change);
  }

  /**
   * Brings the subscription to what the client wants to hear of now.
   * @returns what the backend agreed to
   */
  async #settle(options?: UpdateOptions): Promise<ChangeFilter> {
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
