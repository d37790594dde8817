import type { ChangeFilter } from '../../../exchange/changes.js';
import { getMember, type RequestFrame } from '../../../jsonrpc/index.js';
import { readFilter } from '../wire/change-filter.js';

/** Limit of the resources in one filter. */
const MAX_RESOURCES = 1_000;

/** @returns the filter of a `subscriptions/listen` request, or what is wrong with it */
export function requestedFilter({ bytes, params }: RequestFrame): ChangeFilter | string {
  const node = params === undefined ? undefined : getMember(bytes, params, 'notifications');
  const filter = readFilter(bytes, node);
  return typeof filter === 'string' || filter.resources.size <= MAX_RESOURCES
    ? filter
    : `params.notifications.resourceSubscriptions must not hold more than ${MAX_RESOURCES}`;
}

/** Whether a `subscriptions/listen` request subscribes to tasks. */
export function namesTasks({ bytes, params }: RequestFrame): boolean {
  const node = params === undefined ? undefined : getMember(bytes, params, 'notifications');
  return node?.kind === 'object' && getMember(bytes, node, 'taskIds') !== undefined;
}
