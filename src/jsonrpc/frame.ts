import type { JsonNode } from './json.js';
import { Rope } from './rope.js';

/**
 * The raw JSON token of a request's id, `7` or `"a"`: it is echoed as it came, digits and escapes included, and
 * `1` and `"1"` stay apart as keys of a map.
 */
export type RequestId = string & { readonly __requestId: unique symbol };

/**
 * Whether a peer means an id or a token that it was given, both as JSON texts: some write it anew (`"\u0041"` as `"A"`,
 * large integers rounded, `7` as `7.0`), and some turn a number into a string.
 */
export function meansSame(given: string, returned: string): boolean {
  return given === returned || String(JSON.parse(given)) === String(JSON.parse(returned));
}

interface FrameBase {
  /** The buffer that the nodes point into; it may hold more than this frame. */
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
  /** Undefined only from `parseAnswer`. */
  readonly id: RequestId | undefined;
  readonly result: JsonNode;
}

export interface ErrorFrame extends FrameBase {
  readonly type: 'error';
  /** Undefined if null or missing. */
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

/** The bytes are no JSON-RPC message. */
export class FrameError extends Error {
  readonly code: typeof PARSE_ERROR | typeof INVALID_REQUEST;
  /** The sender's id, where it could be read in spite of the fault. */
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
  const rope = opened(id).pushAscii(',"method":').pushString(method);
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
  return opened(id).pushAscii(',"result":').push(result).pushAscii('}');
}

/** @param error JSON text of the error object */
export function errorObjectRope(id: RequestId | number, error: Rope): Rope {
  return opened(id).pushAscii(',"error":').push(error).pushAscii('}');
}

/**
 * @param id undefined is written as null: the request's id could not be read
 * @param data JSON text
 */
export function errorRope(
  id: RequestId | number | undefined,
  code: number,
  message: string,
  data?: Rope | string,
): Rope {
  const rope = opened(id ?? ('null' as RequestId));
  rope.pushAscii(`,"error":{"code":${code},"message":`).pushString(message);
  if (data !== undefined) rope.pushAscii(',"data":').push(data);
  return rope.pushAscii('}}');
}

/** The beginning of a message with an id. */
function opened(id: RequestId | number): Rope {
  return new Rope().pushAscii('{"jsonrpc":"2.0","id":').push(String(id));
}
