import { getMember, type JsonNode, scanJson, stringOf } from '../../../jsonrpc/index.js';
import { InvalidAnnotation, type ParamHeader, paramHeadersOf } from './header-annotations.js';

/** What calls of a tool depend on in its definition. */
export interface ToolTraits {
  readonly paramHeaders: readonly ParamHeader[];
  /** Whether the output schema describes an object; undefined where there is none. */
  readonly objectOutput: boolean | undefined;
}

export type ToolMap = ReadonlyMap<string, ToolTraits>;

/** @returns undefined for a tool with invalid header annotations, which must not be offered */
export function toolTraits(bytes: Buffer, given: JsonNode): ToolTraits | undefined {
  // One pass over the tool instead of one for each member.
  const tool = given.members === undefined ? scanJson(bytes, 1, given.start, given.end) : given;
  const output = getMember(bytes, tool, 'outputSchema');
  const type = output === undefined ? undefined : stringOf(bytes, getMember(bytes, output, 'type'));
  try {
    return {
      paramHeaders: paramHeadersOf(bytes, getMember(bytes, tool, 'inputSchema')),
      objectOutput: output === undefined ? undefined : type === 'object',
    };
  } catch (error) {
    if (error instanceof InvalidAnnotation) return undefined;
    throw error;
  }
}
