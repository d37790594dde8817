import type { Revision } from '../../../exchange/revision.js';
import { statedCapabilities } from '../../../exchange/server-capabilities.js';
import { getMember, type JsonNode, scanJson, stringMember, textOf } from '../../../jsonrpc/index.js';
import { NEWEST_LEGACY } from './revisions.js';
import { type DeclaredChanges, declaredChanges, declaresToolTasks } from './server-capabilities.js';

/** What a backend says of itself in its handshake. Sessions with equal results share one object. */
export interface InitializeInfo {
  readonly revision: Revision;
  /** Whether the backend chose a legacy revision. Its other members are used in any case. */
  readonly settled: boolean;
  readonly bytes: Buffer;
  /** The result object of `initialize`. */
  readonly result: JsonNode;
  /** JSON texts of members of the result. */
  readonly capabilities: string;
  readonly serverInfo: string | undefined;
  readonly instructions: string | undefined;
  readonly changes: DeclaredChanges;
  /** Whether it runs tool calls as tasks. */
  readonly toolTasks: boolean;
}

/** Reads the result of `initialize` (basic/lifecycle). */
export function readInitializeInfo(bytes: Buffer, result: JsonNode): InitializeInfo {
  const answered = stringMember(bytes, result, 'protocolVersion');
  const revision = revisionOf(answered);
  const serverInfo = getMember(bytes, result, 'serverInfo');
  const instructions = getMember(bytes, result, 'instructions');
  const capabilities = statedCapabilities(bytes, getMember(bytes, result, 'capabilities'));
  return {
    revision,
    settled: answered === revision,
    bytes,
    result,
    capabilities,
    serverInfo: serverInfo?.kind === 'object' ? textOf(bytes, serverInfo) : undefined,
    instructions: instructions?.kind === 'string' ? textOf(bytes, instructions) : undefined,
    changes: declaredChanges(capabilities),
    toolTasks: declaresToolTasks(capabilities),
  };
}

/** The info of a backend whose handshake another process made: its revision is known, and nothing else. */
export function unknownInfo(revision: Revision): InitializeInfo {
  const bytes = Buffer.from('{}');
  return { ...readInitializeInfo(bytes, scanJson(bytes, 1)), revision, settled: true };
}

/**
 * The revision that a backend chose. Versions from before the first revision are kept, since such a backend expects its own
 * in every header; anything that is no legacy revision counts as the newest.
 */
function revisionOf(answered: string | undefined): Revision {
  const isOlder = answered !== undefined && /^\d{4}-\d\d-\d\d$/.test(answered) && answered < NEWEST_LEGACY;
  return isOlder ? answered : NEWEST_LEGACY;
}
