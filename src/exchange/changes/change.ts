import {
  getMember,
  type JsonNode,
  type NotificationFrame,
  notificationRope,
  Rope,
  stringOf,
  writeObject,
} from '../../jsonrpc/index.js';

/** The notifications of changed lists, by their names in the filter of `subscriptions/listen`. */
export const LIST_CHANGES = {
  toolsListChanged: 'notifications/tools/list_changed',
  promptsListChanged: 'notifications/prompts/list_changed',
  resourcesListChanged: 'notifications/resources/list_changed',
} as const;
export type ListChange = keyof typeof LIST_CHANGES;
export const LIST_CHANGE_KEYS = Object.keys(LIST_CHANGES) as ListChange[];

export const RESOURCE_UPDATED = 'notifications/resources/updated';

const LIST_OF: ReadonlyMap<string, ListChange> = new Map(
  LIST_CHANGE_KEYS.map((key) => [LIST_CHANGES[key], key]),
);

/** The list that a notification is about; undefined for other notifications. */
export function changedList(method: string): ListChange | undefined {
  return LIST_OF.get(method);
}

export function isChange(method: string): boolean {
  return method === RESOURCE_UPDATED || LIST_OF.has(method);
}

/** A notification of a change, without what ties it to one subscription. */
export interface Change {
  readonly method: string;
  /** Of a changed resource. */
  readonly uri: string | undefined;
  /** The uris whose subscribers are notified: the resource's own and every one that {@link covers} it. */
  readonly subscribable: readonly string[];
  /** The buffer that `params` refers to. */
  readonly bytes: Buffer;
  readonly params: JsonNode | undefined;
}

export function changeOf({ method, bytes, params }: NotificationFrame): Change {
  const named =
    method === RESOURCE_UPDATED && params !== undefined ? getMember(bytes, params, 'uri') : undefined;
  const uri = stringOf(bytes, named);
  return { method, uri, subscribable: subscribableOf(uri), bytes, params };
}

const NO_BYTES = Buffer.alloc(0);

/** The change of a list that may have happened while nothing was notified. */
export function listChange(key: ListChange): Change {
  return { method: LIST_CHANGES[key], uri: undefined, subscribable: [], bytes: NO_BYTES, params: undefined };
}

/**
 * The change of a resource that may have happened while nothing was notified.
 * @param uri undefined for any resource
 */
export function resourceUpdate(uri: string | undefined): Change {
  return {
    method: RESOURCE_UPDATED,
    uri,
    subscribable: subscribableOf(uri),
    bytes: NO_BYTES,
    params: undefined,
  };
}

/** Equal for changes of the same list or resource. */
export function subjectOf({ method, uri }: Change): string {
  return uri === undefined ? method : `${method} ${uri}`;
}

/**
 * The notification of a change for one subscriber.
 * @param meta members of `_meta` to set; undefined removes one
 */
export function changeNotification(change: Change, meta: ReadonlyMap<string, string | undefined>): Rope {
  const { method, uri, bytes, params } = change;
  const known = params === undefined ? undefined : getMember(bytes, params, '_meta');
  const edits = new Map<string, Rope | string | undefined>();
  const added = [...meta.values()].some((value) => value !== undefined);
  if (known?.kind === 'object' || added) {
    const rewritten = new Rope();
    writeObject(rewritten, bytes, known?.kind === 'object' ? known : undefined, meta);
    edits.set('_meta', rewritten);
  }
  if (params === undefined && uri !== undefined) edits.set('uri', JSON.stringify(uri));
  if (params === undefined && edits.size === 0) return notificationRope(method, undefined);
  const out = new Rope();
  writeObject(out, bytes, params, edits);
  return notificationRope(method, out);
}

/**
 * Whether a subscription to one uri covers changes of another: servers may notify of a part of what was subscribed to
 * (schema, `ResourceUpdatedNotification`).
 */
export function covers(subscribed: string, changed: string): boolean {
  if (subscribed === changed) return true;
  return changed.startsWith(subscribed.endsWith('/') ? subscribed : `${subscribed}/`);
}

/** Path segments beyond this one are only matched by subscriptions to the very uri. */
const MAX_DEPTH = 100;

/** Every uri that {@link covers} a changed one. */
function subscribableOf(uri: string | undefined): readonly string[] {
  if (uri === undefined) return [];
  const uris = new Set([uri]);
  for (let at = uri.indexOf('/'); at !== -1 && uris.size < MAX_DEPTH; at = uri.indexOf('/', at + 1)) {
    if (uri[at - 1] !== '/') uris.add(uri.slice(0, at));
    uris.add(uri.slice(0, at + 1));
  }
  return [...uris];
}
