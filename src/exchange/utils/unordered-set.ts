/** What can be in a {@link UnorderedSet}: it keeps its own place there, and so is in one bag at a time. */
export interface UnorderedSetItem {
  /** {@link NOWHERE} while it is in no bag. To be written by the bag alone. */
  place: number;
}

export const NOWHERE = -1;

/**
 * What is there for the time of a request: comes, goes, and is now and then looked through in any order. A `Set` or
 * `Map` would hold on to all that ever was in it until the next major collection: V8 grows a new table whenever the
 * old one is full of what was deleted, and the old ones lead to the new ones. That alone made each request outlive
 * itself, and the collector the largest single cost of the gateway.
 */
export class UnorderedSet<T extends UnorderedSetItem> {
  readonly #items: T[] = [];

  get size(): number {
    return this.#items.length;
  }

  /** Adds an item; one that is in already stays where it is. */
  add(item: T): void {
    if (item.place === NOWHERE) item.place = this.#items.push(item) - 1;
  }

  /** Takes an item out, if it is in. */
  remove(item: T): void {
    const { place } = item;
    if (place === NOWHERE) return;
    item.place = NOWHERE;
    const last = this.#items.pop() as T;
    if (last === item) return;
    this.#items[place] = last;
    last.place = place;
  }

  /** Takes all out. */
  clear(): void {
    for (const item of this.#items) item.place = NOWHERE;
    this.#items.length = 0;
  }

  /**
   * Visits every item that is in from beginning to end. Items may be added and removed meanwhile; the added ones are
   * not visited, and an item may be visited twice when others go.
   */
  each(visit: (item: T) => void): void {
    for (let i = this.#items.length - 1; i >= 0; i--) {
      const item = this.#items[i];
      if (item !== undefined) visit(item);
    }
  }

  find(wanted: (item: T) => boolean): T | undefined {
    return this.#items.find(wanted);
  }
}
