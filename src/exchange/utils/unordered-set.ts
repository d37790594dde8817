/** An item of an {@link UnorderedSet}. It holds its own place there, and is in one set at a time. */
export interface UnorderedSetItem {
  /** Index in the set, or {@link NOWHERE}. Written by the set only. */
  place: number;
}

export const NOWHERE = -1;

/**
 * A set of short-lived objects, in no order. A `Set` or `Map` keeps deleted items alive until the next major garbage
 * collection: V8 replaces a table that is full of deleted entries, and the old tables refer to the new ones. With one
 * item for each request, garbage collection was the largest cost of the gateway.
 */
export class UnorderedSet<T extends UnorderedSetItem> {
  readonly #items: T[] = [];

  get size(): number {
    return this.#items.length;
  }

  /** Adds an item, unless it is in the set. */
  add(item: T): void {
    if (item.place === NOWHERE) item.place = this.#items.push(item) - 1;
  }

  /** Removes an item, if it is in the set. */
  remove(item: T): void {
    const { place } = item;
    if (place === NOWHERE) return;
    item.place = NOWHERE;
    const last = this.#items.pop() as T;
    if (last === item) return;
    this.#items[place] = last;
    last.place = place;
  }

  /** Removes all items. */
  clear(): void {
    for (const item of this.#items) item.place = NOWHERE;
    this.#items.length = 0;
  }

  /**
   * Visits every item that is in the set throughout. Items may be added and removed meanwhile: added ones are not
   * visited, and an item may be visited twice when others are removed.
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
