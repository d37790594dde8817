import type { JsonNode } from './json.js';
import { Rope } from './rope.js';

/**
 * The raw JSON token of a request's id, `7` or `"a"`. It is sent back unchanged, digits and escapes included, and `1`
 * and `"1"` are different keys of a map.
 */
export type RequestId = string & { readonly __requestId: unique symbol };

/** The id that is this number. */
export function numberId(id: number): RequestId {
  return String(id) as RequestId;
}

/**
 * Whether an id or a progress token that a peer sent back is the one that it was sent, both as JSON texts. Peers rewrite
 * them (`"\u0041"` as `"A"`, large integers rounded, `7` as `7.0`), and some turn numbers into strings.
 */
export function isSameId(sent: string, returned: string): boolean {
  return sent === returned || String(JSON.parse(sent)) === String(JSON.parse(returned));
}

interface FrameBase {
  /** The buffer that the nodes refer to; it may hold more than this frame. */
  readonly bytes: Buffer;
  readonly root: JsonNode;
}

export interface RequestFrame extends FrameBase {
  readonly type: 'request';
  readonly id: RequestId;
  readonly method: string;
  /** An object if present. */
  readonly params: JsonNode | undefined;
}

export interface NotificationFrame extends FrameBase {
  readonly type: 'notification';
  readonly method: string;
  /** An object if present. */
  readonly params: JsonNode | undefined;
}

export interface ResultFrame extends FrameBase {
  readonly type: 'result';
  /** Undefined only in frames from `parseLenientFrame`. */
  readonly id: RequestId | undefined;
  readonly result: JsonNode;
}

export interface ErrorFrame extends FrameBase {
  readonly type: 'error';
  /** Undefined where it is null or missing. */
  readonly id: RequestId | undefined;
  readonly error: JsonNode;
  readonly code: number;
  readonly message: string;
  readonly data: JsonNode | undefined;
}

export type Frame = RequestFrame | NotificationFrame | ResultFrame | ErrorFrame;

export interface Batch {
  readonly type: 'batch';
  readonly items: readonly (Frame | FrameError)[];
}

export const PARSE_ERROR = -32700;
export const INVALID_REQUEST = -32600;

/** The bytes are not a JSON-RPC message. */
export class FrameError extends Error {
  readonly code: typeof PARSE_ERROR | typeof INVALID_REQUEST;
  /** The id of the invalid message, if it could be read. */
  readonly id: RequestId | undefined;

  constructor(code: typeof PARSE_ERROR | typeof INVALID_REQUEST, message: string, id?: RequestId) {
    super(message);
    this.name = 'FrameError';
    this.code = code;
    this.id = id;
  }
}

/** @param params JSON text of an object */
export function requestRope(id: RequestId | number, method: string, params: Rope | undefined): Rope {
  const rope = openMessage(id).pushAscii(',"method":').pushString(method);
  if (params !== undefined) rope.pushAscii(',"params":').push(params);
  return rope.pushAscii('}');
}

/** @param params JSON text of an object */
export function notificationRope(method: string, params: Rope | undefined): Rope {
  const rope = new Rope().pushAscii('{"jsonrpc":"2.0","method":').pushString(method);
  if (params !== undefined) rope.pushAscii(',"params":').push(params);
  return rope.pushAscii('}');
}

/** @param result JSON text */
export function resultRope(id: RequestId | number, result: Rope): Rope {
  return openMessage(id).pushAscii(',"result":').push(result).pushAscii('}');
}

/** @param error JSON text of the error object */
export function errorObjectRope(id: RequestId | number, error: Rope): Rope {
  return openMessage(id).pushAscii(',"error":').push(error).pushAscii('}');
}

/**
 * @param id undefined is written as null, for a request whose id could not be read
 * @param data JSON text
 */
export function errorRope(
  id: RequestId | number | undefined,
  code: number,
  message: string,
  data?: Rope | string,
): Rope {
  const rope = openMessage(id ?? ('null' as RequestId));
  rope.pushAscii(`,"error":{"code":${code},"message":`).pushString(message);
  if (data !== undefined) rope.pushAscii(',"data":').push(data);
  return rope.pushAscii('}}');
}

/** The first members of a message with an id; the object stays open. */
function openMessage(id: RequestId | number): Rope {
  return new Rope().pushAscii('{"jsonrpc":"2.0","id":').push(String(id));
}
