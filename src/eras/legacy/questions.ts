import { randomUUID } from 'node:crypto';
import type { Question } from '../../exchange/types.js';
import {
  elementsOf,
  getMember,
  type JsonNode,
  membersOf,
  parseFrame,
  type RequestFrame,
  Rope,
  stringOf,
  writeObject,
} from '../../jsonrpc/index.js';
import type { RevisionFeatures } from './revisions.js';

/** An elicitation that sends the client to a page, under the id that was made for it. */
export interface UrlElicitation {
  readonly url: string;
  readonly elicitationId: string;
}

export interface AdaptedQuestion {
  readonly question: Question;
  readonly elicitation: UrlElicitation | undefined;
}

/** Puts a question of a modern server into the form that a client of a legacy revision knows. */
export function adaptQuestion(question: Question, features: RevisionFeatures): AdaptedQuestion {
  const { bytes, params } = question;
  if (params === undefined) return { question, elicitation: undefined };
  const edits = new Map<string, Rope | string | undefined>();
  const meta = getMember(bytes, params, '_meta');
  // The client would report progress on its answer, which no server of the other era can be told.
  if (meta?.kind === 'object' && getMember(bytes, meta, 'progressToken') !== undefined) {
    const kept = new Rope();
    writeObject(kept, bytes, meta, new Map([['progressToken', undefined]]));
    edits.set('_meta', membersOf(bytes, meta).length === 1 ? undefined : kept);
  }
  let elicitation: UrlElicitation | undefined;
  if (question.method === 'elicitation/create') {
    const url = stringOf(bytes, getMember(bytes, params, 'url'));
    if (stringOf(bytes, getMember(bytes, params, 'mode')) === 'url' && url !== undefined) {
      elicitation = { url, elicitationId: randomUUID() };
      edits.set('elicitationId', JSON.stringify(elicitation.elicitationId));
    } else edits.set('mode', features.urlElicitation ? '"form"' : undefined);
  } else if (question.method === 'sampling/createMessage' && !features.samplingTools) {
    const messages = getMember(bytes, params, 'messages');
    if (messages?.kind === 'array') edits.set('messages', singleBlocks(bytes, messages));
  }
  return { question: withParams(question, params, edits), elicitation };
}

function withParams(
  question: Question,
  params: JsonNode,
  edits: Map<string, Rope | string | undefined>,
): Question {
  if (edits.size === 0) return question;
  const { id, method, bytes } = question;
  const out = new Rope().push(`{"jsonrpc":"2.0","id":${id},"method":${JSON.stringify(method)},"params":`);
  writeObject(out, bytes, params, edits);
  const frame = parseFrame(out.push('}').toBuffer()) as RequestFrame;
  return { id, method, bytes: frame.bytes, params: frame.params };
}

/** Before 2025-11-25 a message had one block: one with several becomes several messages. */
function singleBlocks(bytes: Buffer, messages: JsonNode): Rope {
  const out = new Rope().push('[');
  let first = true;
  for (const message of elementsOf(bytes, messages)) {
    const content = getMember(bytes, message, 'content');
    for (const block of content?.kind === 'array' ? elementsOf(bytes, content) : [undefined]) {
      out.push(first ? '' : ',');
      first = false;
      if (block === undefined) out.pushSlice(bytes, message.start, message.end);
      else
        writeObject(
          out,
          bytes,
          message,
          new Map([['content', new Rope().pushSlice(bytes, block.start, block.end)]]),
        );
    }
  }
  return out.push(']');
}
