import {
  elementsOf,
  getMember,
  type JsonNode,
  nameMap,
  Rope,
  sliceOf,
  stringMember,
} from '../../../jsonrpc/index.js';
import type { RevisionFeatures } from './revisions.js';

interface BlockRule {
  /** The feature of a revision that has the block. */
  readonly since: keyof RevisionFeatures;
  readonly asText: (bytes: Buffer, block: JsonNode) => string;
}

/** By the `type` of the block. */
type BlockRules = ReadonlyMap<string, BlockRule>;

const AUDIO: BlockRule = {
  since: 'audioContent',
  asText: (bytes, block) => `[audio ${stringMember(bytes, block, 'mimeType') ?? ''}]`,
};

/**
 * Content blocks that came with a later revision than the first, and the text that replaces them for a client whose
 * revision has a closed list without them (server/tools, "Tool Result", of each revision).
 */
const RESULT_BLOCKS: BlockRules = nameMap({
  audio: AUDIO,
  resource_link: {
    since: 'resourceLinks',
    asText: (bytes, block) => stringMember(bytes, block, 'uri') ?? '[resource link]',
  },
});

/** The same for the messages of a sampling request (client/sampling, "Message Content"). */
const SAMPLING_BLOCKS: BlockRules = nameMap({
  audio: AUDIO,
  tool_use: {
    since: 'samplingTools',
    asText: (bytes, block) => `[tool_use ${stringMember(bytes, block, 'name') ?? ''}]`,
  },
  tool_result: {
    since: 'samplingTools',
    asText: (bytes, block) => {
      const content = getMember(bytes, block, 'content');
      const parts = content?.kind === 'array' ? elementsOf(bytes, content) : [];
      return parts.map((part) => stringMember(bytes, part, 'text') ?? '').join('\n') || '[tool_result]';
    },
  },
});

/** Blocks of every revision. */
const COMMON_BLOCKS: ReadonlySet<string> = new Set(['text', 'image', 'resource']);

/**
 * Content of a tool result or a prompt message, with the blocks that the revision lacks replaced by text.
 * @param content an array of blocks, or one block
 * @returns undefined if it can stay as it is
 */
export function downgradeContent(
  bytes: Buffer,
  content: JsonNode,
  features: RevisionFeatures,
): Rope | undefined {
  // From 2025-06-18 on no block has to be replaced; unknown ones are for clients that know them.
  if (features.resourceLinks) return undefined;
  if (content.kind === 'object') return resultBlockAsText(bytes, content, features);
  if (content.kind !== 'array') return undefined;
  const out = new Rope().push('[');
  let changed = false;
  for (const [index, block] of elementsOf(bytes, content).entries()) {
    const text = resultBlockAsText(bytes, block, features);
    if (text !== undefined) changed = true;
    out.push(index === 0 ? '' : ',').push(text ?? sliceOf(bytes, block));
  }
  return changed ? out.push(']') : undefined;
}

function resultBlockAsText(bytes: Buffer, block: JsonNode, features: RevisionFeatures): Rope | undefined {
  const type = stringMember(bytes, block, 'type');
  if (type === undefined || COMMON_BLOCKS.has(type)) return undefined;
  const rule = RESULT_BLOCKS.get(type);
  if (rule === undefined) return textBlock(`[${type}]`);
  return features[rule.since] ? undefined : textBlock(rule.asText(bytes, block));
}

/**
 * A block of a sampling message as text, if the revision lacks its type.
 * @returns undefined if it can stay as it is
 */
export function downgradeSamplingBlock(
  bytes: Buffer,
  block: JsonNode,
  features: RevisionFeatures,
): Rope | undefined {
  const rule = SAMPLING_BLOCKS.get(stringMember(bytes, block, 'type') ?? '');
  return rule === undefined || features[rule.since] ? undefined : textBlock(rule.asText(bytes, block));
}

/** A content block of type `text`. */
export function textBlock(text: string): Rope {
  return new Rope().push(JSON.stringify({ type: 'text', text }));
}
