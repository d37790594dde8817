import { faultsTo, isFailure } from '../failures.js';
import { WrongEra } from '../side-errors.js';
import { Backoff, RECONNECT } from '../utils/backoff.js';
import { type Change, LIST_CHANGE_KEYS, listChange, resourceUpdate } from './change.js';
import {
  type ChangeFilter,
  intersect,
  isEmpty,
  matches,
  NO_CHANGES,
  sameFilter,
  union,
} from './change-filter.js';
import type { ChangeSource, ChangeSourceListener } from './change-source.js';
import type { Subscriber, Subscription, UpdateOptions } from './subscription.js';

interface SubscriberEntry extends Subscription {
  readonly subscriber: Subscriber;
  /** Resources that the backend refused are wanted no longer. */
  wanted: ChangeFilter;
  honoured: ChangeFilter;
  /** The backend could not be asked yet, and is asked again. */
  pending: boolean;
}

export interface HubOptions {
  /** Makes the source. */
  readonly open: (listener: ChangeSourceListener) => ChangeSource;
  /** Observes every change, whether or not a subscriber wants it. */
  readonly onChange: (change: Change) => void;
  /** Called once, when the hub has closed itself for want of subscribers. */
  readonly onIdle: () => void;
  readonly onFault: (error: unknown) => void;
}

/** How long a source without subscribers is kept for the next one. */
const LINGER_MS = 1_000;

/**
 * Shares one source of changes among all subscribers at a backend with the same rights. The source is asked for the
 * union of their filters, one step at a time; each gets the changes that match its own. A source that goes down is asked
 * again, with growing pauses, while there are subscribers.
 */
export class Hub {
  readonly #source: ChangeSource;
  readonly #observe: (change: Change) => void;
  readonly #onIdle: () => void;
  readonly #ignoreFailure: (error: unknown) => undefined;
  readonly #entries = new Set<SubscriberEntry>();
  /** What the source was asked for last, without the resources that the backend refused. */
  #applied: ChangeFilter = NO_CHANGES;
  #honoured: ChangeFilter = NO_CHANGES;
  #queue: Promise<unknown> = Promise.resolve();
  /** The step that has not begun yet, and will apply what is wanted then. */
  #nextStep: Promise<void> | undefined;
  #lingering: NodeJS.Timeout | undefined;
  /** Wanted changes may be missed until the source is asked again. */
  #down = false;
  readonly #backoff = new Backoff(RECONNECT);
  #retry: NodeJS.Timeout | undefined;
  #closed = false;

  constructor({ open, onChange, onIdle, onFault }: HubOptions) {
    this.#observe = onChange;
    this.#onIdle = onIdle;
    this.#ignoreFailure = faultsTo(onFault);
    this.#source = open({
      onChange: (change) => this.publish(change),
      onGap: () => this.#publishGap(),
      onDown: () => this.#goDown(),
    });
  }

  /** The resources that the source was asked for. */
  get resources(): ReadonlySet<string> {
    return this.#applied.resources;
  }

  /** Adds a subscriber that wants nothing yet. */
  join(subscriber: Subscriber): Subscription {
    clearTimeout(this.#lingering);
    const entry: SubscriberEntry = {
      subscriber,
      wanted: NO_CHANGES,
      honoured: NO_CHANGES,
      pending: false,
      update: (filter, options) => this.#update(entry, filter, options),
      close: () => this.#close(entry),
    };
    this.#entries.add(entry);
    return entry;
  }

  /** @throws ExchangeError when the backend cannot be asked */
  async subscribe(filter: ChangeFilter, subscriber: Subscriber): Promise<Subscription> {
    const subscription = this.join(subscriber);
    try {
      await subscription.update(filter);
      return subscription;
    } catch (error) {
      subscription.close();
      throw error;
    }
  }

  /** Notifies the subscribers that want a change. */
  publish(change: Change): void {
    this.#observe(change);
    for (const { subscriber, wanted } of this.#entries) {
      if (matches(wanted, change)) subscriber.onChange(change);
    }
  }

  /** Asks a source that is down again at once: credentials were renewed. */
  retryNow(): void {
    if (!this.#down) return;
    this.#backoff.reset();
    this.#settle().catch(this.#ignoreFailure);
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    clearTimeout(this.#lingering);
    clearTimeout(this.#retry);
    this.#entries.clear();
    this.#source.close();
    this.#onIdle();
  }

  async #update(
    entry: SubscriberEntry,
    filter: ChangeFilter,
    { keepTrying = false }: UpdateOptions = {},
  ): Promise<ChangeFilter> {
    const before = entry.wanted;
    entry.wanted = filter;
    try {
      await this.#settle();
    } catch (error) {
      if (!keepTrying || !isFailure(error)) {
        if (entry.wanted === filter) entry.wanted = before;
        throw error;
      }
      entry.pending = true;
      this.#goDown();
      return NO_CHANGES;
    }
    if (entry.wanted === filter) this.#agree(entry);
    return intersect(filter, this.#honoured);
  }

  /** Narrows a subscription to what the backend agreed to. */
  #agree(entry: SubscriberEntry): void {
    const { lists } = entry.wanted;
    entry.honoured = intersect(entry.wanted, this.#honoured);
    // Servers notify of lists that they do not declare, but not of resources that they refused.
    entry.wanted = { lists, resources: entry.honoured.resources };
  }

  #close(entry: SubscriberEntry): void {
    if (!this.#entries.delete(entry) || this.#closed) return;
    if (this.#entries.size === 0)
      this.#lingering = setTimeout(() => void this.#endIfIdle(), LINGER_MS).unref();
    else if (!this.#down) this.#settle().catch(this.#ignoreFailure);
  }

  /** Unsubscribes at the backend first; a subscriber that comes meanwhile waits for that and subscribes anew. */
  async #endIfIdle(): Promise<void> {
    await this.#settle().catch(this.#ignoreFailure);
    if (this.#entries.size === 0) this.close();
  }

  /** Applies what is wanted, in a step that begins when the one before is done. */
  #settle(): Promise<void> {
    if (this.#nextStep === undefined) {
      const step = this.#queue.then(() => {
        this.#nextStep = undefined;
        return this.#step();
      });
      this.#nextStep = step;
      this.#queue = step.catch(() => {});
    }
    return this.#nextStep;
  }

  async #step(): Promise<void> {
    const wanted = union([...this.#entries].map((entry) => entry.wanted));
    if (this.#closed || (!this.#down && sameFilter(wanted, this.#applied))) return;
    clearTimeout(this.#retry);
    try {
      this.#honoured = await this.#source.apply(wanted);
    } catch (error) {
      if (error instanceof WrongEra) this.#detach();
      if (this.#down) this.#tryLater();
      throw error;
    }
    this.#applied = { lists: wanted.lists, resources: this.#honoured.resources };
    if (this.#down) this.#comeUp();
  }

  #goDown(): void {
    if (this.#down || this.#closed) return;
    this.#down = true;
    this.#backoff.noteDown();
    this.#tryLater();
  }

  #tryLater(): void {
    clearTimeout(this.#retry);
    if (this.#closed) return;
    this.#retry = setTimeout(
      () => void this.#settle().catch(this.#ignoreFailure),
      this.#backoff.next(),
    ).unref();
  }

  #comeUp(): void {
    clearTimeout(this.#retry);
    this.#down = false;
    this.#backoff.noteUp();
    for (const entry of this.#entries) {
      const { honoured, pending } = entry;
      // A new subscriber has missed nothing.
      if (isEmpty(honoured) && !pending) continue;
      this.#agree(entry);
      entry.pending = false;
      if (!sameFilter(intersect(honoured, entry.honoured), honoured)) entry.subscriber.onNarrowed();
    }
    this.#publishGap();
  }

  /** The backend is of another era: its subscribers have to subscribe on the other side. */
  #detach(): void {
    for (const entry of this.#entries) {
      if (isEmpty(entry.honoured)) continue;
      entry.honoured = NO_CHANGES;
      entry.subscriber.onNarrowed();
    }
  }

  /** Notifies each subscriber that what it watches may have changed. */
  #publishGap(): void {
    for (const key of LIST_CHANGE_KEYS) this.#observe(listChange(key));
    this.#observe(resourceUpdate(undefined));
    for (const { subscriber, honoured } of this.#entries) {
      for (const key of honoured.lists) subscriber.onChange(listChange(key));
      for (const uri of honoured.resources) subscriber.onChange(resourceUpdate(uri));
    }
  }
}
