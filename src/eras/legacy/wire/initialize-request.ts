import type { Revision } from '../../../exchange/revision.js';
import { Rope } from '../../../jsonrpc/index.js';
import { NEWEST_LEGACY } from './revisions.js';

/**
 * Params of `initialize` (basic/lifecycle, "Initialization").
 * @param capabilities JSON text
 * @param clientInfo JSON text of the Implementation object
 */
export function initializeParams(revision: Revision, capabilities: string, clientInfo: string): Rope {
  return new Rope()
    .push('{"protocolVersion":')
    .push(JSON.stringify(revision))
    .push(',"capabilities":')
    .push(capabilities)
    .push(',"clientInfo":')
    .push(clientInfo)
    .push('}');
}

/** `initialize` of a client that declares no capability. */
export function initializeRequest(
  clientInfo: string,
  revision: Revision = NEWEST_LEGACY,
): { method: string; params: string } {
  return {
    method: 'initialize',
    params: initializeParams(revision, '{}', clientInfo).toBuffer().toString(),
  };
}
