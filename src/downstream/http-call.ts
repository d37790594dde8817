import type { ForwardedHeaders, Principal } from '../exchange/types.js';
import type { McpHeaders } from './mcp-headers.js';
import type { Answer } from './response.js';

/** One HTTP request to a route's MCP endpoint, past the guards. */
export interface HttpCall {
  readonly headers: McpHeaders;
  readonly principal: Principal;
  readonly forwarded: ForwardedHeaders;
  readonly answer: Answer;
  readonly lastEventId: string | undefined;
}
