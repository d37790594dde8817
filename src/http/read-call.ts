import type { StreamCall } from '../downstream/http-call.js';
import type { HttpResponse } from '../downstream/http-response.js';
import { readMcpHeaders } from '../downstream/mcp-headers.js';
import { principalOf } from '../exchange/credentials.js';
import type { Endpoint } from './endpoint.js';
import type { ParsedRequest } from './pipeline.js';

/**
 * An admitted request as the eras see it.
 * @param ownParameter name of a parameter of the query that is for the gateway
 */
export function callOf(
  endpoint: Endpoint,
  { id, message }: ParsedRequest,
  response: HttpResponse,
  ownParameter?: string,
): StreamCall {
  const { authorization, 'last-event-id': lastEventId } = message.headers;
  return {
    requestId: id,
    headers: readMcpHeaders(message.rawHeaders),
    principal: principalOf(authorization),
    forwarded: endpoint.forwarding.of(message, ownParameter),
    response,
    lastEventId: typeof lastEventId === 'string' ? lastEventId : undefined,
  };
}
