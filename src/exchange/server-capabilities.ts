import { type JsonNode, membersOf, Rope, writeObject } from '../jsonrpc/index.js';

/**
 * Capabilities whose values are objects (schema, `ServerCapabilities`, of every revision). Clients reject a whole
 * handshake for another value, so such a capability is removed.
 */
const OBJECTS: ReadonlySet<string> = new Set([
  'tools',
  'prompts',
  'resources',
  'logging',
  'completions',
  'tasks',
  'experimental',
  'extensions',
]);
/** Members of capabilities that are booleans. */
const FLAGS: ReadonlySet<string> = new Set(['listChanged', 'subscribe']);

/**
 * JSON text of a server's capabilities, as the server wrote them but for values that no revision allows.
 * @param node the value of `capabilities`
 */
export function statedCapabilities(bytes: Buffer, node: JsonNode | undefined): string {
  if (node?.kind !== 'object') return '{}';
  const edits = new Map<string, Rope | undefined>();
  for (const { key, value } of membersOf(bytes, node)) {
    if (!OBJECTS.has(key)) continue;
    if (value.kind !== 'object') edits.set(key, undefined);
    else {
      const odd = membersOf(bytes, value).filter((flag) => FLAGS.has(flag.key) && !isBoolean(flag.value));
      if (odd.length === 0) continue;
      const rewritten = new Rope();
      writeObject(rewritten, bytes, value, new Map(odd.map((flag) => [flag.key, undefined])));
      edits.set(key, rewritten);
    }
  }
  const out = new Rope();
  writeObject(out, bytes, node, edits);
  return out.toBuffer().toString();
}

function isBoolean({ kind }: JsonNode): boolean {
  return kind === 'true' || kind === 'false';
}
