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

/** The one source of changes that all subscribers of a hub share. */
export interface Upstream {
  /**
   * Makes sure that these changes are heard of, and no others that cost anything.
   * @returns what the backend agreed to
   * @throws ExchangeError when it cannot be asked
   */
  apply(filter: ChangeFilter): Promise<ChangeFilter>;
  close(): void;
}

/** What an upstream tells its hub. */
export interface UpstreamListener {
  onChange(change: Change): void;
  /** Changes may have been missed: the upstream was down, and is back with what it was asked for. */
  onGap(): void;
}

export interface Subscriber {
  /** @returns nothing: a subscriber that cannot keep up ends itself */
  onChange(change: Change): void;
}

/** One subscriber's place in a hub. */
export interface Subscription {
  /** What of the wanted filter is really heard of. */
  readonly honoured: ChangeFilter;
  /**
   * Wants other changes from now on.
   * @throws ExchangeError when the backend cannot be asked; what was wanted before then stands
   */
  update(filter: ChangeFilter): Promise<ChangeFilter>;
  close(): void;
}

interface Entry extends Subscription {
  readonly subscriber: Subscriber;
  wanted: ChangeFilter;
  honoured: ChangeFilter;
}

/** How long an upstream that nobody needs any more is kept for the next one who does. */
const LINGER_MS = 1_000;

/**
 * Shares one upstream among all who want to hear of changes at the same backend with the same rights. The upstream is
 * asked for the union of what they want, one step at a time; each hears what it asked for itself.
 */
export class Hub {
  readonly #upstream: Upstream;
  readonly #observe: (change: Change) => void;
  readonly #onIdle: () => void;
  readonly #entries = new Set<Entry>();
  #applied: ChangeFilter = NO_CHANGES;
  #honoured: ChangeFilter = NO_CHANGES;
  #queue: Promise<unknown> = Promise.resolve();
  #lingering: NodeJS.Timeout | undefined;
  #closed = false;

  /**
   * @param open makes the upstream
   * @param observe told of every change, whoever listens
   * @param onIdle called once, when the hub has closed itself because nobody is left
   */
  constructor(
    open: (listener: UpstreamListener) => Upstream,
    observe: (change: Change) => void,
    onIdle: () => void,
  ) {
    this.#observe = observe;
    this.#onIdle = onIdle;
    this.#upstream = open({ onChange: (change) => this.tell(change), onGap: () => this.#tellOfGap() });
  }

  get size(): number {
    return this.#entries.size;
  }

  /** @throws ExchangeError when the backend cannot be asked */
  async subscribe(filter: ChangeFilter, subscriber: Subscriber): Promise<Subscription> {
    clearTimeout(this.#lingering);
    const entry: Entry = {
      subscriber,
      wanted: filter,
      honoured: NO_CHANGES,
      update: (next) => this.#update(entry, next),
      close: () => this.#close(entry),
    };
    this.#entries.add(entry);
    try {
      await this.#settle();
    } catch (error) {
      this.#close(entry);
      throw error;
    }
    entry.honoured = intersect(entry.wanted, this.#honoured);
    return entry;
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    clearTimeout(this.#lingering);
    this.#entries.clear();
    this.#upstream.close();
    this.#onIdle();
  }

  async #update(entry: Entry, filter: ChangeFilter): Promise<ChangeFilter> {
    const before = entry.wanted;
    entry.wanted = filter;
    try {
      await this.#settle();
    } catch (error) {
      entry.wanted = before;
      throw error;
    }
    entry.honoured = intersect(filter, this.#honoured);
    return entry.honoured;
  }

  #close(entry: Entry): void {
    if (!this.#entries.delete(entry) || this.#closed) return;
    if (this.#entries.size === 0) this.#lingering = setTimeout(() => this.#closeIfIdle(), LINGER_MS).unref();
    else this.#settle().catch(() => {});
  }

  #closeIfIdle(): void {
    if (this.#entries.size === 0) this.close();
  }

  /** Brings the upstream to what is wanted now; steps that come at once are taken one after the other. */
  #settle(): Promise<void> {
    const step = this.#queue.then(async () => {
      const wanted = this.#union();
      if (this.#closed || sameFilter(wanted, this.#applied)) return;
      this.#honoured = isEmpty(wanted) ? NO_CHANGES : await this.#upstream.apply(wanted);
      this.#applied = wanted;
    });
    this.#queue = step.catch(() => {});
    return step;
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

  /** Hands a change to all who want to hear of it. */
  tell(change: Change): void {
    this.#observe(change);
    for (const { subscriber, wanted } of this.#entries) {
      if (matches(wanted, change)) subscriber.onChange(change);
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
