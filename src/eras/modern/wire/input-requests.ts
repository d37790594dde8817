import { CODE, ExchangeError, ServerRequestRefused } from '../../../exchange/errors.js';
import { ownError } from '../../../exchange/outcome.js';
import type { Answer, Channel } from '../../../exchange/types.js';
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

/** What becomes of a question that the client answers with an error, which this era has no words for. */
const INSTEAD_OF_ERROR: Readonly<Record<string, string>> = {
  'elicitation/create': '{"action":"cancel"}',
  'roots/list': '{"roots":[]}',
};

/** A question of a modern server, as a request to a client that is asked while its own request lasts. */
export interface InputRequest {
  readonly key: string;
  readonly frame: RequestFrame;
  readonly url: string | undefined;
}

/** An answer that a server can be given: the era has no errors among them. */
export type InputResponse = Extract<Answer, { readonly result: Buffer }>;

/** The questions of a server could not be carried to the client and back; the message tells why. */
export class InputFailed extends Error {
  /** The outcome for a request that has no better place for it. */
  toExchangeError(): ExchangeError {
    return new ExchangeError(
      ownError({ code: CODE.internal, message: `Cannot request input: ${this.message}` }),
    );
  }
}

/**
 * The entries of `inputRequests` (basic/patterns/mrtr).
 * @param nextId makes ids, unique among all that the gateway asks
 * @throws InputFailed for what are none
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

/**
 * Puts a question to a client.
 * @throws InputFailed when it cannot be asked, or gives an answer that the server cannot be given
 */
export async function askInput(asker: Pick<Channel, 'ask'>, { frame }: InputRequest): Promise<InputResponse> {
  const { id, method, bytes, params } = frame;
  try {
    const answer = await asker.ask({ id, method, bytes, params });
    if ('result' in answer) return answer;
    const instead = INSTEAD_OF_ERROR[method];
    if (instead === undefined)
      throw new InputFailed(`the client answered ${method} with an error: ${messageOf(answer.error)}`);
    return { result: Buffer.from(instead) };
  } catch (error) {
    if (!(error instanceof ServerRequestRefused)) throw error;
    throw new InputFailed(`${method} could not be asked: ${error.message}`);
  }
}

function messageOf(error: Buffer): string {
  const { message } = JSON.parse(error.toString()) as { message?: unknown };
  return typeof message === 'string' ? message : 'no message';
}
