import { type PendingEdits, pendingMember, type ResultOutcome } from '../../../exchange/outcome.js';
import {
  elementsOf,
  getMember,
  type JsonNode,
  membersOf,
  Rope,
  stringOf,
  textOf,
  writeObject,
} from '../../../jsonrpc/index.js';
import { mentionsAnnotation, withoutAnnotations } from './header-annotations.js';
import { CACHEABLE, META } from './names.js';
import { toolTraits } from './tool-traits.js';

/** Members of a result that no other era has. */
const RESULT_MEMBERS = ['resultType', 'ttlMs', 'cacheScope'] as const;

/** Removes from a modern result the members that no other era has. */
export function decodeResult(bytes: Buffer, result: JsonNode, edits: PendingEdits): void {
  for (const key of RESULT_MEMBERS) {
    if (getMember(bytes, result, key) !== undefined) edits.set(key, undefined);
  }
  const meta = getMember(bytes, result, '_meta');
  if (meta === undefined || getMember(bytes, meta, META.serverInfo) === undefined) return;
  if (membersOf(bytes, meta).length === 1) {
    edits.set('_meta', undefined);
    return;
  }
  const rewritten = new Rope();
  writeObject(rewritten, bytes, meta, new Map([[META.serverInfo, undefined]]));
  edits.set('_meta', rewritten);
}

/** How long and for whom a client may cache a result (server/utilities/caching). */
export interface CacheHints {
  readonly ttlMs: number;
  readonly scope: 'public' | 'private';
}

/** Puts a neutral result into the form of the modern era. */
export function encodeResult(method: string, outcome: ResultOutcome, hints: CacheHints): void {
  const { edits, serverInfo } = outcome;
  edits.set('resultType', outcome.isTask === true ? '"task"' : '"complete"');
  if (CACHEABLE.has(method)) {
    edits.set('ttlMs', String(hints.ttlMs));
    edits.set('cacheScope', `"${hints.scope}"`);
  }
  if (method === 'tools/list') {
    const tools = pendingMember(outcome, 'tools');
    if (tools?.node.kind === 'array' && mentionsAnnotation(tools.bytes, tools.node))
      edits.set('tools', withValidAnnotations(tools.bytes, tools.node));
  }
  if (serverInfo !== undefined) {
    const meta = pendingMember(outcome, '_meta');
    if (meta?.node.kind === 'object') {
      const rewritten = new Rope();
      writeObject(rewritten, meta.bytes, meta.node, new Map([[META.serverInfo, serverInfo]]));
      edits.set('_meta', rewritten);
    } else edits.set('_meta', `{"${META.serverInfo}":${serverInfo}}`);
  }
}

/**
 * Removes invalid header annotations from the tools of a legacy server, to which they mean nothing: clients of this era
 * reject a tool that has one.
 */
function withValidAnnotations(bytes: Buffer, tools: JsonNode): Rope {
  const out = new Rope();
  for (const [index, tool] of elementsOf(bytes, tools).entries()) {
    out.push(index === 0 ? '[' : ',');
    const annotated = tool.kind === 'object' && mentionsAnnotation(bytes, tool);
    const schema = annotated ? getMember(bytes, tool, 'inputSchema') : undefined;
    if (schema === undefined || toolTraits(bytes, tool) !== undefined)
      out.pushSlice(bytes, tool.start, tool.end);
    else writeObject(out, bytes, tool, new Map([['inputSchema', withoutAnnotations(bytes, schema)]]));
  }
  return out.push(']');
}

/** Values of `resultType` that every modern client accepts. */
const CORE_TYPES: ReadonlySet<string> = new Set(['complete', 'input_required']);

export interface NormalizeOptions {
  /** The client accepts task handles. */
  readonly takesTasks: boolean;
  /** The result depends on a credential, so it must not be cached for others. */
  readonly forcePrivate: boolean;
}

/**
 * Corrects members of a modern backend's result for which a client would reject it as a whole.
 * @returns what is wrong with a result that cannot be corrected
 */
export function normalizeResult(
  method: string,
  outcome: ResultOutcome,
  { takesTasks, forcePrivate }: NormalizeOptions,
): string | undefined {
  const { bytes, node, edits } = outcome;
  const typeNode = getMember(bytes, node, 'resultType');
  const type = stringOf(bytes, typeNode);
  if (typeNode === undefined) edits.set('resultType', '"complete"');
  else if (type === undefined || !(CORE_TYPES.has(type) || (type === 'task' && takesTasks))) {
    return `the backend answered with the unknown resultType ${textOf(bytes, typeNode).slice(0, 100)}`;
  }
  if (CACHEABLE.has(method) && (type ?? 'complete') === 'complete') {
    const ttl = getMember(bytes, node, 'ttlMs');
    if (ttl?.kind !== 'number' || !/^\d+$/.test(textOf(bytes, ttl))) edits.set('ttlMs', '0');
    // Clients do not accept a larger number as an integer.
    else if (Number(textOf(bytes, ttl)) > Number.MAX_SAFE_INTEGER)
      edits.set('ttlMs', String(Number.MAX_SAFE_INTEGER));
    const scope = stringOf(bytes, getMember(bytes, node, 'cacheScope'));
    if (scope !== 'private' && (scope !== 'public' || forcePrivate)) edits.set('cacheScope', '"private"');
  }
  return undefined;
}
