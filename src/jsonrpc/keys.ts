import { BACKSLASH } from './grammar.js';

/**
 * Member names and other short strings, decoded once. A call into the runtime for each would cost more than the scan
 * itself, and the same few come with every message. The table holds one string per slot and forgets the older on a
 * collision; those that MCP defines keep their slots.
 */

const SLOTS = 2048;
const LONGEST = 64;

interface Entry {
  readonly raw: Uint8Array;
  readonly text: string;
  readonly pinned: boolean;
}

const table: (Entry | undefined)[] = new Array(SLOTS).fill(undefined);

/** The string written at `[start, end)`, the quotes excluded, which the scan has accepted. */
export function keyAt(bytes: Buffer, start: number, end: number): string {
  const length = end - start;
  if (length > LONGEST || length === 0) return decode(bytes, start, end);
  const slot = slotOf(bytes, start, length);
  const entry = table[slot];
  if (entry !== undefined && entry.raw.length === length) {
    if (sameBytes(entry.raw, bytes, start)) return entry.text;
  }
  const text = decode(bytes, start, end);
  if (entry?.pinned !== true)
    table[slot] = { raw: Uint8Array.from(bytes.subarray(start, end)), text, pinned: false };
  return text;
}

/**
 * Whether the string written at `[start, end)` is `key`. Decodes it only when an escape or a character beyond ASCII
 * leaves no other way to tell.
 */
export function keyIs(bytes: Buffer, start: number, end: number, key: string): boolean {
  for (let i = start; i < end; i++) {
    const byte = bytes[i] as number;
    if (byte === BACKSLASH || byte >= 0x80) return decode(bytes, start, end) === key;
    if (byte !== key.charCodeAt(i - start)) return false;
  }
  return end - start === key.length;
}

/** A quick look that mostly says no: a string is never shorter in UTF-8 than in UTF-16. */
export function couldBe(bytes: Buffer, start: number, end: number, key: string): boolean {
  if (end - start < key.length) return false;
  const first = bytes[start] as number;
  return first === key.charCodeAt(0) || first === BACKSLASH || first >= 0x80 || start === end;
}

function sameBytes(raw: Uint8Array, bytes: Buffer, start: number): boolean {
  const length = raw.length;
  let i = 0;
  for (; i + 3 < length; i += 4) {
    const at = start + i;
    const differing =
      ((raw[i] as number) ^ (bytes[at] as number)) |
      ((raw[i + 1] as number) ^ (bytes[at + 1] as number)) |
      ((raw[i + 2] as number) ^ (bytes[at + 2] as number)) |
      ((raw[i + 3] as number) ^ (bytes[at + 3] as number));
    if (differing !== 0) return false;
  }
  for (; i < length; i++) if (raw[i] !== bytes[start + i]) return false;
  return true;
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

/** Looks at a few bytes only: names differ at their ends, and a wrong guess costs no more than one decoding. */
function slotOf(bytes: Uint8Array, start: number, length: number): number {
  const last = start + length - 1;
  let hash = length;
  hash = Math.imul(hash, 31) + (bytes[start] as number);
  hash = Math.imul(hash, 31) + (bytes[start + (length >> 1)] as number);
  hash = Math.imul(hash, 31) + (bytes[last] as number);
  hash = Math.imul(hash, 31) + (bytes[length > 3 ? last - 3 : start] as number);
  return (hash ^ (hash >>> 11)) & (SLOTS - 1);
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
  const raw = Uint8Array.from(Buffer.from(text));
  table[slotOf(raw, 0, raw.length)] = { raw, text, pinned: true };
}
