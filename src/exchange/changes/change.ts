import {
  getMember,
  type JsonNode,
  type NotificationFrame,
  notificationRope,
  Rope,
  stringOf,
  writeObject,
} from '../../jsonrpc/index.js';

/** What can change without anyone having asked. */
export const LIST_CHANGES = {
  toolsListChanged: 'notifications/tools/list_changed',
  promptsListChanged: 'notifications/prompts/list_changed',
  resourcesListChanged: 'notifications/resources/list_changed',
} as const;
export type ListChange = keyof typeof LIST_CHANGES;
export const LIST_CHANGE_KEYS = Object.keys(LIST_CHANGES) as ListChange[];

export const RESOURCE_UPDATED = 'notifications/resources/updated';

/** Which list a notification tells the change of. */
const LIST_OF: ReadonlyMap<string, ListChange> = new Map(
  LIST_CHANGE_KEYS.map((key) => [LIST_CHANGES[key], key]),
);

export function isChange(method: string): boolean {
  return method === RESOURCE_UPDATED || LIST_OF.has(method);
}

/** Which changes somebody wants to hear of, in the words of `subscriptions/listen`. */
export interface ChangeFilter {
  readonly lists: ReadonlySet<ListChange>;
  /** Resources, by uri. */
  readonly resources: ReadonlySet<string>;
}

export const NO_CHANGES: ChangeFilter = { lists: new Set(), resources: new Set() };

/** A notification of a change, without what ties it to one subscription. */
export interface Change {
  readonly method: string;
  /** Of a changed resource. */
  readonly uri: string | undefined;
  /** The uris whose subscribers hear of it: the resource's own, and those that it lies below. */
  readonly subscribable: readonly string[];
  /** Where the params of the notification stand; undefined where there are none. */
  readonly bytes: Buffer;
  readonly params: JsonNode | undefined;
}

/** The notification of a change as the rest of the gateway knows it. */
export function changeOf({ method, bytes, params }: NotificationFrame): Change {
  const named =
    method === RESOURCE_UPDATED && params !== undefined ? getMember(bytes, params, 'uri') : undefined;
  const uri = stringOf(bytes, named);
  return { method, uri, subscribable: subscribableOf(uri), bytes, params };
}

const NOTHING = Buffer.alloc(0);

/** The change of a list that may have happened while nobody watched. */
export function listChange(key: ListChange): Change {
  return { method: LIST_CHANGES[key], uri: undefined, subscribable: [], bytes: NOTHING, params: undefined };
}

/** The change of a resource, or of any, that may have happened while nobody watched. */
export function resourceUpdate(uri: string | undefined): Change {
  return {
    method: RESOURCE_UPDATED,
    uri,
    subscribable: subscribableOf(uri),
    bytes: NOTHING,
    params: undefined,
  };
}

/** What a change is a change of: those of the same text make the same thing old. */
export function subjectOf({ method, uri }: Change): string {
  return uri === undefined ? method : `${method} ${uri}`;
}

/**
 * The notification of a change for one subscriber.
 * @param meta members of `_meta` to set, or with undefined to take away
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

export function isEmpty(filter: ChangeFilter): boolean {
  return filter.lists.size === 0 && filter.resources.size === 0;
}

/** What both want. */
export function intersect(a: ChangeFilter, b: ChangeFilter): ChangeFilter {
  return {
    lists: new Set([...a.lists].filter((key) => b.lists.has(key))),
    resources: new Set([...a.resources].filter((uri) => b.resources.has(uri))),
  };
}

export function sameFilter(a: ChangeFilter, b: ChangeFilter): boolean {
  const same = <T>(x: ReadonlySet<T>, y: ReadonlySet<T>): boolean =>
    x.size === y.size && [...x].every((item) => y.has(item));
  return same(a.lists, b.lists) && same(a.resources, b.resources);
}

/** Whether a change of a resource is one of a subscribed uri: servers may report a part of what was subscribed to. */
export function covers(subscribed: string, changed: string): boolean {
  if (subscribed === changed) return true;
  return changed.startsWith(subscribed.endsWith('/') ? subscribed : `${subscribed}/`);
}

/** Deeper parts of a resource are those of nobody but who subscribed to them. */
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

export function matches({ lists, resources }: ChangeFilter, { method, subscribable }: Change): boolean {
  const list = LIST_OF.get(method);
  if (list !== undefined) return lists.has(list);
  return resources.size > 0 && subscribable.some((uri) => resources.has(uri));
}
