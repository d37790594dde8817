import { covers, LIST_CHANGE_KEYS, LIST_CHANGES, RESOURCE_UPDATED } from '../../exchange/changes/change.js';
import { elementsOf, getMember, type RequestFrame, stringOf } from '../../jsonrpc/index.js';

/** Whether a `subscriptions/listen` asked for a change. @param uri of an updated resource */
export type ListenFilter = (method: string, uri: string | undefined) => boolean;

/** Reads the filter of a `subscriptions/listen` (basic/patterns/subscriptions). */
export function listenFilterOf({ bytes, params }: RequestFrame): ListenFilter {
  const filter = params === undefined ? undefined : getMember(bytes, params, 'notifications');
  if (filter?.kind !== 'object') return () => false;
  const lists = LIST_CHANGE_KEYS.filter((key) => getMember(bytes, filter, key)?.kind === 'true');
  const methods = new Set<string>(lists.map((key) => LIST_CHANGES[key]));
  const resources = getMember(bytes, filter, 'resourceSubscriptions');
  const uris = (resources === undefined ? [] : elementsOf(bytes, resources))
    .map((element) => stringOf(bytes, element))
    .filter((uri) => uri !== undefined);
  return (method, uri) =>
    method === RESOURCE_UPDATED
      ? uri !== undefined && uris.some((subscribed) => covers(subscribed, uri))
      : methods.has(method);
}
