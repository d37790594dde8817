import { type Change, changedList, type ListChange } from './change.js';

/** The changes that a subscriber wants, in the terms of `subscriptions/listen`. */
export interface ChangeFilter {
  readonly lists: ReadonlySet<ListChange>;
  /** By uri. */
  readonly resources: ReadonlySet<string>;
}

export const NO_CHANGES: ChangeFilter = { lists: new Set(), resources: new Set() };

export function isEmpty({ lists, resources }: ChangeFilter): boolean {
  return lists.size === 0 && resources.size === 0;
}

export function matches({ lists, resources }: ChangeFilter, { method, subscribable }: Change): boolean {
  const list = changedList(method);
  if (list !== undefined) return lists.has(list);
  return resources.size > 0 && subscribable.some((uri) => resources.has(uri));
}

export function intersect(a: ChangeFilter, b: ChangeFilter): ChangeFilter {
  return {
    lists: new Set([...a.lists].filter((key) => b.lists.has(key))),
    resources: new Set([...a.resources].filter((uri) => b.resources.has(uri))),
  };
}

export function union(filters: Iterable<ChangeFilter>): ChangeFilter {
  const lists = new Set<ListChange>();
  const resources = new Set<string>();
  for (const filter of filters) {
    for (const key of filter.lists) lists.add(key);
    for (const uri of filter.resources) resources.add(uri);
  }
  return { lists, resources };
}

export function sameFilter(a: ChangeFilter, b: ChangeFilter): boolean {
  const same = <T>(x: ReadonlySet<T>, y: ReadonlySet<T>): boolean =>
    x.size === y.size && [...x].every((item) => y.has(item));
  return same(a.lists, b.lists) && same(a.resources, b.resources);
}
