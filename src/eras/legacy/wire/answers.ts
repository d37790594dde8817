import type { Answer } from '../../../exchange/types.js';
import {
  elementsOf,
  getMember,
  type JsonNode,
  Rope,
  scanJson,
  stringOf,
  writeObject,
} from '../../../jsonrpc/index.js';
import type { RevisionFeatures } from './revisions.js';

/**
 * A client's answer as a server of a revision takes it: sampling results had one content block, not a list, before
 * 2025-11-25 (client/sampling, "Messages").
 */
export function answerFor(method: string, answer: Answer, features: RevisionFeatures): Answer {
  if (method !== 'sampling/createMessage' || features.samplingTools || !('result' in answer)) return answer;
  const bytes = answer.result;
  const root = scanJson(bytes, 2);
  const content = getMember(bytes, root, 'content');
  if (content?.kind !== 'array') return answer;
  const out = new Rope();
  writeObject(out, bytes, root, new Map([['content', oneBlock(bytes, elementsOf(bytes, content))]]));
  return { result: out.toBuffer() };
}

function oneBlock(bytes: Buffer, blocks: readonly JsonNode[]): Rope {
  const [first] = blocks;
  if (blocks.length === 1 && first !== undefined) return new Rope().pushSlice(bytes, first.start, first.end);
  const texts = blocks
    .map((block) => stringOf(bytes, getMember(bytes, block, 'text')))
    .filter((text) => text !== undefined);
  return new Rope().push(JSON.stringify({ type: 'text', text: texts.join('\n') }));
}
