import type { ServerRequest } from '../../../exchange/types.js';
import {
  getMember,
  type JsonNode,
  membersOf,
  Rope,
  scanJson,
  stringOf,
  writeObject,
} from '../../../jsonrpc/index.js';
import { downgradeMessages, withParams } from './downgrade.js';
import type { RevisionFeatures } from './revisions.js';
import { RELATED_TASK } from './tasks.js';

/** An elicitation that sends the client to a page, under the id that was made for it. */
export interface UrlElicitation {
  readonly url: string;
  readonly elicitationId: string;
}

export interface AdaptedServerRequest {
  readonly question: ServerRequest;
  readonly elicitation: UrlElicitation | undefined;
}

/**
 * Encodes a server request of a modern server for a client of a legacy revision.
 * @param newId makes the id of an elicitation that sends the client to a page
 * @param task the task that it belongs to
 */
export function adaptServerRequest(
  question: ServerRequest,
  features: RevisionFeatures,
  newId: () => string,
  task?: string,
): AdaptedServerRequest {
  const { bytes, params } = question;
  if (params === undefined) {
    const empty = Buffer.from('{}');
    const edits = metaEdits(empty, undefined, task);
    if (edits.size === 0) return { question, elicitation: undefined };
    return {
      question: withParams({ ...question, bytes: empty }, scanJson(empty, 1), edits),
      elicitation: undefined,
    };
  }
  const edits = metaEdits(bytes, getMember(bytes, params, '_meta'), task);
  let elicitation: UrlElicitation | undefined;
  if (question.method === 'elicitation/create') {
    const url = stringOf(bytes, getMember(bytes, params, 'url'));
    if (stringOf(bytes, getMember(bytes, params, 'mode')) === 'url' && url !== undefined) {
      elicitation = { url, elicitationId: newId() };
      edits.set('elicitationId', JSON.stringify(elicitation.elicitationId));
    } else edits.set('mode', features.urlElicitation ? '"form"' : undefined);
  } else if (question.method === 'sampling/createMessage' && !features.samplingTools) {
    const messages = getMember(bytes, params, 'messages');
    const lowered = messages?.kind === 'array' ? downgradeMessages(bytes, messages, features) : undefined;
    if (lowered !== undefined) edits.set('messages', lowered);
  }
  return { question: withParams(question, params, edits), elicitation };
}

/** What becomes of the `_meta` of a question. */
function metaEdits(
  bytes: Buffer,
  meta: JsonNode | undefined,
  task: string | undefined,
): Map<string, Rope | string | undefined> {
  const known = meta?.kind === 'object' ? meta : undefined;
  const changes = new Map<string, string | undefined>();
  // The client would report progress on its answer, which no server of the other era can be told.
  const hasToken = known !== undefined && getMember(bytes, known, 'progressToken') !== undefined;
  if (hasToken) changes.set('progressToken', undefined);
  if (task !== undefined) changes.set(RELATED_TASK, JSON.stringify({ taskId: task }));
  if (changes.size === 0) return new Map();
  const left = known === undefined ? 0 : membersOf(bytes, known).length - (hasToken ? 1 : 0);
  if (left === 0 && task === undefined) return new Map([['_meta', undefined]]);
  const kept = new Rope();
  writeObject(kept, bytes, known, changes);
  return new Map([['_meta', kept]]);
}
