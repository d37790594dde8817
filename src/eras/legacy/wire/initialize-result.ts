import type { ServerDescription } from '../../../exchange/outbound.js';
import type { Revision } from '../../../exchange/revision.js';
import { editedObject, getMember, Rope, scanJson } from '../../../jsonrpc/index.js';
import { featuresFor } from './revisions.js';
import { downgradeServerCapabilities, legacyServerCapabilities } from './server-capabilities.js';

/** Clients reject a result without `serverInfo`. */
const UNNAMED_SERVER = '{"name":"unknown","version":"0"}';

/**
 * The result of `initialize` for a client. That of a legacy backend is passed on, but for the revision, which is the one
 * that the client requested, and for members for which clients would reject it. Other backends' is made from what they
 * say of themselves.
 */
export function initializeResult(description: ServerDescription, revision: Revision): Buffer {
  return (
    description.era === 'legacy' ? fromLegacy(description, revision) : fromNeutral(description, revision)
  ).toBuffer();
}

function fromLegacy({ result, capabilities }: ServerDescription, revision: Revision): Rope {
  const node = scanJson(result, 1);
  const edits = new Map<string, string | undefined>([
    ['protocolVersion', JSON.stringify(revision)],
    ['capabilities', downgradeServerCapabilities(capabilities, featuresFor(revision))],
  ]);
  if (getMember(result, node, 'serverInfo')?.kind !== 'object') edits.set('serverInfo', UNNAMED_SERVER);
  if (getMember(result, node, 'instructions')?.kind !== 'string') edits.set('instructions', undefined);
  return editedObject(result, node, edits);
}

function fromNeutral(
  { capabilities, serverInfo, instructions }: ServerDescription,
  revision: Revision,
): Rope {
  const out = new Rope().push(`{"protocolVersion":${JSON.stringify(revision)},"capabilities":`);
  out.push(legacyServerCapabilities(capabilities, featuresFor(revision)));
  out.push(`,"serverInfo":${serverInfo ?? UNNAMED_SERVER}`);
  if (instructions !== undefined) out.push(`,"instructions":${instructions}`);
  return out.push('}');
}
