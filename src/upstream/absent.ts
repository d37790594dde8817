import type { RpcReply } from './rpc-call.js';

/** Statuses of a path at which there is nothing. Servers also send them with a JSON-RPC error, which proves that they are there. */
const STATUSES: ReadonlySet<number> = new Set([404, 410]);

/** Whether a backend that is not there answers like this. */
export function isAbsence(reply: RpcReply): boolean {
  return reply.kind === 'no-response' && STATUSES.has(reply.status);
}
