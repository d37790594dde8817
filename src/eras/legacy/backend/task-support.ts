import type { ForwardedHeaders } from '../../../exchange/forwarded-headers.js';
import { elementsOf, getMember, Rope, stringMember } from '../../../jsonrpc/index.js';
import { backendFailure } from '../../../upstream/backend-errors.js';
import { LEGACY_BACKEND_ERRORS } from './errors.js';
import type { BackendSession } from './session.js';

/** Whether a tool must or may run as a task; others never do (2025-11-25, "Tool-Level Negotiation"). */
export type TaskSupport = 'required' | 'optional';

/** Limit of the pages that are read: a list may never end. */
const MAX_PAGES = 100;

/**
 * Reads from a server's list which of its tools run as tasks.
 * @throws ExchangeError if the server does not answer with a list
 */
export async function readTaskSupport(
  session: BackendSession,
  forwarded: ForwardedHeaders,
): Promise<ReadonlyMap<string, TaskSupport>> {
  const found = new Map<string, TaskSupport>();
  let cursor: string | undefined;
  for (let page = 0; page < MAX_PAGES; page++) {
    const next = await readPage(session, forwarded, cursor, found);
    if (next === undefined || next === cursor) break;
    cursor = next;
  }
  return found;
}

/** @returns the cursor of the next page */
async function readPage(
  session: BackendSession,
  forwarded: ForwardedHeaders,
  cursor: string | undefined,
  found: Map<string, TaskSupport>,
): Promise<string | undefined> {
  const params = cursor === undefined ? undefined : new Rope().push(JSON.stringify({ cursor }));
  const reply = await session.timedRequest('tools/list', params, forwarded);
  if (reply.kind !== 'response' || reply.frame.type === 'error')
    throw backendFailure(
      session.backend,
      LEGACY_BACKEND_ERRORS.ERAGATE_TOOLS_NOT_LISTED,
      'did not list its tools',
    );
  const { bytes, result } = reply.frame;
  const list = getMember(bytes, result, 'tools');
  for (const tool of list?.kind === 'array' ? elementsOf(bytes, list) : []) {
    const execution = tool.kind === 'object' ? getMember(bytes, tool, 'execution') : undefined;
    if (execution?.kind !== 'object') continue;
    const support = stringMember(bytes, execution, 'taskSupport');
    const toolName = stringMember(bytes, tool, 'name');
    if (toolName !== undefined && (support === 'required' || support === 'optional'))
      found.set(toolName, support);
  }
  return stringMember(bytes, result, 'nextCursor');
}
