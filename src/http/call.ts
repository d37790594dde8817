import type { IncomingMessage } from 'node:http';
import { principalOf } from '../exchange/digest.js';
import type { ForwardedHeaders } from '../exchange/types.js';
import type { Answer } from '../transports/answer.js';
import type { HttpCall } from '../transports/inbound-call.js';
import { readMcpHeaders } from '../transports/mcp-headers.js';
import type { Endpoint } from './endpoint.js';

/** What the eras want to know of a request. */
export function callOf<A extends Answer>(
  endpoint: Endpoint,
  req: IncomingMessage,
  answer: A,
): HttpCall & { readonly answer: A } {
  const { headers } = req;
  const { authorization } = headers;
  const forwarded: { -readonly [K in keyof ForwardedHeaders]: ForwardedHeaders[K] } = {};
  if (authorization !== undefined && endpoint.forwardAuthorization) forwarded.authorization = authorization;
  if (typeof headers['traceparent'] === 'string') forwarded.traceparent = headers['traceparent'];
  if (typeof headers['tracestate'] === 'string') forwarded.tracestate = headers['tracestate'];
  const lastEventId = headers['last-event-id'];
  return {
    headers: readMcpHeaders(req.rawHeaders),
    principal: principalOf(authorization),
    forwarded,
    answer,
    lastEventId: typeof lastEventId === 'string' ? lastEventId : undefined,
  };
}
