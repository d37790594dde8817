import type { McpHeaders } from '../../../downstream/mcp-headers.js';
import { readCapabilities } from '../../../exchange/digest.js';
import { CODE } from '../../../exchange/errors.js';
import type { ErrorFields } from '../../../exchange/outcome.js';
import { type ClientCapabilities, isLogLevel, type LogLevel } from '../../../exchange/types.js';
import {
  ByteTable,
  getMember,
  type JsonNode,
  membersOf,
  type RequestFrame,
  scanJson,
  stringOf,
  textOf,
} from '../../../jsonrpc/index.js';
import { isHeaderOf } from '../wire/header-values.js';
import {
  ENVELOPE_KEYS,
  META,
  MODERN_CODE,
  MODERN_VERSIONS,
  NAMED_BY,
  REMOVED_METHODS,
} from '../wire/names.js';

/** Who sends a request, as its `_meta` tells. */
export interface Sender {
  readonly version: string;
  readonly capabilities: ClientCapabilities;
  /** JSON text of the Implementation object. */
  readonly clientInfo: string | undefined;
  readonly logLevel: LogLevel | undefined;
}

/** What a modern request says of itself, checked. */
export interface Envelope {
  readonly sender: Sender;
  readonly meta: JsonNode;
  /** Nothing is in `_meta` but what belongs to the envelope. */
  readonly bare: boolean;
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
  if (meta?.kind !== 'object') return incomplete([META.protocolVersion, META.clientCapabilities]);
  const told = readMeta(bytes, meta);
  if ('code' in told) return told;
  const { sender, bare, progressToken } = told;
  const { version } = sender;
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
  return { sender, meta, bare, progressToken, name: named };
}

function hasClaim({ bytes, params }: RequestFrame): boolean {
  const meta = params === undefined ? undefined : getMember(bytes, params, '_meta');
  return meta !== undefined && getMember(bytes, meta, META.protocolVersion) !== undefined;
}

export function unknownMethod(method: string): Refusal {
  return refuse(CODE.methodNotFound, `Method not found: ${method}`);
}

interface Told {
  readonly sender: Sender;
  readonly bare: boolean;
  readonly progressToken: string | undefined;
}

const REMEMBERED = 1_024;
/** Longer ones (with icons, say) are taken apart each time. */
const REMEMBERED_BYTES = 2_048;
const known = new ByteTable<Told>(REMEMBERED);

/** What `_meta` tells. Clients send the same one with every request, so those that were found right are remembered. */
function readMeta(bytes: Buffer, meta: JsonNode): Told | Refusal {
  if (meta.end - meta.start > REMEMBERED_BYTES) return checkMeta(bytes, meta);
  const remembered = known.get(bytes, meta.start, meta.end);
  if (remembered !== undefined) return remembered;
  const told = checkMeta(bytes, meta);
  // The next request has another token.
  if ('sender' in told && told.progressToken === undefined) known.set(bytes, meta.start, meta.end, told);
  return told;
}

function checkMeta(bytes: Buffer, node: JsonNode): Told | Refusal {
  const meta = scanJson(bytes, 1, node.start, node.end);
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
  const sender = {
    version,
    capabilities: readCapabilities(textOf(bytes, capabilities)),
    clientInfo,
    logLevel: isLogLevel(logLevel) ? logLevel : undefined,
  };
  const progressToken =
    token?.kind === 'string' || token?.kind === 'number' ? textOf(bytes, token) : undefined;
  const bare = membersOf(bytes, meta).every((member) => ENVELOPE_KEYS.some((key) => member.isNamed(key)));
  return { sender, bare, progressToken };
}

/** The text of an Implementation object, undefined if it is none. */
function readImplementation(bytes: Buffer, node: JsonNode): string | undefined {
  const isString = (key: string): boolean => getMember(bytes, node, key)?.kind === 'string';
  return node.kind === 'object' && isString('name') && isString('version') ? textOf(bytes, node) : undefined;
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
  if (!isHeaderOf(headers.method, method)) {
    return mismatch(`Mcp-Method is ${quote(headers.method)}, but the body says ${quote(method)}`);
  }
  const key = Object.hasOwn(NAMED_BY, method) ? NAMED_BY[method] : undefined;
  if (key === undefined) return undefined;
  const name = params === undefined ? undefined : stringOf(bytes, getMember(bytes, params, key));
  if (name === undefined) return refuse(CODE.invalidParams, `params.${key} must be a string`);
  if (headers.name === undefined) return mismatch('Mcp-Name is missing');
  if (!isHeaderOf(headers.name, name)) {
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
