import { getMember, nameMap } from '../../jsonrpc/index.js';
import { LIST_CHANGES, RESOURCE_UPDATED } from '../changes/change.js';
import type { Exchange, Params } from '../exchange.js';
import type { EraName } from '../revision.js';
import { rewriteParams } from '../rewrite-params.js';
import { keyText } from '../utils/hash.js';

/** The methods whose results may be cached (server/utilities/caching), and the change that invalidates each. */
export const INVALIDATED_BY: ReadonlyMap<string, string> = nameMap({
  'tools/list': LIST_CHANGES.toolsListChanged,
  'prompts/list': LIST_CHANGES.promptsListChanged,
  'resources/list': LIST_CHANGES.resourcesListChanged,
  'resources/templates/list': LIST_CHANGES.resourcesListChanged,
  'resources/read': RESOURCE_UPDATED,
});

export const CACHEABLE: ReadonlySet<string> = new Set(INVALIDATED_BY.keys());

/** Results of requests with longer params are not cached. */
const MAX_PARAMS_BYTES = 2_048;

/** The keys of a request: texts of all that its result depends on. */
export interface CacheKey {
  /** For results of this caller only. */
  readonly own: string;
  /** For results that the backend marks as shared; undefined for callers with a credential, which may get more. */
  readonly shared: string | undefined;
}

/** @returns undefined for requests that always reach the backend: other methods, retries, and those with progress or log messages */
export function cacheKey(
  { request, caller, progressToken }: Exchange,
  backendEra: EraName | undefined,
): CacheKey | undefined {
  const { method, params } = request;
  if (!CACHEABLE.has(method) || progressToken !== undefined || caller.logLevel !== undefined)
    return undefined;
  // The results of a client with its own session at the backend may depend on that session.
  if (caller.era === 'legacy' && backendEra === 'legacy') return undefined;
  const size = params.node === undefined ? 0 : params.node.end - params.node.start;
  if (size > MAX_PARAMS_BYTES + (params.meta === undefined ? 0 : params.meta.end - params.meta.start))
    return undefined;
  if (isRetry(params)) return undefined;
  const shared = `${caller.era} ${caller.revision} ${method} ${paramsText(params)} ${caller.capabilities.key} ${caller.forwarded.variant ?? ''}`;
  return {
    own: `${shared} ${caller.principal} ${keyText(caller.clientInfo ?? '')}`,
    shared: caller.forwarded.authorization === undefined ? shared : undefined,
  };
}

/** Whether a request brings answers to server requests, on which its result depends too (server/utilities/caching). */
function isRetry({ bytes, node }: Params): boolean {
  if (node === undefined) return false;
  return ROUND_MEMBERS.some((key) => getMember(bytes, node, key) !== undefined);
}

const ROUND_MEMBERS = ['inputResponses', 'requestState'] as const;
const NO_META: ReadonlyMap<string, undefined> = new Map([['_meta', undefined]]);

function paramsText(params: Params): string {
  return rewriteParams({ ...params, meta: undefined }, undefined, NO_META)
    .toBuffer()
    .toString('latin1');
}
