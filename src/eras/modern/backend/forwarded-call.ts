import type { Exchange } from '../../../exchange/exchange.js';
import type { Outcome } from '../../../exchange/outcome.js';
import { Rope, requestRope } from '../../../jsonrpc/index.js';
import { errorOutcome } from './error-outcome.js';
import type { ModernBackend } from './modern-backend.js';
import { resultOutcome } from './results.js';
import { sendRequest } from './send-request.js';

/** Forwards a request of a modern client unchanged where possible, and returns the outcome. */
export async function forwardCall(exchange: Exchange, backend: ModernBackend): Promise<Outcome> {
  const { request, caller } = exchange;
  const headers = backend.requests.headers(caller, request.method, request.name);
  for (const part of request.paramHeaders) headers.push(part);
  const reply = await sendRequest(exchange, backend, { id: request.id, headers, body: bodyOf(exchange) });
  if (reply.kind !== 'response' || reply.frame.type === 'error')
    return errorOutcome(exchange, backend, reply);
  return resultOutcome(exchange, reply.frame, { transport: backend.transport });
}

/** The client's message itself, or one with the same id and params. */
function bodyOf({ request }: Exchange): Rope {
  const { raw } = request;
  if (raw !== undefined) return new Rope().push(raw);
  const { bytes, node } = request.params;
  const params = node === undefined ? undefined : new Rope().pushSlice(bytes, node.start, node.end);
  return requestRope(request.id, request.method, params);
}
