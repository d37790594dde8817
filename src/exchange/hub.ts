import { Backoff, RECONNECT } from './backoff.js';
import {
  type Change,
  type ChangeFilter,
  intersect,
  isEmpty,
  LIST_CHANGE_KEYS,
  type ListChange,
  listChange,
  matches,
  NO_CHANGES,
  resourceUpdate,
  sameFilter,
} from './changes.js';
import { faultsTo, isFailure } from './failures.js';
import { WrongEra } from './side-errors.js';

/** The one source of changes that all subscribers of a hub share. */
export interface Upstream {
  /**
   * Makes sure that these changes are heard of, and no others that cost anything; with none it lets go of the backend.
   * Never called before the call before it is done. Where it fails, what was heard of before still is, unless
   * {@link UpstreamListener.onDown} says otherwise.
   * @returns what the backend agreed to
   * @throws ExchangeError when it cannot be asked
   */
  apply(filter: ChangeFilter): Promise<ChangeFilter>;
  close(): void;
}

/** What an upstream tells its hub. */
export interface UpstreamListener {
  onChange(change: Change): void;
  /** Changes may have been missed; now they are heard of again. */
  onGap(): void;
  /** Nothing is heard of any more, until the filter is applied again. */
  onDown(): void;
}

export interface Subscriber {
  /** Called for what was asked for, also before it is known what will be heard of. One that cannot keep up ends itself. */
  onChange(change: Change): void;
  /** Something is not heard of any more that was; {@link Subscription.honoured} tells what is left. */
  onNarrowed(): void;
}

export interface UpdateOptions {
  /**
   * Asks a backend that cannot be asked again until it can, in place of an error. The subscriber is then notified of a
   * change of all that it wants.
   */
  readonly keepTrying?: boolean;
}

/** One subscriber's place in a hub. */
export interface Subscription {
  /** What of the wanted filter the backend agreed to tell of. */
  readonly honoured: ChangeFilter;
  /**
   * Wants other changes from now on.
   * @throws ExchangeError when the backend cannot be asked; what was wanted before then stands
   */
  update(filter: ChangeFilter, options?: UpdateOptions): Promise<ChangeFilter>;
  close(): void;
}

interface Entry extends Subscription {
  readonly subscriber: Subscriber;
  /** Resources that the backend refused are wanted no longer. */
  wanted: ChangeFilter;
  honoured: ChangeFilter;
  /** It waits for a backend that could not be asked. */
  waits: boolean;
}

export interface HubOptions {
  /** Makes the upstream. */
  readonly open: (listener: UpstreamListener) => Upstream;
  /** Observes every change, whether or not a subscriber wants it. */
  readonly onChange: (change: Change) => void;
  /** Called once, when the hub has closed itself for want of subscribers. */
  readonly onIdle: () => void;
  readonly onFault: (error: unknown) => void;
}

/** How long an upstream that nobody needs any more is kept for the next one who does. */
const LINGER_MS = 1_000;

/**
 * Shares one upstream among all who want to hear of changes at the same backend with the same rights. The upstream is
 * asked for the union of what they want, one step at a time; each hears what it asked for itself. An upstream that goes
 * down is taken up again, with growing pauses, for as long as anyone wants it.
 */
export class Hub {
  readonly #upstream: Upstream;
  readonly #observe: (change: Change) => void;
  readonly #onIdle: () => void;
  readonly #ignoreFailure: (error: unknown) => undefined;
  readonly #entries = new Set<Entry>();
  /** What the upstream was asked for last, without the resources that the backend refused. */
  #applied: ChangeFilter = NO_CHANGES;
  #honoured: ChangeFilter = NO_CHANGES;
  #queue: Promise<unknown> = Promise.resolve();
  /** The step that is still to begin: it will see what is wanted then. */
  #nextStep: Promise<void> | undefined;
  #lingering: NodeJS.Timeout | undefined;
  /** Something that is wanted may not be heard of until the upstream is asked again. */
  #down = false;
  readonly #backoff = new Backoff(RECONNECT);
  #retry: NodeJS.Timeout | undefined;
  #closed = false;

  constructor({ open, onChange, onIdle, onFault }: HubOptions) {
    this.#observe = onChange;
    this.#onIdle = onIdle;
    this.#ignoreFailure = faultsTo(onFault);
    this.#upstream = open({
      onChange: (change) => this.tell(change),
      onGap: () => this.#tellOfGap(),
      onDown: () => this.#goDown(),
    });
  }

  get size(): number {
    return this.#entries.size;
  }

  /** The resources that the upstream was asked to tell of. */
  get resources(): ReadonlySet<string> {
    return this.#applied.resources;
  }

  /** Takes a place without wanting anything yet. */
  join(subscriber: Subscriber): Subscription {
    clearTimeout(this.#lingering);
    const entry: Entry = {
      subscriber,
      wanted: NO_CHANGES,
      honoured: NO_CHANGES,
      waits: false,
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

  /** Hands a change to all who want to hear of it. */
  tell(change: Change): void {
    this.#observe(change);
    for (const { subscriber, wanted } of this.#entries) {
      if (matches(wanted, change)) subscriber.onChange(change);
    }
  }

  /** What keeps the upstream down may be over. */
  hurry(): void {
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
    this.#upstream.close();
    this.#onIdle();
  }

  async #update(
    entry: Entry,
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
      entry.waits = true;
      this.#goDown();
      return NO_CHANGES;
    }
    if (entry.wanted === filter) this.#agree(entry);
    return intersect(filter, this.#honoured);
  }

  /** Takes what the backend agreed to for what a subscriber hears of. */
  #agree(entry: Entry): void {
    const { lists } = entry.wanted;
    entry.honoured = intersect(entry.wanted, this.#honoured);
    // A list may be told of all the same; a resource that was refused is not.
    entry.wanted = { lists, resources: entry.honoured.resources };
  }

  #close(entry: Entry): void {
    if (!this.#entries.delete(entry) || this.#closed) return;
    if (this.#entries.size === 0) this.#lingering = setTimeout(() => this.#endIfIdle(), LINGER_MS).unref();
    else if (!this.#down) this.#settle().catch(this.#ignoreFailure);
  }

  /** Lets go of the backend in the proper way first; whoever comes meanwhile waits for that, and begins anew. */
  async #endIfIdle(): Promise<void> {
    await this.#settle().catch(this.#ignoreFailure);
    if (this.#entries.size === 0) this.close();
  }

  /** Brings the upstream to what is wanted now, in a step that begins when the one before is done. */
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
    const wanted = this.#union();
    if (this.#closed || (!this.#down && sameFilter(wanted, this.#applied))) return;
    clearTimeout(this.#retry);
    try {
      this.#honoured = await this.#upstream.apply(wanted);
    } catch (error) {
      if (error instanceof WrongEra) this.#detach();
      if (this.#down) this.#tryLater();
      throw error;
    }
    this.#applied = { lists: wanted.lists, resources: this.#honoured.resources };
    if (this.#down) this.#comeUp();
  }

  #union(): ChangeFilter {
    const lists = new Set<ListChange>();
    const resources = new Set<string>();
    for (const { wanted } of this.#entries) {
      for (const key of wanted.lists) lists.add(key);
      for (const uri of wanted.resources) resources.add(uri);
    }
    return { lists, resources };
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
    this.#retry = setTimeout(() => this.#settle().catch(this.#ignoreFailure), this.#backoff.next()).unref();
  }

  #comeUp(): void {
    clearTimeout(this.#retry);
    this.#down = false;
    this.#backoff.noteUp();
    for (const entry of this.#entries) {
      const { honoured, waits } = entry;
      // Whoever is only coming has missed nothing.
      if (isEmpty(honoured) && !waits) continue;
      this.#agree(entry);
      entry.waits = false;
      if (!sameFilter(intersect(honoured, entry.honoured), honoured)) entry.subscriber.onNarrowed();
    }
    this.#tellOfGap();
  }

  /** The backend will not be heard of on this way any more: whoever asks again is shown another. */
  #detach(): void {
    for (const entry of this.#entries) {
      if (isEmpty(entry.honoured)) continue;
      entry.honoured = NO_CHANGES;
      entry.subscriber.onNarrowed();
    }
  }

  /** Everybody is told that what it watches may have changed. */
  #tellOfGap(): void {
    for (const key of LIST_CHANGE_KEYS) this.#observe(listChange(key));
    this.#observe(resourceUpdate(undefined));
    for (const { subscriber, honoured } of this.#entries) {
      for (const key of honoured.lists) subscriber.onChange(listChange(key));
      for (const uri of honoured.resources) subscriber.onChange(resourceUpdate(uri));
    }
  }
}
