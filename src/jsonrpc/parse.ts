import {
  type Batch,
  type ErrorFrame,
  type Frame,
  FrameError,
  INVALID_REQUEST,
  type NotificationFrame,
  PARSE_ERROR,
  type RequestFrame,
  type RequestId,
  type ResultFrame,
} from './frame.js';
import { skipSpace } from './grammar.js';
import { type JsonNode, JsonSyntaxError, scanJson } from './json.js';
import { keyAt } from './keys.js';
import { eachElement, getMember, membersNamed, stringOf } from './lookup.js';

/** Envelope and params/result/error; what is inside these is mostly passed on unread. */
const RECORDED_LEVELS = 2;

/** A batch with more messages than this is refused whole. */
export const MAX_BATCH_ITEMS = 1000;

/**
 * A message or a batch (JSON-RPC 2.0, section 6). In a batch a faulty member does not harm the others: it comes as
 * the error it would have thrown.
 *
 * @throws FrameError if the body is no JSON, no message, or a batch that is empty or too large
 */
export function parseBody(bytes: Buffer): Frame | Batch {
  const root = scan(bytes, 0, bytes.length);
  return root.kind === 'array'
    ? { type: 'batch', items: readBatch(bytes, root, STRICT) }
    : readFrame(bytes, root, STRICT);
}

/**
 * One message, as a well-behaved peer writes it. Unknown members of the envelope are tolerated.
 *
 * @throws FrameError if it is none
 */
export function parseFrame(bytes: Buffer, start = 0, end = bytes.length): Frame {
  return readFrame(bytes, scan(bytes, start, end), STRICT);
}

/**
 * One message of a peer that has been asked something, whose answers are taken with some patience, since refusing
 * one leaves the caller without any: the id of an answer may be anything or missing (a string or number is kept,
 * all else is undefined), `error: null` beside a result is ignored, as is `result: null` beside an error, the error
 * may be a bare string, its code may be missing (0) and so may its message ('').
 *
 * @throws FrameError if it is no message even so
 */
export function parseAnswer(bytes: Buffer, start = 0, end = bytes.length): Frame {
  return readFrame(bytes, scan(bytes, start, end), LENIENT);
}

/**
 * The messages in what such a peer has sent: one, or those of an array, which some servers answer with unasked. A
 * faulty member of an array is passed over, so that it does not cost the others their callers. Each frame has a buffer
 * to itself, without anything around it, since it may be passed on whole.
 *
 * @throws FrameError if there is no message at all, with the fault of the first
 */
export function parseAnswers(bytes: Buffer): Frame[] {
  const text = withoutSpaceAround(bytes);
  const root = scan(text, 0, text.length);
  if (root.kind !== 'array') return [readFrame(text, root, LENIENT)];
  const items = readBatch(text, root, LENIENT);
  const frames = items.filter((item): item is Frame => !(item instanceof FrameError));
  if (frames.length === 0) throw items[0];
  return frames;
}

function withoutSpaceAround(bytes: Buffer): Buffer {
  const hasMark = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
  const start = skipSpace(bytes, hasMark ? 3 : 0, bytes.length);
  let end = bytes.length;
  while (end > start && skipSpace(bytes, end - 1, end) === end) end--;
  return start === 0 && end === bytes.length ? bytes : bytes.subarray(start, end);
}

type Manner = 'strict' | 'lenient';
const STRICT: Manner = 'strict';
const LENIENT: Manner = 'lenient';

function scan(bytes: Buffer, start: number, end: number): JsonNode {
  try {
    return scanJson(bytes, RECORDED_LEVELS, start, end);
  } catch (error) {
    if (error instanceof JsonSyntaxError) throw new FrameError(PARSE_ERROR, error.message);
    throw error;
  }
}

function readBatch(bytes: Buffer, root: JsonNode, manner: Manner): (Frame | FrameError)[] {
  const items: (Frame | FrameError)[] = [];
  for (const element of eachElement(bytes, root)) {
    if (items.length === MAX_BATCH_ITEMS)
      throw invalid(`A batch may hold ${MAX_BATCH_ITEMS} messages at most`);
    const own = bytes.subarray(element.start, element.end);
    try {
      items.push(readFrame(own, scan(own, 0, own.length), manner));
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      items.push(error);
    }
  }
  if (items.length === 0) throw invalid('A batch must hold at least one message');
  return items;
}

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

function readFrame(bytes: Buffer, root: JsonNode, manner: Manner): Frame {
  if (root.kind !== 'object') throw invalid('A message must be a JSON object');
  const envelope = readEnvelope(bytes, root);
  const { jsonrpc, method, duplicate } = envelope;
  const id = envelope.duplicate === 'id' ? undefined : requestIdOf(bytes, envelope.id);
  // Which of two equal members counts differs from reader to reader, and so must not be left to the next one.
  if (duplicate !== undefined) throw invalid(`Member "${duplicate}" occurs more than once`, id);
  if (stringOf(bytes, jsonrpc) !== '2.0') throw invalid('Member "jsonrpc" must be "2.0"', id);
  return method === undefined
    ? readAnswer(bytes, root, envelope, id, manner)
    : readCall(bytes, root, envelope, method, id);
}

function readCall(
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

function readAnswer(
  bytes: Buffer,
  root: JsonNode,
  envelope: Envelope,
  strictId: RequestId | undefined,
  manner: Manner,
): ResultFrame | ErrorFrame {
  let { result, error } = envelope;
  let id = strictId;
  if (manner === LENIENT) {
    id ??= anyIdOf(bytes, envelope.id);
    if (result !== undefined && error?.kind === 'null') error = undefined;
    if (error !== undefined && result?.kind === 'null') result = undefined;
  }
  if (result !== undefined && error !== undefined)
    throw invalid('An answer has either "result" or "error"', id);
  if (result === undefined && error === undefined) {
    throw invalid('A message must have "method", "result" or "error"', id);
  }
  if (manner === STRICT && id === undefined && !(error !== undefined && isAbsent(envelope.id))) {
    throw invalid('Member "id" must be a string or an integer');
  }
  return error === undefined
    ? { type: 'result', bytes, root, id, result: result as JsonNode }
    : readError(bytes, root, error, id, manner);
}

function readError(
  bytes: Buffer,
  root: JsonNode,
  error: JsonNode,
  id: RequestId | undefined,
  manner: Manner,
): ErrorFrame {
  const code = errorCodeOf(bytes, getMember(bytes, error, 'code'));
  const message = stringOf(bytes, getMember(bytes, error, 'message'));
  const data = getMember(bytes, error, 'data');
  if (manner === STRICT && (code === undefined || message === undefined)) {
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

/** MCP's ids: a string or an integer, of any size. Fractions and exponents are no integers here, not even `1.0`. */
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
    // Past the digits, a JSON number has only signs, a point and an E in it; a sign in first place is a minus.
    if ((byte < 0x30 || byte > 0x39) && i > node.start) return false;
  }
  return true;
}

/** An error about a request whose id could not be read has the id null (JSON-RPC 2.0, section 5) or none (MCP). */
function isAbsent(id: JsonNode | undefined): boolean {
  return id === undefined || id.kind === 'null';
}

function errorCodeOf(bytes: Buffer, node: JsonNode | undefined): number | undefined {
  if (node?.kind !== 'number') return undefined;
  const code = Number(keyAt(bytes, node.start, node.end));
  return Number.isSafeInteger(code) ? code : undefined;
}
