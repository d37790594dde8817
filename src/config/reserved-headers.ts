/** Headers of requests to a backend that the gateway sets itself, so that the configuration cannot. */

const SET_BY_GATEWAY = 'the gateway sets this header itself';
const OF_THE_CONNECTION = 'this header belongs to a single connection';

/** The reason, which is the text of the warning, by name in lower case. */
const RESERVED: Readonly<Record<string, string>> = {
  accept: SET_BY_GATEWAY,
  'accept-encoding': SET_BY_GATEWAY,
  'content-type': SET_BY_GATEWAY,
  'content-length': SET_BY_GATEWAY,
  'last-event-id': SET_BY_GATEWAY,
  'mcp-method': SET_BY_GATEWAY,
  'mcp-name': SET_BY_GATEWAY,
  'mcp-protocol-version': SET_BY_GATEWAY,
  'mcp-session-id': SET_BY_GATEWAY,
  host: `${SET_BY_GATEWAY}; to change it use backend.hostHeader`,
  // RFC 9110 section 7.6.1.
  connection: OF_THE_CONNECTION,
  expect: OF_THE_CONNECTION,
  'keep-alive': OF_THE_CONNECTION,
  'proxy-connection': OF_THE_CONNECTION,
  te: OF_THE_CONNECTION,
  trailer: OF_THE_CONNECTION,
  'transfer-encoding': OF_THE_CONNECTION,
  upgrade: OF_THE_CONNECTION,
};

/** Why a header of this name is not sent; undefined if it is. */
export function reservedHeaderReason(name: string): string | undefined {
  const lower = name.toLowerCase();
  if (lower.startsWith('mcp-param-')) return SET_BY_GATEWAY;
  return Object.hasOwn(RESERVED, lower) ? RESERVED[lower] : undefined;
}
