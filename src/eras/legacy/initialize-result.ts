import type { ServerDescription } from '../../exchange/outbound.js';
import type { Revision } from '../../exchange/types.js';
import { getMember, Rope, scanJson, writeObject } from '../../jsonrpc/index.js';
import { neutralCapabilities } from './codec.js';

const UNNAMED_SERVER = '{"name":"unknown","version":"0"}';
const TASKS_EXTENSION = 'io.modelcontextprotocol/tasks';

/**
 * The result of `initialize`: from a legacy backend what it answered itself, but for the revision, which is the one
 * that the client asked for, and for capabilities that no client could read; from another, what it says of itself.
 */
export function initializeResult(description: ServerDescription, revision: Revision): Buffer {
  const out = new Rope();
  if (description.era === 'legacy') {
    const bytes = description.result;
    const edits = new Map([
      ['protocolVersion', JSON.stringify(revision)],
      ['capabilities', description.capabilities],
    ]);
    writeObject(out, bytes, scanJson(bytes, 1), edits);
    return out.toBuffer();
  }
  const { capabilities, serverInfo, instructions } = description;
  out.push(`{"protocolVersion":${JSON.stringify(revision)},"capabilities":`);
  out.push(legacyCapabilities(capabilities));
  out.push(`,"serverInfo":${serverInfo ?? UNNAMED_SERVER}`);
  if (instructions !== undefined) out.push(`,"instructions":${instructions}`);
  return out.push('}').toBuffer();
}

/** The tasks extension means something else than the tasks of the legacy era, so the client is not told of it. */
function legacyCapabilities(text: string): string {
  const neutral = neutralCapabilities(text);
  if (!neutral.includes(TASKS_EXTENSION)) return neutral;
  const bytes = Buffer.from(neutral);
  const root = scanJson(bytes, 2);
  const extensions = getMember(bytes, root, 'extensions');
  if (extensions === undefined) return neutral;
  const kept = new Rope();
  writeObject(kept, bytes, extensions, new Map([[TASKS_EXTENSION, undefined]]));
  const out = new Rope();
  writeObject(out, bytes, root, new Map([['extensions', kept]]));
  return out.toBuffer().toString();
}
