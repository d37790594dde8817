import type { ClientAnswer, ServerRequest } from '../../../exchange/channel.js';
import type { ClientCapabilities } from '../../../exchange/client-capabilities.js';
import type { PendingEdits } from '../../../exchange/outcome.js';
import { isRecord } from '../../../exchange/utils/is-record.js';
import {
  editedObject,
  getMember,
  type JsonNode,
  membersOf,
  nameMap,
  parseFrame,
  type RequestFrame,
  Rope,
  scanJson,
  stringMember,
  writeObject,
} from '../../../jsonrpc/index.js';
import type { RevisionFeatures } from './revisions.js';
import { downgradeSamplingMessages, downgradeSamplingResult } from './sampling.js';
import { RELATED_TASK } from './tasks.js';

type ParamsEdit = (bytes: Buffer, params: JsonNode, features: RevisionFeatures) => PendingEdits;

/** A kind of request that servers send to clients. */
interface ServerRequestKind {
  /** Path of the capability that the client must have declared. */
  readonly capability: (bytes: Buffer, params: JsonNode | undefined) => readonly string[];
  /** Edits to the request of a legacy server for a client of an older revision. */
  readonly downgrade?: ParamsEdit;
  /** Edits to a request in the neutral form for a legacy client. */
  readonly encode?: ParamsEdit;
  /** The client's result for a server of an older revision. */
  readonly downgradeResult?: (result: Buffer, features: RevisionFeatures) => Buffer;
}

const editMessages: ParamsEdit = (bytes, params, features) => {
  const messages = getMember(bytes, params, 'messages');
  const edited =
    messages?.kind === 'array' ? downgradeSamplingMessages(bytes, messages, features) : undefined;
  return edited === undefined ? new Map() : new Map([['messages', edited]]);
};

const KINDS: ReadonlyMap<string, ServerRequestKind> = nameMap<ServerRequestKind>({
  'elicitation/create': {
    capability: (bytes, params) => [
      'elicitation',
      stringMember(bytes, params, 'mode') === 'url' ? 'url' : 'form',
    ],
    // Before 2025-11-25 there was no `mode`. Schemas of a later revision stay: a client shows a text field for them.
    downgrade: (bytes, params, features) =>
      !features.urlElicitation && stringMember(bytes, params, 'mode') === 'form'
        ? new Map([['mode', undefined]])
        : new Map(),
    encode: (_bytes, _params, features) =>
      new Map([['mode', features.urlElicitation ? '"form"' : undefined]]),
  },
  'sampling/createMessage': {
    capability: (bytes, params) =>
      params === undefined ||
      (getMember(bytes, params, 'tools') === undefined &&
        getMember(bytes, params, 'toolChoice') === undefined)
        ? ['sampling']
        : ['sampling', 'tools'],
    downgrade: editMessages,
    encode: editMessages,
    downgradeResult: downgradeSamplingResult,
  },
  'roots/list': { capability: () => ['roots'] },
});

/**
 * The capability that a client lacks for a request, such as `elicitation.url`; undefined if it lacks none.
 * @param neutral what the client declared, in the neutral form
 */
export function missingCapability(
  { method, bytes, params }: ServerRequest,
  neutral: ClientCapabilities,
): string | undefined {
  const path = KINDS.get(method)?.capability(bytes, params) ?? [];
  let declared: unknown = neutral.value;
  for (const key of path) {
    declared = isRecord(declared) ? declared[key] : undefined;
    if (!isRecord(declared)) return path.join('.');
  }
  return undefined;
}

/** The request of a legacy server for a client whose revision may be older. */
export function downgradeServerRequest(request: ServerRequest, features: RevisionFeatures): ServerRequest {
  const { bytes, params, method } = request;
  const edits = params === undefined ? undefined : KINDS.get(method)?.downgrade?.(bytes, params, features);
  return params === undefined || edits === undefined ? request : withParams(request, params, edits);
}

/** A client's answer for a server whose revision may be older. */
export function downgradeAnswer(
  method: string,
  answer: ClientAnswer,
  features: RevisionFeatures,
): ClientAnswer {
  if (!('result' in answer)) return answer;
  const result = KINDS.get(method)?.downgradeResult?.(answer.result, features);
  return result === undefined || result === answer.result ? answer : { result };
}

/** An elicitation that sends the client to a page, and the id that the gateway made for it. */
export interface UrlElicitation {
  readonly url: string;
  readonly elicitationId: string;
}

export interface EncodedServerRequest {
  readonly request: ServerRequest;
  readonly elicitation: UrlElicitation | undefined;
}

export interface EncodeOptions {
  readonly features: RevisionFeatures;
  /** Makes the id of a {@link UrlElicitation}. */
  readonly newElicitationId: () => string;
  /** The task that the request belongs to. */
  readonly task?: string | undefined;
}

/** A request in the neutral form for a client of a legacy revision. */
export function encodeServerRequest(
  request: ServerRequest,
  { features, newElicitationId, task }: EncodeOptions,
): EncodedServerRequest {
  const { method, bytes, params } = request;
  if (params === undefined) return { request: withTask(request, task), elicitation: undefined };
  const url = method === 'elicitation/create' ? urlOf(bytes, params) : undefined;
  const elicitation = url === undefined ? undefined : { url, elicitationId: newElicitationId() };
  const edits = metaEdits(bytes, getMember(bytes, params, '_meta'), task);
  const more =
    elicitation === undefined
      ? KINDS.get(method)?.encode?.(bytes, params, features)
      : new Map([['elicitationId', JSON.stringify(elicitation.elicitationId)]]);
  for (const [key, value] of more ?? []) edits.set(key, value);
  return { request: withParams(request, params, edits), elicitation };
}

/** The page that an elicitation sends the client to; undefined for a form. */
function urlOf(bytes: Buffer, params: JsonNode): string | undefined {
  return stringMember(bytes, params, 'mode') === 'url' ? stringMember(bytes, params, 'url') : undefined;
}

/** A request without params, with the task that it belongs to. */
function withTask(request: ServerRequest, task: string | undefined): ServerRequest {
  if (task === undefined) return request;
  const bytes = Buffer.from('{}');
  return withParams({ ...request, bytes }, scanJson(bytes, 1), metaEdits(bytes, undefined, task));
}

function metaEdits(bytes: Buffer, meta: JsonNode | undefined, task: string | undefined): PendingEdits {
  const known = meta?.kind === 'object' ? meta : undefined;
  const changes = new Map<string, string | undefined>();
  // The client would report progress on its answer, which no modern server can receive.
  const hasToken = known !== undefined && getMember(bytes, known, 'progressToken') !== undefined;
  if (hasToken) changes.set('progressToken', undefined);
  if (task !== undefined) changes.set(RELATED_TASK, JSON.stringify({ taskId: task }));
  if (changes.size === 0) return new Map();
  const left = known === undefined ? 0 : membersOf(bytes, known).length - (hasToken ? 1 : 0);
  return new Map([
    ['_meta', left === 0 && task === undefined ? undefined : editedObject(bytes, known, changes)],
  ]);
}

/** The same request with edited params. */
function withParams(request: ServerRequest, params: JsonNode, edits: PendingEdits): ServerRequest {
  if (edits.size === 0) return request;
  const { id, method, bytes } = request;
  const out = new Rope().push(`{"jsonrpc":"2.0","id":${id},"method":${JSON.stringify(method)},"params":`);
  writeObject(out, bytes, params, edits);
  const frame = parseFrame(out.push('}').toBuffer()) as RequestFrame;
  return { id, method, bytes: frame.bytes, params: frame.params };
}
