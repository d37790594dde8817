import { writeObject } from './edit.js';
import {
  type ErrorFrame,
  type Frame,
  FrameError,
  INVALID_REQUEST,
  type NotificationFrame,
  type RequestFrame,
  type RequestId,
  type ResultFrame,
} from './frame.js';
import { type JsonNode, scanJson } from './json.js';
import { keyAt } from './keys.js';
import { eachElement, getMember, membersNamed, stringOf } from './lookup.js';
import { Rope } from './rope.js';

/** `strict` reads what JSON-RPC 2.0 and MCP allow; `lenient` also accepts common deviations in responses. */
export type Strictness = 'strict' | 'lenient';

const ENVELOPE_KEYS = ['jsonrpc', 'id', 'method', 'params', 'result', 'error'] as const;
type EnvelopeKey = (typeof ENVELOPE_KEYS)[number];

interface Envelope {
  jsonrpc: JsonNode | undefined;
  id: JsonNode | undefined;
  method: JsonNode | undefined;
  params: JsonNode | undefined;
  result: JsonNode | undefined;
  error: JsonNode | undefined;
  duplicate: EnvelopeKey | undefined;
}

function readEnvelope(bytes: Buffer, root: JsonNode): Envelope {
  const members = root.members ?? membersNamed(bytes, root, ENVELOPE_KEYS);
  const values: (JsonNode | undefined)[] = [undefined, undefined, undefined, undefined, undefined, undefined];
  let duplicate: EnvelopeKey | undefined;
  for (const member of members) {
    for (let i = 0; i < ENVELOPE_KEYS.length; i++) {
      if (!member.isNamed(ENVELOPE_KEYS[i] as EnvelopeKey)) continue;
      if (values[i] !== undefined) duplicate ??= ENVELOPE_KEYS[i];
      values[i] = member.value;
      break;
    }
  }
  return {
    jsonrpc: values[0],
    id: values[1],
    method: values[2],
    params: values[3],
    result: values[4],
    error: values[5],
    duplicate,
  };
}

/**
 * Reads the scanned object as a message of JSON-RPC 2.0.
 *
 * @throws FrameError if it is none
 */
export function readFrame(bytes: Buffer, root: JsonNode, strictness: Strictness): Frame {
  if (root.kind !== 'object') throw invalid('A message must be a JSON object');
  const envelope = readEnvelope(bytes, root);
  const { jsonrpc, method, duplicate } = envelope;
  const id = envelope.duplicate === 'id' ? undefined : requestIdOf(bytes, envelope.id);
  // Two readers may disagree on which of two members of one name counts, so neither is passed on (RFC 8259, section 4).
  if (duplicate !== undefined) throw invalid(`Member "${duplicate}" occurs more than once`, id);
  if (strictness === 'strict') checkExtent(root, envelope, id);
  if (stringOf(bytes, jsonrpc) !== '2.0') throw invalid('Member "jsonrpc" must be "2.0"', id);
  return method === undefined
    ? readResponse(bytes, root, envelope, id, strictness)
    : hasVoidParams(bytes, envelope, strictness)
      ? withoutParams(bytes, root, strictness)
      : readRequest(bytes, root, envelope, method, id);
}

/**
 * Whether a call has params that mean none: real clients and servers write null for them, and some servers an empty array.
 */
function hasVoidParams(bytes: Buffer, { params }: Envelope, strictness: Strictness): boolean {
  if (params?.kind === 'null') return true;
  return (
    strictness === 'lenient' && params?.kind === 'array' && eachElement(bytes, params).next().done === true
  );
}

/** The call without its params, in a buffer of its own: JSON-RPC 2.0 allows no null there, and the receiver may refuse it. */
function withoutParams(bytes: Buffer, root: JsonNode, strictness: Strictness): Frame {
  const out = new Rope();
  writeObject(out, bytes, root, new Map([['params', undefined]]));
  const own = out.toBuffer();
  return readFrame(own, scanJson(own, 2), strictness);
}

/** Longest id of a client: it is kept, and repeated, for as long as the request lasts. */
const MAX_ID_BYTES = 4_096;

/**
 * Refuses messages of clients that have more members than a scan records: each lookup would be a pass over the text.
 *
 * @throws FrameError
 */
function checkExtent(root: JsonNode, { id: idNode, params }: Envelope, id: RequestId | undefined): void {
  if (idNode !== undefined && idNode.end - idNode.start > MAX_ID_BYTES)
    throw invalid(`Member "id" has more than ${MAX_ID_BYTES} bytes`);
  if (root.members === undefined) throw invalid('A message has too many members', id);
  if (params?.kind === 'object' && params.members === undefined)
    throw invalid('Member "params" has too many members', id);
}

function readRequest(
  bytes: Buffer,
  root: JsonNode,
  envelope: Envelope,
  methodNode: JsonNode,
  id: RequestId | undefined,
): RequestFrame | NotificationFrame {
  const { params, result, error } = envelope;
  const method = stringOf(bytes, methodNode);
  if (method === undefined) throw invalid('Member "method" must be a string', id);
  if (result !== undefined || error !== undefined)
    throw invalid('A message is either a call or an answer', id);
  if (params !== undefined && params.kind !== 'object')
    throw invalid('Member "params" must be an object', id);
  if (envelope.id === undefined) return { type: 'notification', bytes, root, method, params };
  if (id === undefined) throw invalid('Member "id" must be a string or an integer');
  return { type: 'request', bytes, root, id, method, params };
}

function readResponse(
  bytes: Buffer,
  root: JsonNode,
  envelope: Envelope,
  strictId: RequestId | undefined,
  strictness: Strictness,
): ResultFrame | ErrorFrame {
  let { result, error } = envelope;
  let id = strictId;
  if (strictness === 'lenient') {
    id ??= anyIdOf(bytes, envelope.id);
    if (result !== undefined && error?.kind === 'null') error = undefined;
    if (error !== undefined && result?.kind === 'null') result = undefined;
  }
  if (result !== undefined && error !== undefined)
    throw invalid('An answer has either "result" or "error"', id);
  if (result === undefined && error === undefined) {
    throw invalid('A message must have "method", "result" or "error"', id);
  }
  if (strictness === 'strict' && id === undefined && !(error !== undefined && isAbsent(envelope.id))) {
    throw invalid('Member "id" must be a string or an integer');
  }
  return error === undefined
    ? { type: 'result', bytes, root, id, result: result as JsonNode }
    : readError(bytes, root, error, id, strictness);
}

function readError(
  bytes: Buffer,
  root: JsonNode,
  error: JsonNode,
  id: RequestId | undefined,
  strictness: Strictness,
): ErrorFrame {
  const code = errorCodeOf(bytes, getMember(bytes, error, 'code'));
  const message = stringOf(bytes, getMember(bytes, error, 'message'));
  const data = getMember(bytes, error, 'data');
  if (strictness === 'strict' && (code === undefined || message === undefined)) {
    throw invalid('Member "error" must have an integer "code" and a string "message"', id);
  }
  return {
    type: 'error',
    bytes,
    root,
    id,
    error,
    code: code ?? 0,
    message: message ?? stringOf(bytes, error) ?? '',
    data,
  };
}

function invalid(message: string, id?: RequestId): FrameError {
  return new FrameError(INVALID_REQUEST, message, id);
}

/** An id of MCP: a string or an integer of any size. Fractions and exponents are refused, also `1.0`. */
function requestIdOf(bytes: Buffer, node: JsonNode | undefined): RequestId | undefined {
  if (node === undefined) return undefined;
  if (node.kind === 'number' ? !isInteger(bytes, node) : node.kind !== 'string') return undefined;
  return anyIdOf(bytes, node);
}

function anyIdOf(bytes: Buffer, node: JsonNode | undefined): RequestId | undefined {
  if (node?.kind !== 'number' && node?.kind !== 'string') return undefined;
  return bytes.toString('utf8', node.start, node.end) as RequestId;
}

function isInteger(bytes: Buffer, node: JsonNode): boolean {
  for (let i = node.start; i < node.end; i++) {
    const byte = bytes[i] as number;
    // The first byte is a digit or the minus; any later byte that is not a digit is part of a fraction or an exponent.
    if ((byte < 0x30 || byte > 0x39) && i > node.start) return false;
  }
  return true;
}

/** An error for a request whose id could not be read has the id null (JSON-RPC 2.0, section 5) or no id (MCP). */
function isAbsent(id: JsonNode | undefined): boolean {
  return id === undefined || id.kind === 'null';
}

function errorCodeOf(bytes: Buffer, node: JsonNode | undefined): number | undefined {
  if (node?.kind !== 'number') return undefined;
  const code = Number(keyAt(bytes, node.start, node.end));
  return Number.isSafeInteger(code) ? code : undefined;
}
