// Frames about a long list of tools and about its changes.

import { clientRequest, LEGACY_REVISION, modernResultMeta, RESULTS } from './messages.mjs';

const TOOLS = 100;
const SUBSCRIPTION_ID = 'io.modelcontextprotocol/subscriptionId';

/** Ends every announcement of the backend: who has read this has read all of it. */
export const CHANGE_END = 'end-of-change';

const text = (description) => ({ type: 'string', description });

const tools = Array.from({ length: TOOLS }, (_, i) => ({
  name: `records_search_${i}`,
  title: `Search records of kind ${i}`,
  description: 'Searches the records of one kind and returns those that match, the most recent ones first.',
  inputSchema: {
    type: 'object',
    properties: { query: text('Words to look for.'), limit: { type: 'integer', minimum: 1, maximum: 100 } },
    required: ['query'],
  },
  annotations: { readOnlyHint: true, openWorldHint: false },
}));

/** Bytes of the list as JSON. */
export const LIST_BYTES = JSON.stringify(tools).length;

/** `tools/list` by era. */
export const TOOL_LIST = clientRequest(
  (meta) => ({ jsonrpc: '2.0', id: 0, method: 'tools/list', ...(meta && { params: { _meta: meta } }) }),
  (result) => result?.tools?.length === TOOLS,
);

/** A modern client's wish to hear of changed tools. */
export const LISTEN = clientRequest((meta) => ({
  jsonrpc: '2.0',
  id: 0,
  method: 'subscriptions/listen',
  params: { notifications: { toolsListChanged: true }, _meta: meta },
})).modern;

/** Headers of a legacy client's GET. */
export const GET_HEADERS = { accept: 'text/event-stream', 'mcp-protocol-version': LEGACY_REVISION };

/** The backend's results by era and method, with hints of that scope. */
export function listResults(cacheScope) {
  const capabilities = { tools: { listChanged: true } };
  const { legacy, modern } = RESULTS;
  const hints = { ttlMs: 60_000, cacheScope };
  return {
    legacy: {
      ...legacy,
      initialize: { ...legacy.initialize, capabilities },
      'tools/list': { tools },
    },
    modern: {
      ...modern,
      'server/discover': { ...modern['server/discover'], capabilities },
      'tools/list': { resultType: 'complete', tools, ...hints, _meta: modernResultMeta },
    },
  };
}

/** The backend's first frame on a `subscriptions/listen` stream. */
export const acknowledgement = (id) => ({
  jsonrpc: '2.0',
  method: 'notifications/subscriptions/acknowledged',
  params: { _meta: { [SUBSCRIPTION_ID]: id }, notifications: { toolsListChanged: true } },
});

/** The backend's announcement with `padding` bytes of ballast; `id` is the one of a modern subscription. */
export const change = (padding, id) => ({
  jsonrpc: '2.0',
  method: 'notifications/tools/list_changed',
  params: {
    _meta: {
      ...(id !== undefined && { [SUBSCRIPTION_ID]: id }),
      'bench/ballast': 'x'.repeat(padding) + CHANGE_END,
    },
  },
});
