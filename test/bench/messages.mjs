// The frames that the load generator sends and the results that the backend gives, one set per era. Bodies are padded
// to about 300 bytes in both directions and both eras, so that the cells differ in what they do and not in size.

export const LEGACY_REVISION = '2025-11-25';
export const MODERN_REVISION = '2026-07-28';
export const TOOL = 'echo';

const BODY_BYTES = 300;
const TEXT = 'The quick brown fox jumps over the lazy dog. '.repeat(8);

const clientInfo = { name: 'bench-client', version: '1.0.0' };
const serverInfo = { name: 'bench-backend', version: '1.0.0' };
const capabilities = { tools: {} };
const tools = [
  {
    name: TOOL,
    description: 'Answers with a fixed text.',
    inputSchema: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
  },
];

const modernMeta = {
  'io.modelcontextprotocol/protocolVersion': MODERN_REVISION,
  'io.modelcontextprotocol/clientInfo': clientInfo,
  'io.modelcontextprotocol/clientCapabilities': {},
};
export const modernResultMeta = { 'io.modelcontextprotocol/serverInfo': serverInfo };
const cacheable = { ttlMs: 60_000, cacheScope: 'public' };

const ACCEPT = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };

/** Pads `TEXT` so that `frame(text)` serialises to about `BODY_BYTES` bytes. */
function padded(frame) {
  const room = BODY_BYTES - JSON.stringify(frame('')).length;
  return frame(TEXT.slice(0, Math.max(room, 16)));
}

/** Cuts a request open at its id: the load generator gives each request an id of its own. */
function template(request) {
  const [head, tail] = JSON.stringify({ ...request, id: '#' }).split('"#"');
  return (id) => Buffer.from(head + id + tail);
}

/**
 * A request by era, as the load generator sends it: the headers of a client of that era, the body for a request id, and
 * `fits`, which tells whether a result is the one to expect. `frame(meta)` gives the request, `name` is what it names.
 */
export function clientRequest(frame, fits, name) {
  const { method } = frame(undefined);
  const routing = { 'mcp-method': method, ...(name && { 'mcp-name': name }) };
  return {
    legacy: {
      headers: { ...ACCEPT, 'mcp-protocol-version': LEGACY_REVISION },
      body: template(frame(undefined)),
      fits,
    },
    modern: {
      headers: { ...ACCEPT, 'mcp-protocol-version': MODERN_REVISION, ...routing },
      body: template(frame(modernMeta)),
      fits,
    },
  };
}

/** A call of the backend's tool, under the name that a proxy may have given it. */
export const toolCall = (name) =>
  clientRequest(
    (meta) =>
      padded((text) => ({
        jsonrpc: '2.0',
        id: 0,
        method: 'tools/call',
        params: { name, arguments: { text }, ...(meta && { _meta: meta }) },
      })),
    (result) => result?.content?.[0]?.type === 'text',
    name,
  );

export const TOOL_CALL = toolCall(TOOL);

export const HANDSHAKE = {
  initialize: {
    headers: ACCEPT,
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 0,
      method: 'initialize',
      params: { protocolVersion: LEGACY_REVISION, capabilities: {}, clientInfo },
    }),
  },
  initialized: {
    headers: { ...ACCEPT, 'mcp-protocol-version': LEGACY_REVISION },
    body: JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' }),
  },
};

const toolResult = (extra) =>
  padded((text) => ({ jsonrpc: '2.0', id: 0, result: { content: [{ type: 'text', text }], ...extra } }))
    .result;

/** The backend's results by era and method. */
export const RESULTS = {
  legacy: {
    initialize: { protocolVersion: LEGACY_REVISION, capabilities, serverInfo },
    ping: {},
    'tools/list': { tools },
    'tools/call': toolResult({}),
  },
  modern: {
    'server/discover': {
      resultType: 'complete',
      supportedVersions: [MODERN_REVISION],
      capabilities,
      ...cacheable,
      _meta: modernResultMeta,
    },
    'tools/list': { resultType: 'complete', tools, ...cacheable, _meta: modernResultMeta },
    'tools/call': toolResult({ resultType: 'complete', _meta: modernResultMeta }),
  },
};
