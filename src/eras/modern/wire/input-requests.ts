import {
  getMember,
  type JsonNode,
  membersOf,
  parseFrame,
  type RequestFrame,
  type RequestId,
  Rope,
  requestRope,
  stringOf,
} from '../../../jsonrpc/index.js';
import { serverRequestKind } from './server-requests.js';

/** An entry of `inputRequests`, as a server request that can be sent to a client. */
export interface InputRequest {
  readonly key: string;
  readonly frame: RequestFrame;
  readonly url: string | undefined;
}

/** The input requests of a server are invalid, or cannot be answered; the message says why. */
export class InputFailed extends Error {}

/**
 * Reads the entries of `inputRequests` (basic/patterns/mrtr).
 * @param nextId makes ids that no other request of the gateway to a client has
 * @throws InputFailed for invalid entries
 */
export function readInputRequests(
  bytes: Buffer,
  node: JsonNode | undefined,
  nextId: () => number,
): InputRequest[] {
  if (node === undefined) return [];
  if (node.kind !== 'object') throw new InputFailed("the server's inputRequests are not an object");
  return membersOf(bytes, node).map(({ key, value }) => {
    const method = value.kind === 'object' ? stringOf(bytes, getMember(bytes, value, 'method')) : undefined;
    if (method === undefined) throw new InputFailed(`the server's input request ${key} has no method`);
    if (serverRequestKind(method) === undefined)
      throw new InputFailed(`the server asks for ${method}, which is no question for a client`);
    const params = getMember(bytes, value, 'params');
    if (params !== undefined && params.kind !== 'object')
      throw new InputFailed(`the params of the server's input request ${key} are not an object`);
    const id = `"eragate:${nextId()}"` as RequestId;
    const text = params === undefined ? undefined : new Rope().pushSlice(bytes, params.start, params.end);
    const frame = parseFrame(requestRope(id, method, text).toBuffer()) as RequestFrame;
    return {
      key,
      frame,
      url: params === undefined ? undefined : stringOf(bytes, getMember(bytes, params, 'url')),
    };
  });
}
