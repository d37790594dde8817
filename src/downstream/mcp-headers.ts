/** The `Mcp-*` headers of a request. They are read from the raw list, since node joins repeated ones. */
export interface McpHeaders {
  readonly protocolVersion: string | undefined;
  readonly method: string | undefined;
  readonly name: string | undefined;
  readonly sessionId: string | undefined;
  /** `Mcp-Param-*`, lower-cased name and value in turn. */
  readonly params: readonly string[];
  /** A header that came more than once. */
  readonly repeated: string | undefined;
}

const NO_PARAMS: readonly string[] = [];
const PARAM_PREFIX = 'mcp-param-';

/** @param raw names and values in turn, as received */
export function readMcpHeaders(raw: readonly string[]): McpHeaders {
  let protocolVersion: string | undefined;
  let method: string | undefined;
  let name: string | undefined;
  let sessionId: string | undefined;
  let params: string[] | undefined;
  let repeated: string | undefined;
  for (let i = 0; i < raw.length; i += 2) {
    const key = raw[i] as string;
    // Skips most headers without lower-casing their names: all that are read begin with "mcp-".
    if (key.length < 8 || (key.charCodeAt(0) | 0x20) !== 0x6d || key.charCodeAt(3) !== 0x2d) continue;
    const value = raw[i + 1] as string;
    const lower = key.toLowerCase();
    if (lower === 'mcp-protocol-version') {
      if (protocolVersion !== undefined) repeated = lower;
      protocolVersion = value;
    } else if (lower === 'mcp-method') {
      if (method !== undefined) repeated = lower;
      method = value;
    } else if (lower === 'mcp-name') {
      if (name !== undefined) repeated = lower;
      name = value;
    } else if (lower === 'mcp-session-id') {
      if (sessionId !== undefined) repeated = lower;
      sessionId = value;
    } else if (lower.startsWith(PARAM_PREFIX)) {
      params ??= [];
      for (let k = 0; k < params.length; k += 2) if (params[k] === lower) repeated = lower;
      params.push(lower, value);
    }
  }
  return { protocolVersion, method, name, sessionId, params: params ?? NO_PARAMS, repeated };
}
