import type { IncomingHttpHeaders } from 'node:http';
import type { StreamCall } from '../downstream/http-call.js';
import type { HttpResponse } from '../downstream/http-response.js';
import { readMcpHeaders } from '../downstream/mcp-headers.js';
import { principalOf } from '../exchange/credentials.js';
import { FORWARDED_HEADERS, type ForwardedHeaders, NO_FORWARDED } from '../exchange/forwarded-headers.js';
import type { Endpoint } from './endpoint.js';
import type { ParsedRequest } from './pipeline.js';

/** An admitted request as the eras see it. */
export function callOf(
  endpoint: Endpoint,
  { id, message }: ParsedRequest,
  response: HttpResponse,
): StreamCall {
  const { headers } = message;
  const { authorization } = headers;
  const lastEventId = headers['last-event-id'];
  return {
    requestId: id,
    headers: readMcpHeaders(message.rawHeaders),
    principal: principalOf(authorization),
    forwarded: forwardedOf(headers, endpoint.forwardAuthorization ? FORWARDED_HEADERS : WITHOUT_CREDENTIALS),
    response,
    lastEventId: typeof lastEventId === 'string' ? lastEventId : undefined,
  };
}

type Name = (typeof FORWARDED_HEADERS)[number];

/** Where the backend does not get the credentials of the callers. */
const WITHOUT_CREDENTIALS: readonly Name[] = FORWARDED_HEADERS.filter((name) => name !== 'authorization');

function forwardedOf(headers: IncomingHttpHeaders, names: readonly Name[]): ForwardedHeaders {
  let forwarded: { [K in Name]?: string } | undefined;
  for (const name of names) {
    const value = headers[name];
    if (typeof value !== 'string') continue;
    forwarded ??= {};
    forwarded[name] = value;
  }
  return forwarded ?? NO_FORWARDED;
}
