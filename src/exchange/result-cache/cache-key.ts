import { getMember, nameMap } from '../../jsonrpc/index.js';
import { LIST_CHANGES, RESOURCE_UPDATED } from '../changes/change.js';
import type { Exchange, Params } from '../exchange.js';
import type { EraName } from '../revision.js';
import { rewriteParams } from '../rewrite-params.js';
import { keyText } from '../utils/hash.js';

/** Methods whose results may be kept (server/utilities/caching), and the change that makes each of them old. */
export const KEPT_UNTIL: ReadonlyMap<string, string> = nameMap({
  'tools/list': LIST_CHANGES.toolsListChanged,
  'prompts/list': LIST_CHANGES.promptsListChanged,
  'resources/list': LIST_CHANGES.resourcesListChanged,
  'resources/templates/list': LIST_CHANGES.resourcesListChanged,
  'resources/read': RESOURCE_UPDATED,
});

/** Methods whose results may be kept. */
export const CACHEABLE: ReadonlySet<string> = new Set(KEPT_UNTIL.keys());

/** Requests with longer params are not kept. */
const MAX_PARAMS_BYTES = 2_048;

/** What a result depends on, as the text under which it is kept. */
export interface CacheKey {
  /** For this caller alone. */
  readonly own: string;
  /** For all callers of the same kind; undefined for one with a credential, to which the backend may say more. */
  readonly shared: string | undefined;
}

/** @returns undefined for what is never kept: other methods, retries, and requests that want to hear how they go on */
export function cacheKey(
  { request, caller, progressToken }: Exchange,
  backendEra: EraName | undefined,
): CacheKey | undefined {
  const { method, params } = request;
  if (!CACHEABLE.has(method) || progressToken !== undefined || caller.logLevel !== undefined)
    return undefined;
  // A client with a session of its own at the backend may be told other things than the next one.
  if (caller.era === 'legacy' && backendEra === 'legacy') return undefined;
  const size = params.node === undefined ? 0 : params.node.end - params.node.start;
  if (size > MAX_PARAMS_BYTES + (params.meta === undefined ? 0 : params.meta.end - params.meta.start))
    return undefined;
  if (isRetry(params)) return undefined;
  const shared = `${caller.era} ${caller.revision} ${method} ${paramsText(params)} ${caller.capabilities.key}`;
  return {
    own: `${shared} ${caller.principal} ${keyText(caller.clientInfo ?? '')}`,
    shared: caller.forwarded.authorization === undefined ? shared : undefined,
  };
}

/** The retry of a request that was answered with questions: it depends on more than its key (server/utilities/caching). */
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
