import { LRUCache } from 'lru-cache';
import { readCapabilities } from '../../exchange/digest.js';
import { CODE } from '../../exchange/errors.js';
import type { ErrorFields } from '../../exchange/outcome.js';
import { type ClientCapabilities, isLogLevel, type LogLevel } from '../../exchange/types.js';
import { getMember, type JsonNode, type RequestFrame, stringOf, textOf } from '../../jsonrpc/index.js';
import type { McpHeaders } from '../../transports/mcp-headers.js';
import { decodeHeaderValue } from './headers.js';
import { META, MODERN_CODE, MODERN_VERSIONS, NAMED_BY, REMOVED_METHODS } from './names.js';

/** What a modern request says of its sender, checked. */
export interface Envelope {
  readonly version: string;
  readonly capabilities: ClientCapabilities;
  /** JSON text of the Implementation object. */
  readonly clientInfo: string | undefined;
  readonly logLevel: LogLevel | undefined;
  readonly meta: JsonNode;
  readonly progressToken: string | undefined;
  /** What `Mcp-Name` names. */
  readonly name: string | undefined;
}

/** A refusal, with the HTTP status that the specification sets for it. */
export type Refusal = ErrorFields & { readonly status: number };

function refuse(code: number, message: string, data?: unknown): Refusal {
  const text = data === undefined ? undefined : JSON.stringify(data);
  return { code, message, data: text, status: code === CODE.methodNotFound ? 404 : 400 };
}

/** Methods of notifications, and those of another protocol over JSON-RPC. */
const NO_REQUEST = /^(?:notifications|\$)\//;

/**
 * Reads and checks a request as a server must that processes bodies (basic/transports, "Server Validation"; basic,
 * "Request metadata"). The order is that of the official server: envelope, contradicting version header, version,
 * missing or contradicting headers, method.
 */
export function readEnvelope(frame: RequestFrame, headers: McpHeaders): Envelope | Refusal {
  const { bytes, params } = frame;
  if (frame.method === 'initialize' && !hasClaim(frame)) {
    return mismatch(`initialize is a request of earlier revisions than ${headers.protocolVersion}`);
  }
  const meta = params === undefined ? undefined : getMember(bytes, params, '_meta');
  const fields = readMeta(bytes, meta);
  if ('code' in fields) return fields;
  const { version } = fields;
  if (headers.repeated !== undefined) return mismatch(`${headers.repeated} must be sent once`);
  if (headers.protocolVersion !== undefined && headers.protocolVersion !== version) {
    return mismatch(
      `MCP-Protocol-Version is ${quote(headers.protocolVersion)}, but the body says ${quote(version)}`,
    );
  }
  if (!(MODERN_VERSIONS as readonly string[]).includes(version)) {
    const data = { supported: MODERN_VERSIONS, requested: version };
    return refuse(MODERN_CODE.unsupportedVersion, `Unsupported protocol version: ${version}`, data);
  }
  if (headers.protocolVersion === undefined) return mismatch('MCP-Protocol-Version is missing');
  const named = checkNames(frame, headers);
  if (typeof named === 'object') return named;
  if (REMOVED_METHODS.has(frame.method) || NO_REQUEST.test(frame.method)) return unknownMethod(frame.method);
  return { ...fields, name: named };
}

function hasClaim({ bytes, params }: RequestFrame): boolean {
  const meta = params === undefined ? undefined : getMember(bytes, params, '_meta');
  return meta !== undefined && getMember(bytes, meta, META.protocolVersion) !== undefined;
}

export function unknownMethod(method: string): Refusal {
  return refuse(CODE.methodNotFound, `Method not found: ${method}`);
}

type MetaFields = Omit<Envelope, 'name'>;

function readMeta(bytes: Buffer, meta: JsonNode | undefined): MetaFields | Refusal {
  if (meta?.kind !== 'object') return incomplete([META.protocolVersion, META.clientCapabilities]);
  const version = stringOf(bytes, getMember(bytes, meta, META.protocolVersion));
  const capabilities = getMember(bytes, meta, META.clientCapabilities);
  const missing: string[] = [];
  if (version === undefined) missing.push(META.protocolVersion);
  if (capabilities?.kind !== 'object') missing.push(META.clientCapabilities);
  if (version === undefined || capabilities?.kind !== 'object') return incomplete(missing);
  const info = getMember(bytes, meta, META.clientInfo);
  const clientInfo = info === undefined ? undefined : readImplementation(bytes, info);
  if (info !== undefined && clientInfo === undefined) {
    return refuse(
      CODE.invalidParams,
      `${META.clientInfo} must be an object with the strings name and version`,
    );
  }
  const level = getMember(bytes, meta, META.logLevel);
  const logLevel = stringOf(bytes, level);
  if (level !== undefined && !isLogLevel(logLevel)) {
    return refuse(CODE.invalidParams, `${META.logLevel} is not a log level`);
  }
  const token = getMember(bytes, meta, 'progressToken');
  return {
    version,
    capabilities: readCapabilities(textOf(bytes, capabilities)),
    clientInfo,
    logLevel: isLogLevel(logLevel) ? logLevel : undefined,
    meta,
    progressToken: token?.kind === 'string' || token?.kind === 'number' ? textOf(bytes, token) : undefined,
  };
}

const REMEMBERED = 1_000;
/** Longer ones (with icons, say) are looked through each time. */
const REMEMBERED_CHARS = 1_024;
const implementations = new LRUCache<string, string>({ max: REMEMBERED });

/**
 * The text of an Implementation object, undefined if it is none. Clients send the same with every request, so the ones
 * that were found right are remembered.
 */
function readImplementation(bytes: Buffer, node: JsonNode): string | undefined {
  const text = textOf(bytes, node);
  const known = implementations.get(text);
  if (known !== undefined || !isImplementation(bytes, node)) return known;
  if (text.length <= REMEMBERED_CHARS) implementations.set(text, text);
  return text;
}

function isImplementation(bytes: Buffer, node: JsonNode): boolean {
  const isString = (key: string): boolean => getMember(bytes, node, key)?.kind === 'string';
  return node.kind === 'object' && isString('name') && isString('version');
}

function incomplete(missing: readonly string[]): Refusal {
  return refuse(CODE.invalidParams, `Invalid params: missing or malformed in _meta: ${missing.join(', ')}`, {
    envelope: { missing },
  });
}

/** @returns what the request is about, or the refusal of headers that do not say so */
function checkNames(frame: RequestFrame, headers: McpHeaders): string | undefined | Refusal {
  const { bytes, params, method } = frame;
  if (headers.method === undefined) return mismatch('Mcp-Method is missing');
  if (decodeHeaderValue(headers.method) !== method) {
    return mismatch(`Mcp-Method is ${quote(headers.method)}, but the body says ${quote(method)}`);
  }
  const key = Object.hasOwn(NAMED_BY, method) ? NAMED_BY[method] : undefined;
  if (key === undefined) return undefined;
  const name = params === undefined ? undefined : stringOf(bytes, getMember(bytes, params, key));
  if (name === undefined) return refuse(CODE.invalidParams, `params.${key} must be a string`);
  if (headers.name === undefined) return mismatch('Mcp-Name is missing');
  if (decodeHeaderValue(headers.name) !== name) {
    return mismatch(`Mcp-Name is ${quote(headers.name)}, but the body says ${quote(name)}`);
  }
  return name;
}

export function mismatch(what: string): Refusal {
  return refuse(MODERN_CODE.headerMismatch, `Header mismatch: ${what}`);
}

function quote(text: string): string {
  return JSON.stringify(text.length > 200 ? `${text.slice(0, 200)}…` : text);
}
