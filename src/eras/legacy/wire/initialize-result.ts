import type { ServerDescription } from '../../../exchange/outbound.js';
import type { Revision } from '../../../exchange/types.js';
import { getMember, Rope, scanJson, writeObject } from '../../../jsonrpc/index.js';
import { downgradeCapabilities } from './downgrade.js';
import { featuresFor } from './revisions.js';
import { legacyTaskCapabilities } from './tasks.js';

const UNNAMED_SERVER = '{"name":"unknown","version":"0"}';

/**
 * The result of `initialize`: from a legacy backend what it answered itself, but for the revision, which is the one
 * that the client asked for, and for members that no client could read; from another, what it says of itself.
 */
export function initializeResult(description: ServerDescription, revision: Revision): Buffer {
  const out = new Rope();
  if (description.era === 'legacy') {
    const bytes = description.result;
    const node = scanJson(bytes, 1);
    const edits = new Map<string, string | undefined>([
      ['protocolVersion', JSON.stringify(revision)],
      ['capabilities', downgradeCapabilities(description.capabilities, featuresFor(revision))],
    ]);
    if (getMember(bytes, node, 'serverInfo')?.kind !== 'object') edits.set('serverInfo', UNNAMED_SERVER);
    if (getMember(bytes, node, 'instructions')?.kind !== 'string') edits.set('instructions', undefined);
    writeObject(out, bytes, node, edits);
    return out.toBuffer();
  }
  const { capabilities, serverInfo, instructions } = description;
  out.push(`{"protocolVersion":${JSON.stringify(revision)},"capabilities":`);
  out.push(legacyTaskCapabilities(capabilities, featuresFor(revision).tasks));
  out.push(`,"serverInfo":${serverInfo ?? UNNAMED_SERVER}`);
  if (instructions !== undefined) out.push(`,"instructions":${instructions}`);
  return out.push('}').toBuffer();
}
