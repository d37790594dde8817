import type { Channel, ClientAnswer } from '../../../exchange/channel.js';
import { ServerRequestRefused } from '../../../exchange/errors.js';
import { type GatewayErrorOutcome, gatewayError } from '../../../exchange/outcome.js';
import { nameMap } from '../../../jsonrpc/index.js';
import { InputFailed, type InputRequest } from '../wire/input-requests.js';
import { MODERN_BACKEND_ERRORS } from './errors.js';

/** An answer that a modern server can be sent: input responses have no errors. */
export type InputResponse = Extract<ClientAnswer, { readonly result: Buffer }>;

/** The result that a server gets where the client answers with an error, by method. */
const RESULT_FOR_ERROR: ReadonlyMap<string, string> = nameMap({
  'elicitation/create': '{"action":"cancel"}',
  'roots/list': '{"roots":[]}',
});

/**
 * Sends an input request to a client.
 * @throws InputFailed if the client cannot be asked, or its answer is an error for which the era has no form
 */
export async function askInput(
  client: Pick<Channel, 'ask'>,
  { frame }: InputRequest,
): Promise<InputResponse> {
  const { id, method, bytes, params } = frame;
  try {
    const answer = await client.ask({ id, method, bytes, params });
    if ('result' in answer) return answer;
    const substitute = RESULT_FOR_ERROR.get(method);
    if (substitute === undefined)
      throw new InputFailed(`the client answered ${method} with an error: ${messageOf(answer.error)}`);
    return { result: Buffer.from(substitute) };
  } catch (error) {
    if (!(error instanceof ServerRequestRefused)) throw error;
    throw new InputFailed(`${method} could not be asked: ${error.message}`);
  }
}

/** The error for the request that needs the input. */
export function inputError({ message }: InputFailed): GatewayErrorOutcome {
  return gatewayError(MODERN_BACKEND_ERRORS.ERAGATE_INPUT_FAILED, { problem: message });
}

function messageOf(error: Buffer): string {
  const { message } = JSON.parse(error.toString()) as { message?: unknown };
  return typeof message === 'string' ? message : 'no message';
}
