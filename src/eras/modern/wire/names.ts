import { nameMap } from '../../../jsonrpc/index.js';
/** Names that the 2026-07-28 revision reserves (basic, "General fields"; schema). */

export const MODERN_VERSIONS = ['2026-07-28'] as const;
export const MODERN_VERSION: string = MODERN_VERSIONS[0];

export const META = {
  protocolVersion: 'io.modelcontextprotocol/protocolVersion',
  clientInfo: 'io.modelcontextprotocol/clientInfo',
  clientCapabilities: 'io.modelcontextprotocol/clientCapabilities',
  logLevel: 'io.modelcontextprotocol/logLevel',
  serverInfo: 'io.modelcontextprotocol/serverInfo',
  subscriptionId: 'io.modelcontextprotocol/subscriptionId',
} as const;

/** Members of `_meta` that describe the sender of a request; they are not passed on to a backend of another era. */
export const ENVELOPE_KEYS: readonly string[] = [
  META.protocolVersion,
  META.clientInfo,
  META.clientCapabilities,
  META.logLevel,
];

export const MODERN_CODE = {
  headerMismatch: -32020,
  missingClientCapability: -32021,
  unsupportedVersion: -32022,
} as const;

/** Codes that the revision reserves (basic, "Error Codes"). */
export const RESERVED_CODES = { from: -32099, to: -32020 } as const;

/** Requests of earlier revisions that this one removed; they are unknown methods. */
export const REMOVED_METHODS: ReadonlySet<string> = new Set([
  'initialize',
  'ping',
  'logging/setLevel',
  'resources/subscribe',
  'resources/unsubscribe',
  'tasks/list',
  'tasks/result',
]);

/** Notifications that a revision of the protocol defines (schema of each revision). */
export const PROTOCOL_NOTIFICATIONS: ReadonlySet<string> = new Set([
  'notifications/cancelled',
  'notifications/elicitation/complete',
  'notifications/initialized',
  'notifications/message',
  'notifications/progress',
  'notifications/prompts/list_changed',
  'notifications/resources/list_changed',
  'notifications/resources/updated',
  'notifications/roots/list_changed',
  'notifications/subscriptions/acknowledged',
  'notifications/tasks',
  'notifications/tasks/status',
  'notifications/tools/list_changed',
]);

/** The member of the params that the `Mcp-Name` header repeats, by method. */
export const NAMED_BY: ReadonlyMap<string, 'name' | 'uri' | 'taskId'> = nameMap({
  'tools/call': 'name',
  'prompts/get': 'name',
  'resources/read': 'uri',
  'tasks/get': 'taskId',
  'tasks/update': 'taskId',
  'tasks/cancel': 'taskId',
});

/** Results that carry `ttlMs` and `cacheScope` (server/utilities/caching). */
export const CACHEABLE: ReadonlySet<string> = new Set([
  'server/discover',
  'tools/list',
  'prompts/list',
  'resources/list',
  'resources/templates/list',
  'resources/read',
]);
