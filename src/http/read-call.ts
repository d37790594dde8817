import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { HttpCall } from '../downstream/http-call.js';
import { readMcpHeaders } from '../downstream/mcp-headers.js';
import type { ClientResponse } from '../downstream/response.js';
import { principalOf } from '../exchange/digest.js';
import { type ForwardedHeaders, NO_FORWARDED } from '../exchange/types.js';
import type { Endpoint } from './endpoint.js';

/** What the eras want to know of a request. */
export function callOf<R extends ClientResponse>(
  endpoint: Endpoint,
  req: IncomingMessage,
  response: R,
): HttpCall & { readonly response: R } {
  const { headers } = req;
  const { authorization } = headers;
  const lastEventId = headers['last-event-id'];
  return {
    headers: readMcpHeaders(req.rawHeaders),
    principal: principalOf(authorization),
    forwarded: forwardedOf(headers, endpoint.forwardAuthorization),
    response,
    lastEventId: typeof lastEventId === 'string' ? lastEventId : undefined,
  };
}

function forwardedOf(headers: IncomingHttpHeaders, withAuthorization: boolean): ForwardedHeaders {
  const { authorization, traceparent, tracestate } = headers;
  if (authorization === undefined && traceparent === undefined && tracestate === undefined)
    return NO_FORWARDED;
  const forwarded: { -readonly [K in keyof ForwardedHeaders]: ForwardedHeaders[K] } = {};
  if (authorization !== undefined && withAuthorization) forwarded.authorization = authorization;
  if (typeof traceparent === 'string') forwarded.traceparent = traceparent;
  if (typeof tracestate === 'string') forwarded.tracestate = tracestate;
  return forwarded;
}
