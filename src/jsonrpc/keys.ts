import { ByteTable } from './byte-table.js';
import { BACKSLASH } from './grammar.js';

/**
 * Caches decoded member names and other short strings: decoding each would cost more than the scan itself, and the same
 * few are in every message. Names and methods that MCP defines are pinned.
 */

const LONGEST = 64;
const table = new ByteTable<string>(2048);

/** The decoded string at `[start, end)`, without its quotes; the bytes have been scanned. */
export function keyAt(bytes: Buffer, start: number, end: number): string {
  if (end - start > LONGEST || end === start) return decode(bytes, start, end);
  let text = table.get(bytes, start, end);
  if (text === undefined) {
    text = decode(bytes, start, end);
    table.set(bytes, start, end, text);
  }
  return text;
}

/** Whether the string at `[start, end)` is `key`. Decodes it only if it holds an escape or a character beyond ASCII. */
export function keyIs(bytes: Buffer, start: number, end: number, key: string): boolean {
  for (let i = start; i < end; i++) {
    const byte = bytes[i] as number;
    if (byte === BACKSLASH || byte >= 0x80) return decode(bytes, start, end) === key;
    if (byte !== key.charCodeAt(i - start)) return false;
  }
  return end - start === key.length;
}

/** A cheap check before decoding; mostly false. A string has at least as many bytes in UTF-8 as units in UTF-16. */
export function couldBe(bytes: Buffer, start: number, end: number, key: string): boolean {
  if (end - start < key.length) return false;
  const first = bytes[start] as number;
  return first === key.charCodeAt(0) || first === BACKSLASH || first >= 0x80 || start === end;
}

function decode(bytes: Buffer, start: number, end: number): string {
  let plain = true;
  for (let i = start; i < end; i++) {
    const byte = bytes[i] as number;
    if (byte === BACKSLASH) return JSON.parse(bytes.toString('utf8', start - 1, end + 1)) as string;
    if (byte >= 0x80) plain = false;
  }
  return bytes.toString(plain ? 'latin1' : 'utf8', start, end);
}

const WELL_KNOWN = [
  'jsonrpc',
  'id',
  'method',
  'params',
  'result',
  'error',
  'code',
  'message',
  'data',
  '_meta',
  'progressToken',
  'name',
  'title',
  'description',
  'arguments',
  'uri',
  'uriTemplate',
  'mimeType',
  'type',
  'text',
  'blob',
  'resource',
  'contents',
  'content',
  'isError',
  'structuredContent',
  'resultType',
  'inputRequests',
  'inputResponses',
  'requestState',
  'ttlMs',
  'cacheScope',
  'cursor',
  'nextCursor',
  'tools',
  'resources',
  'resourceTemplates',
  'prompts',
  'messages',
  'completion',
  'ref',
  'argument',
  'context',
  'level',
  'logger',
  'requestId',
  'reason',
  'progress',
  'total',
  'action',
  'role',
  'model',
  'roots',
  'inputSchema',
  'outputSchema',
  'annotations',
  'capabilities',
  'clientInfo',
  'serverInfo',
  'instructions',
  'protocolVersion',
  'supportedVersions',
  'version',
  'subscriptionId',
  'notifications',
  'io.modelcontextprotocol/protocolVersion',
  'io.modelcontextprotocol/clientInfo',
  'io.modelcontextprotocol/clientCapabilities',
  'io.modelcontextprotocol/serverInfo',
  'io.modelcontextprotocol/subscriptionId',
  'io.modelcontextprotocol/logLevel',
  'io.modelcontextprotocol/related-task',
  'initialize',
  'notifications/initialized',
  'notifications/cancelled',
  'notifications/progress',
  'notifications/message',
  'server/discover',
  'subscriptions/listen',
  'tools/list',
  'tools/call',
  'resources/list',
  'resources/read',
  'resources/templates/list',
  'prompts/list',
  'prompts/get',
  'completion/complete',
  'elicitation/create',
  'sampling/createMessage',
  'roots/list',
  'traceparent',
  'tracestate',
  'baggage',
];

for (const text of WELL_KNOWN) {
  const bytes = Buffer.from(text);
  table.pin(bytes, text);
}
