import { type Edits, type JsonMember, membersOf, Rope, writeObject } from '../jsonrpc/index.js';
import type { Params } from './exchange.js';

/**
 * The params for the backend: those of the client without the envelope of its era in `_meta`, and with other members
 * there. All else is passed on byte for byte. An empty `_meta` is removed.
 * @param meta members of `_meta` to set, as JSON texts
 * @param edits further changes to the params themselves
 */
export function rewriteParams(
  params: Params,
  meta: ReadonlyMap<string, string> | undefined,
  edits?: Edits,
): Rope {
  const out = new Rope();
  const all = withMeta(params, meta, edits);
  if (all !== undefined) writeObject(out, params.bytes, params.node, all);
  else if (params.node === undefined) out.push('{}');
  else out.pushSlice(params.bytes, params.node.start, params.node.end);
  return out;
}

const WITHOUT_META: Edits = new Map([['_meta', undefined]]);

/** The edits, with that of `_meta` among them. */
function withMeta(
  params: Params,
  meta: ReadonlyMap<string, string> | undefined,
  edits: Edits | undefined,
): Edits | undefined {
  const adds = meta !== undefined && meta.size > 0;
  if (params.bareEnvelope && !adds && edits === undefined) return WITHOUT_META;
  const members = params.meta === undefined ? [] : membersOf(params.bytes, params.meta);
  let dropped = 0;
  for (const member of members) if (isOf(params.envelopeKeys, member)) dropped++;
  if (dropped === 0 && !adds) return edits;
  if (dropped === members.length && !adds) {
    return edits === undefined ? WITHOUT_META : new Map([...edits, ['_meta', undefined]]);
  }
  const changes = new Map<string, string | undefined>();
  if (dropped > 0) for (const key of params.envelopeKeys) changes.set(key, undefined);
  for (const [key, value] of meta ?? []) changes.set(key, value);
  const rewritten = new Rope();
  writeObject(rewritten, params.bytes, params.meta, changes);
  return new Map([...(edits ?? []), ['_meta', rewritten]]);
}

function isOf(names: readonly string[], member: JsonMember): boolean {
  for (const name of names) if (member.isNamed(name)) return true;
  return false;
}
