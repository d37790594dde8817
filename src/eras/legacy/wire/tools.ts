import {
  editedObject,
  getMember,
  type JsonNode,
  mapObjects,
  mentions,
  type Rope,
  sliceOf,
} from '../../../jsonrpc/index.js';
import { describesObject, isSchema, withSchemaProperties, wrapOutputSchema } from './output-schema.js';

/** The tools of `tools/list`, between the revisions and the neutral form. */

/** Member of a tool that is about tasks, which only the legacy era has. */
const EXECUTION = 'execution';

/**
 * Tools of a legacy server in the neutral form.
 * @returns undefined if all can stay as they are
 */
export function decodeTools(bytes: Buffer, tools: JsonNode): Rope | undefined {
  if (!mentions(bytes, tools, `"${EXECUTION}"`)) return undefined;
  return mapObjects(bytes, tools, (tool) => editedObject(bytes, tool, new Map([[EXECUTION, undefined]])));
}

/**
 * Tools in the neutral form for a legacy client. Tools without an object schema for their input are left out: SDK clients
 * of the legacy era reject the whole list for one.
 * @param options.taskSupport the client can call each tool as a task
 */
export function encodeTools(
  bytes: Buffer,
  tools: JsonNode,
  options: { readonly taskSupport: boolean },
): Rope {
  return mapObjects(bytes, tools, (tool) => {
    const input = getMember(bytes, tool, 'inputSchema');
    if (input === undefined || !describesObject(bytes, input)) return undefined;
    const edits = new Map<string, Rope | string | undefined>();
    // Modern servers do not declare which of their tools run as tasks.
    if (options.taskSupport) edits.set(EXECUTION, '{"taskSupport":"optional"}');
    const legacyInput = withSchemaProperties(bytes, input);
    if (legacyInput !== undefined) edits.set('inputSchema', legacyInput);
    const output = getMember(bytes, tool, 'outputSchema');
    if (output !== undefined) {
      if (!isSchema(output)) edits.set('outputSchema', undefined);
      else if (!describesObject(bytes, output)) edits.set('outputSchema', wrapOutputSchema(bytes, output));
      else {
        const legacyOutput = withSchemaProperties(bytes, output);
        if (legacyOutput !== undefined) edits.set('outputSchema', legacyOutput);
      }
    }
    return editedObject(bytes, tool, edits);
  });
}

/**
 * Tools of a legacy server without output schemas that no legacy revision allows.
 * @returns undefined if all can stay as they are
 */
export function withoutInvalidOutputSchemas(bytes: Buffer, tools: JsonNode): Rope | undefined {
  if (!mentions(bytes, tools, '"outputSchema"')) return undefined;
  let changed = false;
  const edited = mapObjects(bytes, tools, (tool) => {
    const output = getMember(bytes, tool, 'outputSchema');
    if (output === undefined || describesObject(bytes, output)) return sliceOf(bytes, tool);
    changed = true;
    return editedObject(bytes, tool, new Map([['outputSchema', undefined]]));
  });
  return changed ? edited : undefined;
}
