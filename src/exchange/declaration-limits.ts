import { type Extent, exceeded, hasMoreMembers, type JsonNode } from '../jsonrpc/index.js';

/** Bounds of what a client says of itself. It is kept for as long as the client has a session, and read by recursion. */
const BOUNDS: ReadonlyMap<Declared, Extent> = new Map([
  ['capabilities', { bytes: 16 * 1024, levels: 32, members: 1_024 }],
  // Icons may be whole images (data: URLs).
  ['clientInfo', { bytes: 64 * 1024, levels: 32, members: 1_024 }],
]);
/** Of the members of `_meta`, whose values are passed on and not read. */
const MAX_META_MEMBERS = 1_024;
/** The shortest member is `"":0,`. */
const SHORTEST_MEMBER = 5;
/** Of a progress token, which every notification of progress repeats. */
export const MAX_TOKEN_BYTES = 4_096;

export type Declared = 'capabilities' | 'clientInfo';

/** The bound that a declaration exceeds, in words for the client; undefined for one that is accepted. */
export function declarationProblem(
  bytes: Buffer,
  node: JsonNode | undefined,
  what: Declared,
): string | undefined {
  if (node === undefined) return undefined;
  const extent = BOUNDS.get(what) as Extent;
  const problem = exceeded(bytes, node, extent);
  return problem === undefined ? undefined : `${what}: more than ${extent[problem]} ${problem}`;
}

/** The same for `_meta` as a whole. */
export function metaProblem(bytes: Buffer, meta: JsonNode | undefined): string | undefined {
  if (meta?.kind !== 'object' || meta.end - meta.start <= MAX_META_MEMBERS * SHORTEST_MEMBER)
    return undefined;
  return hasMoreMembers(bytes, meta, MAX_META_MEMBERS)
    ? `_meta: more than ${MAX_META_MEMBERS} members`
    : undefined;
}
