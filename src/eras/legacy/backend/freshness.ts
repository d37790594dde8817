import type { ListChange } from '../../../exchange/changes/change.js';
import type { Freshness } from '../../../exchange/result-cache/kept-result.js';

import { nameMap } from '../../../jsonrpc/index.js';
import type { BackendSession } from './session.js';

/** How long a list is kept while the gateway hears of its changes: some servers forget to tell of one. */
const WATCHED_MS = 60_000;

/** The notification that tells of changes of a list. */
const TOLD_BY: ReadonlyMap<string, ListChange> = nameMap({
  'tools/list': 'toolsListChanged',
  'prompts/list': 'promptsListChanged',
  'resources/list': 'resourcesListChanged',
});

/**
 * How long a result of a legacy backend is good for. It says nothing of that itself: what the route says counts, and
 * else whether the session has a stream on which changes of the list are told of.
 */
export function freshnessOf(
  method: string,
  session: BackendSession,
  ttlMs: ReadonlyMap<string, number>,
): Freshness | undefined {
  const configured = ttlMs.get(method);
  if (configured !== undefined) return { ttlMs: configured, hintMs: configured, shared: false };
  const told = TOLD_BY.get(method);
  const { watch } = session;
  if (told === undefined || watch === undefined) return undefined;
  const promised = session.info.changes.lists.has(told);
  return promised ? { ttlMs: WATCHED_MS, hintMs: 0, shared: false, watch } : undefined;
}
