import type { McpHeaders } from '../../../downstream/mcp-headers.js';
import { CODE } from '../../../exchange/errors.js';
import { getMember, type JsonNode, type RequestFrame, stringOf } from '../../../jsonrpc/index.js';
import { isHeaderOf } from '../wire/header-values.js';
import { META, MODERN_CODE, MODERN_VERSIONS, NAMED_BY, REMOVED_METHODS } from '../wire/names.js';
import { headerMismatch, type Refusal, refusal } from './refusal.js';
import { incompleteMeta, RequestMetaReader, type Sender } from './request-meta.js';

/** The envelope of a valid request. */
export interface Envelope {
  readonly sender: Sender;
  readonly meta: JsonNode;
  /** Whether `_meta` holds nothing but members of the envelope. */
  readonly bare: boolean;
  readonly progressToken: string | undefined;
  /** The value of `Mcp-Name`: name of the tool or prompt, uri of the resource, id of the task. */
  readonly name: string | undefined;
}

/** Methods of notifications, and of JSON-RPC implementations (`$/`). */
const NOT_A_REQUEST = /^(?:notifications|\$)\//;

/** Reads and validates the envelopes of requests. */
export class EnvelopeReader {
  readonly #meta = new RequestMetaReader();

  /**
   * Validates a request as a server that processes bodies (basic/transports, "Server Validation"; basic, "Request
   * metadata"). The order is that of the official server: envelope, contradicting version header, version, missing or
   * contradicting headers, method.
   */
  read(frame: RequestFrame, headers: McpHeaders): Envelope | Refusal {
    const { bytes, params } = frame;
    if (frame.method === 'initialize' && !hasVersion(frame)) {
      return headerMismatch(`initialize is a request of earlier revisions than ${headers.protocolVersion}`);
    }
    const meta = params === undefined ? undefined : getMember(bytes, params, '_meta');
    if (meta?.kind !== 'object') return incompleteMeta([META.protocolVersion, META.clientCapabilities]);
    const read = this.#meta.read(bytes, meta);
    if ('code' in read) return read;
    const { sender, bare, progressToken } = read;
    const { version } = sender;
    if (headers.repeated !== undefined) return headerMismatch(`${headers.repeated} must be sent once`);
    if (headers.protocolVersion !== undefined && headers.protocolVersion !== version) {
      return headerMismatch(
        `MCP-Protocol-Version is ${quote(headers.protocolVersion)}, but the body says ${quote(version)}`,
      );
    }
    if (!(MODERN_VERSIONS as readonly string[]).includes(version)) {
      const data = { supported: MODERN_VERSIONS, requested: version };
      return refusal(MODERN_CODE.unsupportedVersion, `Unsupported protocol version: ${version}`, data);
    }
    if (headers.protocolVersion === undefined) return headerMismatch('MCP-Protocol-Version is missing');
    const name = checkNames(frame, headers);
    if (typeof name === 'object') return name;
    if (REMOVED_METHODS.has(frame.method) || NOT_A_REQUEST.test(frame.method))
      return refusal(CODE.methodNotFound, `Method not found: ${frame.method}`);
    return { sender, meta, bare, progressToken, name };
  }
}

function hasVersion({ bytes, params }: RequestFrame): boolean {
  const meta = params === undefined ? undefined : getMember(bytes, params, '_meta');
  return meta !== undefined && getMember(bytes, meta, META.protocolVersion) !== undefined;
}

/**
 * Compares `Mcp-Method` and `Mcp-Name` with the body.
 *
 * @returns the name that the request has in its params, or a refusal
 */
function checkNames(frame: RequestFrame, headers: McpHeaders): string | undefined | Refusal {
  const { bytes, params, method } = frame;
  if (headers.method === undefined) return headerMismatch('Mcp-Method is missing');
  if (!isHeaderOf(headers.method, method)) {
    return headerMismatch(`Mcp-Method is ${quote(headers.method)}, but the body says ${quote(method)}`);
  }
  const key = NAMED_BY.get(method);
  if (key === undefined) return undefined;
  const name = params === undefined ? undefined : stringOf(bytes, getMember(bytes, params, key));
  if (name === undefined) return refusal(CODE.invalidParams, `params.${key} must be a string`);
  if (headers.name === undefined) return headerMismatch('Mcp-Name is missing');
  if (!isHeaderOf(headers.name, name)) {
    return headerMismatch(`Mcp-Name is ${quote(headers.name)}, but the body says ${quote(name)}`);
  }
  return name;
}

function quote(text: string): string {
  return JSON.stringify(text.length > 200 ? `${text.slice(0, 200)}…` : text);
}
