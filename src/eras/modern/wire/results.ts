import { CODE } from '../../../exchange/errors.js';
import {
  type ErrorOutcome,
  leaveOutNullCursor,
  type PendingEdits,
  pendingMember,
  type ResultOutcome,
} from '../../../exchange/outcome.js';
import {
  elementsOf,
  getMember,
  type JsonNode,
  membersOf,
  Rope,
  stringOf,
  textOf,
  writeObject,
} from '../../../jsonrpc/index.js';
import { CACHEABLE, META, MODERN_CODE, RESERVED_CODES } from './names.js';
import { mentionsAnnotation, withoutAnnotations } from './param-headers.js';
import { toolTraits } from './tool-traits.js';

/** Members of a modern result that no other era has. */
const RESULT_MEMBERS = ['resultType', 'ttlMs', 'cacheScope'] as const;

/** Takes off a modern result what only the modern era has. */
export function neutralResult(bytes: Buffer, result: JsonNode, edits: PendingEdits): void {
  for (const key of RESULT_MEMBERS) {
    if (getMember(bytes, result, key) !== undefined) edits.set(key, undefined);
  }
  const meta = getMember(bytes, result, '_meta');
  if (meta === undefined || getMember(bytes, meta, META.serverInfo) === undefined) return;
  if (membersOf(bytes, meta).length === 1) {
    edits.set('_meta', undefined);
    return;
  }
  const rewritten = new Rope();
  writeObject(rewritten, bytes, meta, new Map([[META.serverInfo, undefined]]));
  edits.set('_meta', rewritten);
}

/** What a route lets clients keep of answers. */
export interface CacheHints {
  readonly ttlMs: number;
  readonly scope: 'public' | 'private';
}

/** Puts a neutral result into the form of the modern era. */
export function encodeResult(method: string, outcome: ResultOutcome, hints: CacheHints): void {
  const { edits, serverInfo } = outcome;
  edits.set('resultType', outcome.isTask === true ? '"task"' : '"complete"');
  if (CACHEABLE.has(method)) {
    edits.set('ttlMs', String(hints.ttlMs));
    edits.set('cacheScope', `"${hints.scope}"`);
    leaveOutNullCursor(outcome);
  }
  if (method === 'tools/list') {
    const tools = pendingMember(outcome, 'tools');
    if (tools?.node.kind === 'array' && mentionsAnnotation(tools.bytes, tools.node))
      edits.set('tools', withValidAnnotations(tools.bytes, tools.node));
  }
  if (serverInfo !== undefined) {
    const meta = pendingMember(outcome, '_meta');
    if (meta?.node.kind === 'object') {
      const rewritten = new Rope();
      writeObject(rewritten, meta.bytes, meta.node, new Map([[META.serverInfo, serverInfo]]));
      edits.set('_meta', rewritten);
    } else edits.set('_meta', `{"${META.serverInfo}":${serverInfo}}`);
  }
}

/**
 * Tools whose header annotations are to the letter, or gone: clients of the era drop a tool with others, and to servers
 * of the legacy era the annotation means nothing.
 */
function withValidAnnotations(bytes: Buffer, tools: JsonNode): Rope {
  const out = new Rope();
  for (const [index, tool] of elementsOf(bytes, tools).entries()) {
    out.push(index === 0 ? '[' : ',');
    const schema = tool.kind === 'object' ? getMember(bytes, tool, 'inputSchema') : undefined;
    if (schema === undefined || toolTraits(bytes, tool) !== undefined)
      out.pushSlice(bytes, tool.start, tool.end);
    else writeObject(out, bytes, tool, new Map([['inputSchema', withoutAnnotations(bytes, schema)]]));
  }
  return out.push(']');
}

/** Types of result that a modern client takes without having declared anything. */
const KNOWN_TYPES: ReadonlySet<string> = new Set(['complete', 'input_required']);

/**
 * Mends what a modern backend got wrong and would make its client throw the whole result away.
 * @param taskTypes the caller takes task handles
 * @returns what is wrong with a result that cannot be mended
 */
export function checkResult(
  method: string,
  outcome: ResultOutcome,
  taskTypes: boolean,
  forcePrivate: boolean,
): string | undefined {
  const { bytes, node, edits } = outcome;
  const typeNode = getMember(bytes, node, 'resultType');
  const type = stringOf(bytes, typeNode);
  if (typeNode === undefined) edits.set('resultType', '"complete"');
  else if (type === undefined || !(KNOWN_TYPES.has(type) || (type === 'task' && taskTypes))) {
    return `the backend answered with the unknown resultType ${textOf(bytes, typeNode).slice(0, 100)}`;
  }
  if (CACHEABLE.has(method) && (type ?? 'complete') === 'complete') {
    const ttl = getMember(bytes, node, 'ttlMs');
    if (ttl?.kind !== 'number' || !/^\d+$/.test(textOf(bytes, ttl))) edits.set('ttlMs', '0');
    // Clients take no integer beyond it for one.
    else if (Number(textOf(bytes, ttl)) > Number.MAX_SAFE_INTEGER)
      edits.set('ttlMs', String(Number.MAX_SAFE_INTEGER));
    const scope = stringOf(bytes, getMember(bytes, node, 'cacheScope'));
    if (scope !== 'private' && (scope !== 'public' || forcePrivate)) edits.set('cacheScope', '"private"');
    leaveOutNullCursor(outcome);
  }
  return undefined;
}

export interface ModernError {
  readonly status: number;
  readonly code: number;
  readonly data: Rope | string | undefined;
}

const RESOURCE_NOT_FOUND = -32002;

/** Statuses of errors (basic/transports, "Error responses"): all others are answers of handlers and ride on 200. */
const STATUS: Readonly<Record<number, number>> = {
  [CODE.methodNotFound]: 404,
  [MODERN_CODE.headerMismatch]: 400,
  [MODERN_CODE.missingClientCapability]: 400,
  [MODERN_CODE.unsupportedVersion]: 400,
};

/**
 * An error as modern clients know it.
 * @param uri the uri that a `resources/read` asked for
 * @param knownMethod the revision has the method that was called
 */
export function encodeError(error: ErrorOutcome, uri: string | undefined, knownMethod: boolean): ModernError {
  if (error.origin === 'backend') return backendError(error, uri, knownMethod);
  if (error.raw !== undefined) {
    // A challenge or a throttling: its status speaks, and its error is the backend's.
    const { code, data } = backendError(error, uri, knownMethod);
    return { status: error.status ?? 200, code, data };
  }
  const code = error.code === CODE.notFoundOrTimeout ? CODE.internal : error.code;
  return { status: error.status ?? STATUS[code] ?? 200, code, data: error.data };
}

function backendError(error: ErrorOutcome, uri: string | undefined, knownMethod: boolean): ModernError {
  const { code, data } = error;
  if (uri !== undefined && saysNotFound(error)) {
    return { status: 200, code: CODE.invalidParams, data: data ?? JSON.stringify({ uri }) };
  }
  if (error.form === 'modern') {
    // Servers that answer all errors with 200 still mean what the code says, and the other way round.
    const status = MODERN_STATUS.has(code) ? STATUS[code] : error.status;
    return { status: status ?? 200, code, data };
  }
  if (code === CODE.parse || code === CODE.invalidRequest) {
    // The backend complains of a message that the gateway wrote: not the client's doing.
    return { status: 500, code: CODE.internal, data };
  }
  // Python's SDK of the legacy era says of an unknown method that its params are invalid.
  if (code === CODE.invalidParams && !knownMethod && error.message === 'Invalid request parameters') {
    return { status: 404, code: CODE.methodNotFound, data };
  }
  if (code >= RESERVED_CODES.from && code <= RESERVED_CODES.to) {
    // A legacy server means something else by these numbers.
    return { status: 200, code: CODE.internal, data };
  }
  return { status: STATUS[code] ?? 200, code, data };
}

/** Codes that tell of the request's own envelope, whatever the status around them. */
const MODERN_STATUS: ReadonlySet<number> = new Set(Object.values(MODERN_CODE));

/**
 * Whether the error of a `resources/read` says that there is no such resource: earlier revisions have -32002 for it,
 * Python's SDK the code 0, FastMCP -32001, with which other servers tell of time-outs and sessions. A legacy server's
 * invalid params of a read are those of the uri, of which all it takes.
 */
function saysNotFound({ code, message, form }: ErrorOutcome): boolean {
  if (code === RESOURCE_NOT_FOUND) return true;
  if (form === 'modern') return false;
  if (code === CODE.notFoundOrTimeout) return !/session|time/i.test(message);
  return code === CODE.invalidParams || (code === 0 && /^unknown resource/i.test(message));
}
