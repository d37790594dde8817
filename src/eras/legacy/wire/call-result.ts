import type { ResultOutcome } from '../../../exchange/outcome.js';
import {
  elementsOf,
  getMember,
  type JsonNode,
  Rope,
  scanJson,
  sliceOf,
  textOf,
} from '../../../jsonrpc/index.js';
import { downgradeContent, textBlock } from './content.js';
import type { RevisionFeatures } from './revisions.js';

/**
 * The result of `tools/call` for a legacy client. In legacy revisions `structuredContent` is an object: other values are
 * wrapped in one, as the listed schema says, and repeated as text. Revisions without it get the text alone. The result of a
 * failed tool is no instance of its schema and is not wrapped for it.
 */
export function encodeCallResult(outcome: ResultOutcome, features: RevisionFeatures): void {
  const { bytes, node, edits } = outcome;
  const content = getMember(bytes, node, 'content');
  const structured = getMember(bytes, node, 'structuredContent');
  let blocks = content?.kind === 'array' ? downgradeContent(bytes, content, features) : undefined;
  if (structured !== undefined) {
    const isObject = structured.kind === 'object';
    const failed = getMember(bytes, node, 'isError')?.kind === 'true';
    if (!isObject || (outcome.objectOutput === false && !failed))
      edits.set('structuredContent', wrappedValue(bytes, structured));
    if (!(isObject && features.structuredContent) && !hasText(bytes, content))
      blocks = withText(blocks ?? arrayOf(bytes, content), textOf(bytes, structured));
  }
  if (isMissing(content) && blocks === undefined) edits.set('content', '[]');
  else if (blocks !== undefined) edits.set('content', blocks);
}

/** The value as the member `result` of an object, which is how {@link wrapOutputSchema} describes it. */
export function wrappedValue(bytes: Buffer, { start, end }: JsonNode): Rope {
  return new Rope().push('{"result":').pushSlice(bytes, start, end).push('}');
}

export function isMissing(node: JsonNode | undefined): boolean {
  return node === undefined || node.kind === 'null';
}

function hasText(bytes: Buffer, content: JsonNode | undefined): boolean {
  if (content?.kind !== 'array') return false;
  return elementsOf(bytes, content).some((block) => {
    const type = getMember(bytes, block, 'type');
    return type !== undefined && textOf(bytes, type) === '"text"';
  });
}

function arrayOf(bytes: Buffer, content: JsonNode | undefined): Rope {
  return content?.kind === 'array' ? sliceOf(bytes, content) : new Rope().push('[]');
}

/** The array of blocks with one more that holds the text. */
function withText(blocks: Rope, text: string): Rope {
  const array = blocks.toBuffer();
  const root = scanJson(array, 1);
  const empty = elementsOf(array, root).length === 0;
  return new Rope()
    .pushSlice(array, root.start, root.end - 1)
    .push(empty ? '' : ',')
    .push(textBlock(text))
    .push(']');
}
