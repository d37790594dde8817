import type { ClientCapabilities } from '../../../exchange/client-capabilities.js';
import { readCapabilities } from '../../../exchange/client-capabilities.js';
import { declarationProblem, MAX_TOKEN_BYTES, metaProblem } from '../../../exchange/declaration-limits.js';
import { CODE } from '../../../exchange/errors.js';
import { isLogLevel, type LogLevel } from '../../../exchange/log-levels.js';
import {
  ByteTable,
  getMember,
  type JsonNode,
  membersOf,
  scanJson,
  stringOf,
  textOf,
} from '../../../jsonrpc/index.js';
import { ENVELOPE_KEYS, META } from '../wire/names.js';
import { type Refusal, refusal } from './refusal.js';

/** The sender of a request, as described in its `_meta`. */
export interface Sender {
  readonly version: string;
  readonly capabilities: ClientCapabilities;
  /** JSON text of the Implementation object. */
  readonly clientInfo: string | undefined;
  readonly logLevel: LogLevel | undefined;
}

/** The content of a valid `_meta`. */
export interface RequestMeta {
  readonly sender: Sender;
  /** Whether `_meta` holds nothing but members of the envelope. */
  readonly bare: boolean;
  /** JSON text. */
  readonly progressToken: string | undefined;
}

const MAX_CACHED = 512;
/** A longer `_meta`, with icons for example, is read each time. */
const MAX_CACHED_BYTES = 2_048;

/** Of all routes: what is cached for strangers does not grow with the number of routes. */
const cache = new ByteTable<RequestMeta>(MAX_CACHED);

/** Reads `_meta` of requests. Clients send the same one with each request, so valid ones are cached by their bytes. */
export class RequestMetaReader {
  read(bytes: Buffer, meta: JsonNode): RequestMeta | Refusal {
    if (meta.end - meta.start > MAX_CACHED_BYTES) return readRequestMeta(bytes, meta);
    const cached = cache.get(bytes, meta.start, meta.end);
    if (cached !== undefined) return cached;
    const read = readRequestMeta(bytes, meta);
    // A progress token differs from request to request.
    if ('sender' in read && read.progressToken === undefined) cache.set(bytes, meta.start, meta.end, read);
    return read;
  }
}

function readRequestMeta(bytes: Buffer, node: JsonNode): RequestMeta | Refusal {
  const tooMany = metaProblem(bytes, node);
  if (tooMany !== undefined) return refusal(CODE.invalidParams, `Invalid params: ${tooMany}`);
  const meta = scanJson(bytes, 1, node.start, node.end);
  const version = stringOf(bytes, getMember(bytes, meta, META.protocolVersion));
  const capabilities = getMember(bytes, meta, META.clientCapabilities);
  const missing: string[] = [];
  if (version === undefined) missing.push(META.protocolVersion);
  if (capabilities?.kind !== 'object') missing.push(META.clientCapabilities);
  if (version === undefined || capabilities?.kind !== 'object') return incompleteMeta(missing);
  const info = getMember(bytes, meta, META.clientInfo);
  const problem =
    declarationProblem(bytes, capabilities, 'capabilities') ?? declarationProblem(bytes, info, 'clientInfo');
  if (problem !== undefined) return refusal(CODE.invalidParams, `Invalid params: ${problem}`);
  const clientInfo = info === undefined ? undefined : readImplementation(bytes, info);
  if (info !== undefined && clientInfo === undefined) {
    return refusal(
      CODE.invalidParams,
      `${META.clientInfo} must be an object with the strings name and version`,
    );
  }
  const level = getMember(bytes, meta, META.logLevel);
  const logLevel = stringOf(bytes, level);
  if (level !== undefined && !isLogLevel(logLevel)) {
    return refusal(CODE.invalidParams, `${META.logLevel} is not a log level`);
  }
  const token = getMember(bytes, meta, 'progressToken');
  if (token !== undefined && token.end - token.start > MAX_TOKEN_BYTES)
    return refusal(CODE.invalidParams, `Invalid params: progressToken: more than ${MAX_TOKEN_BYTES} bytes`);
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

/** The text of an Implementation object; undefined if it is invalid. */
function readImplementation(bytes: Buffer, node: JsonNode): string | undefined {
  const isString = (key: string): boolean => getMember(bytes, node, key)?.kind === 'string';
  return node.kind === 'object' && isString('name') && isString('version') ? textOf(bytes, node) : undefined;
}

/** @param missing names of the required members that `_meta` lacks */
export function incompleteMeta(missing: readonly string[]): Refusal {
  return refusal(CODE.invalidParams, `Invalid params: missing or malformed in _meta: ${missing.join(', ')}`, {
    envelope: { missing },
  });
}
