import type { ForwardedHeaders } from '../../../exchange/forwarded-headers.js';
import { addForwarded } from '../../../upstream/request-headers.js';
import { POST_HEADERS } from '../../../upstream/streamable-http.js';
import { encodeHeaderValue } from '../wire/header-values.js';
import { MODERN_VERSION } from '../wire/names.js';

const COMMON_HEADERS: readonly string[] = [...POST_HEADERS, 'mcp-protocol-version', MODERN_VERSION];

/**
 * Headers of each request to a backend, as alternating names and values (basic/transports).
 * @param name of the tool, prompt, resource or task that the request is about; see `NAMED_BY`
 */
export function requestHeaders(
  method: string,
  name: string | undefined,
  forwarded: ForwardedHeaders,
): string[] {
  const headers = [...COMMON_HEADERS, 'mcp-method', encodeHeaderValue(method)];
  if (name !== undefined) headers.push('mcp-name', encodeHeaderValue(name));
  addForwarded(headers, forwarded);
  return headers;
}
