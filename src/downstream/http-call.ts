import type { Principal } from '../exchange/credentials.js';
import type { ForwardedHeaders } from '../exchange/forwarded-headers.js';
import type { HttpResponse } from './http-response.js';
import type { McpHeaders } from './mcp-headers.js';
import type { ClientResponse } from './response.js';

/** One HTTP request to an MCP endpoint that has been admitted. */
export interface HttpCall {
  /** The id of the HTTP request, under which the log has it. */
  readonly requestId: string;
  readonly headers: McpHeaders;
  readonly principal: Principal;
  readonly forwarded: ForwardedHeaders;
  readonly response: ClientResponse;
  readonly lastEventId: string | undefined;
}

/** A GET, whose response is a stream of its own. */
export interface StreamCall extends HttpCall {
  readonly response: HttpResponse;
}
