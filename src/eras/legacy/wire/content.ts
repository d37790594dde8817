import { elementsOf, getMember, type JsonNode, nameMap, Rope, stringOf } from '../../../jsonrpc/index.js';
import type { RevisionFeatures } from './revisions.js';

type Placeholder = (bytes: Buffer, block: JsonNode) => string;

interface BlockRule {
  readonly carriedBy: (features: RevisionFeatures) => boolean;
  readonly asText: Placeholder;
}

/**
 * Content blocks that came with a later revision than the first, and the text that stands for them where the client's
 * revision has a closed list without them (server/tools, "Tool Result", of each revision).
 */
const BLOCKS: ReadonlyMap<string, BlockRule> = nameMap({
  audio: {
    carriedBy: (features) => features.audioContent,
    asText: (bytes, block) => `[audio ${stringOf(bytes, getMember(bytes, block, 'mimeType')) ?? ''}]`,
  },
  resource_link: {
    carriedBy: (features) => features.resourceLinks,
    asText: (bytes, block) => stringOf(bytes, getMember(bytes, block, 'uri')) ?? '[resource link]',
  },
});

/** The same for blocks in the messages of sampling (client/sampling, "Message Content"). */
const SAMPLED: ReadonlyMap<string, BlockRule> = nameMap({
  audio: BLOCKS.get('audio') as BlockRule,
  tool_use: {
    carriedBy: (features) => features.samplingTools,
    asText: (bytes, block) => `[tool_use ${stringOf(bytes, getMember(bytes, block, 'name')) ?? ''}]`,
  },
  tool_result: {
    carriedBy: (features) => features.samplingTools,
    asText: (bytes, block) => {
      const content = getMember(bytes, block, 'content');
      const texts = content?.kind === 'array' ? elementsOf(bytes, content) : [];
      const said = texts.map((part) => stringOf(bytes, getMember(bytes, part, 'text')) ?? '');
      return said.join('\n') || '[tool_result]';
    },
  },
});

const ALWAYS_CARRIED: ReadonlySet<string> = new Set(['text', 'image', 'resource']);

/**
 * Content with the blocks that the revision lacks turned into text.
 * @param content an array of blocks, or one block
 * @returns undefined when all of it can stay as it is
 */
export function downgradeContent(
  bytes: Buffer,
  content: JsonNode,
  features: RevisionFeatures,
): Rope | undefined {
  if (content.kind === 'object') {
    const text = placeholder(bytes, content, features);
    return text === undefined ? undefined : new Rope().push(text);
  }
  if (content.kind !== 'array' || features.resourceLinks) return undefined;
  const out = new Rope().push('[');
  let changed = false;
  for (const [index, block] of elementsOf(bytes, content).entries()) {
    const text = placeholder(bytes, block, features);
    out.push(index === 0 ? '' : ',');
    if (text === undefined) out.pushSlice(bytes, block.start, block.end);
    else {
      out.push(text);
      changed = true;
    }
  }
  return changed ? out.push(']') : undefined;
}

/**
 * A block of a sampling message as text, where the client's revision lacks its type.
 * @returns undefined when it can stay as it is
 */
export function downgradeSampled(
  bytes: Buffer,
  block: JsonNode,
  features: RevisionFeatures,
): Rope | undefined {
  const rule = SAMPLED.get(stringOf(bytes, getMember(bytes, block, 'type')) ?? '');
  if (rule === undefined || rule.carriedBy(features)) return undefined;
  return new Rope().push(JSON.stringify({ type: 'text', text: rule.asText(bytes, block) }));
}

function placeholder(bytes: Buffer, block: JsonNode, features: RevisionFeatures): string | undefined {
  // From 2025-06-18 on there is nothing to convert, and what is unknown was meant for clients that know it.
  if (features.resourceLinks) return undefined;
  const type = stringOf(bytes, getMember(bytes, block, 'type'));
  if (type === undefined || ALWAYS_CARRIED.has(type)) return undefined;
  const rule = BLOCKS.get(type);
  if (rule?.carriedBy(features)) return undefined;
  const text = rule === undefined ? `[${type}]` : rule.asText(bytes, block);
  return JSON.stringify({ type: 'text', text });
}
