import { statedCapabilities } from '../../../exchange/server-capabilities.js';
import type { Revision } from '../../../exchange/types.js';
import { getMember, type JsonNode, stringOf, textOf } from '../../../jsonrpc/index.js';
import { NEWEST_LEGACY } from './revisions.js';

/** What a backend said of itself in its handshake. Sessions that were told the same share one object. */
export interface InitializeInfo {
  readonly revision: Revision;
  /** Whether it settled on a revision of this era at all; what else it said is borne with, but promises nothing. */
  readonly settled: boolean;
  readonly bytes: Buffer;
  /** The result object of `initialize`. */
  readonly result: JsonNode;
  /** JSON texts of members of the result. */
  readonly capabilities: string;
  readonly serverInfo: string | undefined;
  readonly instructions: string | undefined;
}

/** Reads the result of `initialize` (basic/lifecycle). */
export function readInitializeInfo(bytes: Buffer, result: JsonNode): InitializeInfo {
  const asked = stringOf(bytes, getMember(bytes, result, 'protocolVersion'));
  const object = (key: string): string | undefined => {
    const node = getMember(bytes, result, key);
    return node?.kind === 'object' ? textOf(bytes, node) : undefined;
  };
  const instructions = getMember(bytes, result, 'instructions');
  return {
    revision: settledRevision(asked),
    settled: asked === settledRevision(asked),
    bytes,
    result,
    capabilities: statedCapabilities(bytes, getMember(bytes, result, 'capabilities')),
    serverInfo: object('serverInfo'),
    instructions: instructions?.kind === 'string' ? textOf(bytes, instructions) : undefined,
  };
}

/**
 * What a server settled on. It wants its own answer back in every header, also one from before the first revision;
 * what is no revision of this era is taken for the newest.
 */
function settledRevision(answered: string | undefined): Revision {
  const isOlder = answered !== undefined && /^\d{4}-\d\d-\d\d$/.test(answered) && answered < NEWEST_LEGACY;
  return isOlder ? answered : NEWEST_LEGACY;
}
