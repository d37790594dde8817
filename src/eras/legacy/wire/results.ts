import { type PendingEdits, pendingMember, type ResultOutcome } from '../../../exchange/outcome.js';
import {
  editedObject,
  getMember,
  type JsonNode,
  mapObjects,
  nameMap,
  type Rope,
  sliceOf,
} from '../../../jsonrpc/index.js';
import { encodeCallResult, isMissing, wrappedValue } from './call-result.js';
import { downgradeContent } from './content.js';
import type { RevisionFeatures } from './revisions.js';
import { decodeTools, encodeTools, withoutInvalidOutputSchemas } from './tools.js';

/** Results of requests between the legacy revisions and the neutral form; those about tasks are in `tasks.ts`. */

/** Edits a legacy server's result into the neutral form. */
export function decodeResult(method: string, bytes: Buffer, result: JsonNode, edits: PendingEdits): void {
  if (method === 'tools/list') {
    const tools = getMember(bytes, result, 'tools');
    const decoded = tools?.kind === 'array' ? decodeTools(bytes, tools) : undefined;
    if (decoded !== undefined) edits.set('tools', decoded);
  } else if (method === 'tools/call' && isMissing(getMember(bytes, result, 'content'))) {
    edits.set('content', '[]');
    // A task that the gateway did not request, so nobody can follow it.
    if (getMember(bytes, result, 'task') !== undefined) edits.set('task', undefined);
  }
}

/** Edits a result in the neutral form for a client of a legacy revision. */
export function encodeResult(method: string, outcome: ResultOutcome, features: RevisionFeatures): void {
  if (method !== 'tools/list') {
    downgradeResult(method, outcome, features);
    return;
  }
  const tools = pendingMember(outcome, 'tools');
  const taskSupport = outcome.takesTasks === true && features.tasks;
  if (tools?.node.kind === 'array')
    outcome.edits.set('tools', encodeTools(tools.bytes, tools.node, { taskSupport }));
}

/** Replaces what a client's revision does not have; for results in the neutral form and of legacy servers. */
export function downgradeResult(method: string, outcome: ResultOutcome, features: RevisionFeatures): void {
  const { bytes, node, edits } = outcome;
  if (method === 'tools/call') encodeCallResult(outcome, features);
  else if (method === 'prompts/get') {
    const messages = getMember(bytes, node, 'messages');
    const changed = messages?.kind === 'array' ? promptMessages(bytes, messages, features) : undefined;
    if (changed !== undefined) edits.set('messages', changed);
  }
}

/** @returns undefined if all can stay as they are */
function promptMessages(bytes: Buffer, messages: JsonNode, features: RevisionFeatures): Rope | undefined {
  let changed = false;
  const edited = mapObjects(bytes, messages, (message) => {
    const content = getMember(bytes, message, 'content');
    const blocks = content === undefined ? undefined : downgradeContent(bytes, content, features);
    if (blocks === undefined) return sliceOf(bytes, message);
    changed = true;
    return editedObject(bytes, message, new Map([['content', blocks]]));
  });
  return changed ? edited : undefined;
}

/**
 * Members of legacy servers' results that no legacy revision allows and for which SDK clients reject the whole result, by
 * method. Everything else passes byte for byte.
 */
const QUIRKS: ReadonlyMap<string, (outcome: ResultOutcome) => void> = nameMap({
  // Servers of SDKs that do not check schemas list tools whose output is no object.
  'tools/list': ({ bytes, node, edits }) => {
    const tools = getMember(bytes, node, 'tools');
    const valid = tools?.kind === 'array' ? withoutInvalidOutputSchemas(bytes, tools) : undefined;
    if (valid !== undefined) edits.set('tools', valid);
  },
  // The same servers send the output of such a tool unwrapped, and null for a tool without one.
  'tools/call': ({ bytes, node, edits }) => {
    const structured = getMember(bytes, node, 'structuredContent');
    if (structured?.kind === 'null') edits.set('structuredContent', undefined);
    else if (structured !== undefined && structured.kind !== 'object')
      edits.set('structuredContent', wrappedValue(bytes, structured));
  },
});

/** Corrects a legacy server's result for a legacy client. */
export function normalizeResult(method: string, outcome: ResultOutcome): void {
  QUIRKS.get(method)?.(outcome);
}
