import {
  editedObject,
  elementsOf,
  getMember,
  type JsonNode,
  Rope,
  scanJson,
  sliceOf,
  stringMember,
} from '../../../jsonrpc/index.js';
import { downgradeSamplingBlock, textBlock } from './content.js';
import type { RevisionFeatures } from './revisions.js';

/**
 * The messages of a sampling request for a client of an older revision. Before 2025-11-25 a message had one block: one
 * with several becomes several messages, and blocks that the revision lacks become text (client/sampling, "Messages").
 * @returns undefined if all can stay as it is
 */
export function downgradeSamplingMessages(
  bytes: Buffer,
  messages: JsonNode,
  features: RevisionFeatures,
): Rope | undefined {
  const texts: Rope[] = [];
  let changed = false;
  for (const message of elementsOf(bytes, messages)) {
    const content = getMember(bytes, message, 'content');
    const split = content?.kind === 'array' && !features.samplingTools;
    if (split) changed = true;
    for (const block of split ? elementsOf(bytes, content) : [content]) {
      const text = block?.kind === 'object' ? downgradeSamplingBlock(bytes, block, features) : undefined;
      if (text !== undefined) changed = true;
      const replaced = text ?? (split && block !== undefined ? sliceOf(bytes, block) : undefined);
      texts.push(
        replaced === undefined
          ? sliceOf(bytes, message)
          : editedObject(bytes, message, new Map([['content', replaced]])),
      );
    }
  }
  if (!changed) return undefined;
  const out = new Rope().push('[');
  for (const [index, text] of texts.entries()) out.push(index === 0 ? '' : ',').push(text);
  return out.push(']');
}

/**
 * A client's result of a sampling request for a server of an older revision: before 2025-11-25 it had one content block
 * and not a list (client/sampling, "Messages").
 */
export function downgradeSamplingResult(result: Buffer, features: RevisionFeatures): Buffer {
  if (features.samplingTools) return result;
  const root = scanJson(result, 2);
  const content = getMember(result, root, 'content');
  if (content?.kind !== 'array') return result;
  const edits = new Map([['content', oneBlock(result, elementsOf(result, content))]]);
  return editedObject(result, root, edits).toBuffer();
}

function oneBlock(bytes: Buffer, blocks: readonly JsonNode[]): Rope {
  const [first] = blocks;
  if (blocks.length === 1 && first !== undefined) return sliceOf(bytes, first);
  const texts = blocks
    .map((block) => stringMember(bytes, block, 'text'))
    .filter((text) => text !== undefined);
  return textBlock(texts.join('\n'));
}
