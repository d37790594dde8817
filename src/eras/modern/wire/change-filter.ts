import { LIST_CHANGE_KEYS, type ListChange } from '../../../exchange/changes/change.js';
import type { ChangeFilter } from '../../../exchange/changes/change-filter.js';
import { elementsOf, getMember, type JsonNode, stringOf } from '../../../jsonrpc/index.js';

/** JSON text of a filter, as the value of `notifications` (basic/patterns/subscriptions). */
export function filterText({ lists, resources }: ChangeFilter): string {
  const members: Record<string, unknown> = {};
  for (const key of LIST_CHANGE_KEYS) if (lists.has(key)) members[key] = true;
  if (resources.size > 0) members['resourceSubscriptions'] = [...resources];
  return JSON.stringify(members);
}

/** @returns the filter, or what is wrong with it */
export function readFilter(bytes: Buffer, node: JsonNode | undefined): ChangeFilter | string {
  if (node?.kind !== 'object') return 'params.notifications must be an object';
  const lists = new Set<ListChange>();
  for (const key of LIST_CHANGE_KEYS) {
    const value = getMember(bytes, node, key);
    if (value !== undefined && value.kind !== 'true' && value.kind !== 'false')
      return `params.notifications.${key} must be a boolean`;
    if (value?.kind === 'true') lists.add(key);
  }
  const uris = getMember(bytes, node, 'resourceSubscriptions');
  if (uris === undefined) return { lists, resources: new Set() };
  if (uris.kind !== 'array') return 'params.notifications.resourceSubscriptions must be an array';
  const resources = new Set<string>();
  for (const element of elementsOf(bytes, uris)) {
    const uri = stringOf(bytes, element);
    if (uri === undefined) return 'params.notifications.resourceSubscriptions must hold strings';
    resources.add(uri);
  }
  return { lists, resources };
}
