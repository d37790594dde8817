import type { ForwardedHeaders, Principal } from '../exchange/types.js';
import type { McpHeaders } from './mcp-headers.js';
import type { ClientResponse } from './response.js';

/** One HTTP request to a route's MCP endpoint, past the guards. */
export interface HttpCall {
  readonly headers: McpHeaders;
  readonly principal: Principal;
  readonly forwarded: ForwardedHeaders;
  readonly response: ClientResponse;
  readonly lastEventId: string | undefined;
}
