import { badGateway } from '../../../exchange/errors.js';
import type { ForwardedHeaders } from '../../../exchange/forwarded-headers.js';
import { elementsOf, getMember, Rope, stringOf } from '../../../jsonrpc/index.js';
import { SILENT } from '../../../upstream/rpc-call.js';
import type { BackendSession } from './session.js';

/** Whether a tool runs as a task, where it may; all others never do (2025-11-25, "Tool-Level Negotiation"). */
export type TaskSupport = 'required' | 'optional';

/** A list that does not end is cut here. */
const MAX_PAGES = 100;

/**
 * Asks a server which of its tools run as tasks.
 * @throws ExchangeError when it cannot be asked
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
  const { handshakeMs, name } = session.backend;
  const params = cursor === undefined ? undefined : new Rope().push(JSON.stringify({ cursor }));
  const { rpc, done } = session.request('tools/list', () => params, forwarded, SILENT);
  const expire = (): void => rpc.abort(`no answer to tools/list within ${handshakeMs} ms`);
  const timer = setTimeout(expire, handshakeMs).unref();
  const reply = await done.finally(() => clearTimeout(timer));
  if (reply.kind !== 'response' || reply.frame.type === 'error')
    throw badGateway(`${name} did not list its tools`);
  const { bytes, result } = reply.frame;
  const list = getMember(bytes, result, 'tools');
  for (const tool of list?.kind === 'array' ? elementsOf(bytes, list) : []) {
    const execution = tool.kind === 'object' ? getMember(bytes, tool, 'execution') : undefined;
    if (execution?.kind !== 'object') continue;
    const support = stringOf(bytes, getMember(bytes, execution, 'taskSupport'));
    const toolName = stringOf(bytes, getMember(bytes, tool, 'name'));
    if (toolName !== undefined && (support === 'required' || support === 'optional'))
      found.set(toolName, support);
  }
  return stringOf(bytes, getMember(bytes, result, 'nextCursor'));
}
