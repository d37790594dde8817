import { type Edits, membersOf, Rope, writeObject } from '../jsonrpc/index.js';
import type { Params } from './exchange.js';

/**
 * The params for the backend: those of the client with the envelope of its era taken out of `_meta` and other
 * members of `_meta` put in. All else is passed on byte for byte; a `_meta` that would be left empty goes.
 * @param meta members of `_meta` to set, as JSON texts
 * @param edits further changes to the params themselves
 */
export function rewriteParams(
  params: Params,
  meta: ReadonlyMap<string, string> | undefined,
  edits?: Edits,
): Rope {
  const out = new Rope();
  const metaEdits = new Map<string, string | undefined>();
  let kept = 0;
  if (params.meta !== undefined) {
    for (const { key } of membersOf(params.bytes, params.meta)) {
      if (params.envelopeKeys.includes(key)) metaEdits.set(key, undefined);
      else kept++;
    }
  }
  if (meta !== undefined) for (const [key, value] of meta) metaEdits.set(key, value);
  if (metaEdits.size === 0 && edits === undefined) {
    if (params.node === undefined) return out.push('{}');
    return out.pushSlice(params.bytes, params.node.start, params.node.end);
  }
  let all: Edits = edits ?? new Map();
  if (metaEdits.size > 0) {
    const rewritten = new Rope();
    writeObject(rewritten, params.bytes, params.meta, metaEdits);
    const empty = kept === 0 && (meta === undefined || meta.size === 0);
    all = new Map([...all, ['_meta', empty ? undefined : rewritten]]);
  }
  writeObject(out, params.bytes, params.node, all);
  return out;
}
