import { LRUCache } from 'lru-cache';
import { LIST_CHANGE_KEYS, type ListChange } from '../../../exchange/changes.js';

/** Member of a server's capabilities that declares the notifications of a list (`listChanged`). */
const DECLARED_BY: Readonly<Record<ListChange, string>> = {
  toolsListChanged: 'tools',
  promptsListChanged: 'prompts',
  resourcesListChanged: 'resources',
};

interface DeclaredChanges {
  readonly lists: ReadonlySet<ListChange>;
  readonly subscribe: boolean;
}

const MAX_REMEMBERED = 100;
const remembered = new LRUCache<string, DeclaredChanges>({ max: MAX_REMEMBERED });

/**
 * The change notifications that a legacy server declares.
 * @param capabilities JSON text
 */
export function declaredChanges(capabilities: string): DeclaredChanges {
  const known = remembered.get(capabilities);
  if (known !== undefined) return known;
  const declared = JSON.parse(capabilities) as Record<
    string,
    { listChanged?: unknown; subscribe?: unknown } | undefined
  >;
  const lists = LIST_CHANGE_KEYS.filter((key) => declared[DECLARED_BY[key]]?.listChanged === true);
  const changes = { lists: new Set(lists), subscribe: declared['resources']?.subscribe === true };
  remembered.set(capabilities, changes);
  return changes;
}
