import type { ListChange } from '../../../exchange/changes/change.js';
import type { Freshness } from '../../../exchange/result-cache/cached-result.js';
import { nameMap } from '../../../jsonrpc/index.js';
import type { BackendSession } from './session.js';

/** The change of each list that a server can notify. */
const CHANGE_OF: ReadonlyMap<string, ListChange> = nameMap({
  'tools/list': 'toolsListChanged',
  'prompts/list': 'promptsListChanged',
  'resources/list': 'resourcesListChanged',
});

/**
 * How long a result of a legacy backend may be kept. The era has no hints about it: what the route configures counts, or
 * else whether the backend notifies changes of the list on a stream that is open.
 */
export function freshnessOf(
  method: string,
  session: BackendSession,
  ttlMs: ReadonlyMap<string, number>,
): Freshness | undefined {
  const configured = ttlMs.get(method);
  if (configured !== undefined) return { ttlMs: configured, hintMs: configured, shared: false };
  const { watch, info, backend } = session;
  const change = CHANGE_OF.get(method);
  if (change === undefined || watch === undefined || !info.changes.lists.has(change)) return undefined;
  return { ttlMs: backend.times.watchedListMs, hintMs: 0, shared: false, watch };
}
