import { MAX_TOKEN_BYTES, metaProblem } from '../../../exchange/declaration-limits.js';
import type { ExchangeRequest } from '../../../exchange/exchange.js';
import { getMember, nameMap, type RequestFrame, stringMember, textOf } from '../../../jsonrpc/index.js';
import type { RevisionFeatures } from '../wire/revisions.js';
import { asksForTask } from '../wire/tasks.js';

const NO_KEYS: readonly string[] = [];

/** The param that a request names its tool, prompt or resource by, by method. */
const NAME_PARAM: ReadonlyMap<string, string> = nameMap({
  'tools/call': 'name',
  'prompts/get': 'name',
  'resources/read': 'uri',
});

/** A client's request as the exchange has it. */
export function exchangeRequest(frame: RequestFrame, features: RevisionFeatures): ExchangeRequest {
  const { bytes, params, method, id } = frame;
  const meta = params === undefined ? undefined : getMember(bytes, params, '_meta');
  const token = meta === undefined ? undefined : getMember(bytes, meta, 'progressToken');
  const nameParam = NAME_PARAM.get(method);
  return {
    id,
    method,
    params: {
      bytes,
      node: params,
      meta: meta?.kind === 'object' ? meta : undefined,
      envelopeKeys: NO_KEYS,
      bareEnvelope: false,
    },
    name: nameParam === undefined ? undefined : stringMember(bytes, params, nameParam),
    progressToken: token?.kind === 'string' || token?.kind === 'number' ? textOf(bytes, token) : undefined,
    wantsTask: method === 'tools/call' && features.tasks && asksForTask(bytes, params),
    resumes: false,
    raw: undefined,
    paramHeaders: NO_KEYS,
  };
}

/** What is too large in a request; undefined if it is accepted. */
export function paramsProblem({ bytes, params }: RequestFrame): string | undefined {
  const meta = params === undefined ? undefined : getMember(bytes, params, '_meta');
  if (meta === undefined) return undefined;
  const token = getMember(bytes, meta, 'progressToken');
  const long = token !== undefined && token.end - token.start > MAX_TOKEN_BYTES;
  return long ? `progressToken: more than ${MAX_TOKEN_BYTES} bytes` : metaProblem(bytes, meta);
}
