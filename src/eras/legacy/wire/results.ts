import { CACHEABLE } from '../../../exchange/cache-key.js';
import {
  leaveOutNullCursor,
  type PendingEdits,
  pendingMember,
  type ResultOutcome,
} from '../../../exchange/outcome.js';
import { isRecord } from '../../../exchange/record.js';
import { ASKING_CAPABILITIES } from '../../../exchange/server-requests.js';
import type { ClientCapabilities } from '../../../exchange/types.js';
import {
  elementsOf,
  getMember,
  type JsonNode,
  nameMap,
  Rope,
  scanJson,
  textOf,
  writeObject,
} from '../../../jsonrpc/index.js';
import { downgradeContent } from './content.js';
import { describesObject, isSchema, withSchemaProperties, wrapOutputSchema } from './output-schema.js';
import type { RevisionFeatures } from './revisions.js';

/** Promises of notifications, which are not passed on where the server has no stream to send them on. */
const PROMISES: ReadonlyMap<string, readonly string[]> = nameMap({
  tools: ['listChanged'],
  prompts: ['listChanged'],
  resources: ['listChanged', 'subscribe'],
});

/**
 * Server capabilities for clients that cannot be told of changes.
 * @param text JSON text of a server's capabilities
 */
export function withoutPromises(text: string): string {
  const bytes = Buffer.from(text);
  const node = scanJson(bytes, 2);
  const edits = new Map<string, Rope | undefined>();
  for (const [key, promises] of PROMISES) {
    const value = getMember(bytes, node, key);
    if (value === undefined) continue;
    const rewritten = new Rope();
    writeObject(rewritten, bytes, value, new Map(promises.map((name) => [name, undefined])));
    edits.set(key, rewritten);
  }
  const out = new Rope();
  writeObject(out, bytes, node, edits);
  return out.toBuffer().toString();
}

/** What a legacy server is told of a client that has no session with the gateway. */
export interface Declaration {
  /** JSON text of the capabilities. */
  readonly text: string;
  /** Something in it lets the server ask questions. */
  readonly asks: boolean;
}

/** Equal capabilities are one object as long as they are in use. */
const declarations = {
  plain: new WeakMap<ClientCapabilities, Declaration>(),
  withRoots: new WeakMap<ClientCapabilities, Declaration>(),
};

/**
 * The capabilities to declare in a handshake for a client. Nothing is declared that it did not declare itself, since
 * its server would ask and never be answered.
 * @param roots whether servers may know that the client has roots
 */
export function declarationFor(capabilities: ClientCapabilities, roots: boolean): Declaration {
  const known = roots ? declarations.withRoots : declarations.plain;
  let declaration = known.get(capabilities);
  if (declaration === undefined) {
    const bytes = Buffer.from(capabilities.text);
    const hasRoots = roots && isRecord(capabilities.value['roots']);
    const edits = new Map<string, string | undefined>([['tasks', undefined]]);
    // Changes of the roots could not be told: a client without a session has nothing to tell them on.
    edits.set('roots', hasRoots ? '{}' : undefined);
    for (const name of ASKING_CAPABILITIES)
      if (!isRecord(capabilities.value[name])) edits.set(name, undefined);
    const out = new Rope();
    writeObject(out, bytes, scanJson(bytes, 1), edits);
    const asks = ASKING_CAPABILITIES.some(
      (name) => isRecord(capabilities.value[name]) && (name !== 'roots' || hasRoots),
    );
    declaration = { text: out.toBuffer().toString(), asks };
    known.set(capabilities, declaration);
  }
  return declaration;
}

/** Takes off a legacy server's result what only the legacy era has. */
export function neutralResult(method: string, bytes: Buffer, result: JsonNode, edits: PendingEdits): void {
  if (method === 'tools/list') {
    const tools = getMember(bytes, result, 'tools');
    if (tools?.kind === 'array' && mentions(bytes, tools, TASK_MEMBER))
      edits.set('tools', withoutTaskSupport(bytes, tools));
  } else if (method === 'tools/call') {
    if (isMissing(getMember(bytes, result, 'content'))) {
      edits.set('content', '[]');
      // What is no task that anybody could follow.
      if (getMember(bytes, result, 'task') !== undefined) edits.set('task', undefined);
    }
  }
}

function isMissing(node: JsonNode | undefined): boolean {
  return node === undefined || node.kind === 'null';
}

/** Of core tasks, which are the legacy era's alone. */
const TASK_MEMBER = 'execution';

/** Whether a member of that name may be within a value: it is written so somewhere in it. */
function mentions(bytes: Buffer, node: JsonNode, name: string): boolean {
  const at = bytes.indexOf(`"${name}"`, node.start);
  return at !== -1 && at < node.end;
}

function withoutTaskSupport(bytes: Buffer, tools: JsonNode): Rope {
  return mapElements(bytes, tools, (tool) => {
    const out = new Rope();
    writeObject(out, bytes, tool, new Map([[TASK_MEMBER, undefined]]));
    return out;
  });
}

function mapElements(bytes: Buffer, array: JsonNode, change: (element: JsonNode) => Rope | undefined): Rope {
  const out = new Rope().push('[');
  let first = true;
  for (const element of elementsOf(bytes, array)) {
    const text =
      element.kind === 'object' ? change(element) : new Rope().pushSlice(bytes, element.start, element.end);
    if (text === undefined) continue;
    out.push(first ? '' : ',').push(text);
    first = false;
  }
  return out.push(']');
}

/** Puts a neutral result into the form that clients of a legacy revision take. */
export function encodeResult(method: string, outcome: ResultOutcome, features: RevisionFeatures): void {
  const { edits } = outcome;
  if (CACHEABLE.has(method)) leaveOutNullCursor(outcome);
  if (method === 'tools/list') {
    const tools = pendingMember(outcome, 'tools');
    const tasks = outcome.takesTasks === true && features.tasks;
    if (tools?.node.kind === 'array') edits.set('tools', legacyTools(tools.bytes, tools.node, tasks));
  } else downgradeResult(method, outcome, features);
}

/**
 * Takes off a legacy server's result what no revision of its era has, and for which clients refuse the whole of it: one
 * tool whose output is described as no object costs them all others. Everything else goes to them byte for byte.
 */
export function normalizeResult(method: string, outcome: ResultOutcome): void {
  const { bytes, node, edits } = outcome;
  if (CACHEABLE.has(method)) leaveOutNullCursor(outcome);
  if (method === 'tools/list') {
    const tools = getMember(bytes, node, 'tools');
    if (tools?.kind === 'array' && mentions(bytes, tools, 'outputSchema')) {
      const normalized = withoutForeignOutput(bytes, tools);
      if (normalized !== undefined) edits.set('tools', normalized);
    }
  } else if (method === 'tools/call') {
    const structured = getMember(bytes, node, 'structuredContent');
    if (structured?.kind === 'null') edits.set('structuredContent', undefined);
    else if (structured !== undefined && structured.kind !== 'object')
      edits.set('structuredContent', wrappedValue(bytes, structured));
  }
}

/** @returns undefined when all can stay as it is */
function withoutForeignOutput(bytes: Buffer, tools: JsonNode): Rope | undefined {
  let changed = false;
  const normalized = mapElements(bytes, tools, (tool) => {
    const output = getMember(bytes, tool, 'outputSchema');
    const out = new Rope();
    if (output === undefined || describesObject(bytes, output))
      return out.pushSlice(bytes, tool.start, tool.end);
    changed = true;
    writeObject(out, bytes, tool, new Map([['outputSchema', undefined]]));
    return out;
  });
  return changed ? normalized : undefined;
}

/** Puts what a client's revision lacks into words that it has; results of both eras need it. */
export function downgradeResult(method: string, outcome: ResultOutcome, features: RevisionFeatures): void {
  const { bytes, node, edits } = outcome;
  if (method === 'tools/call') encodeCallResult(outcome, features);
  else if (method === 'prompts/get') {
    const messages = getMember(bytes, node, 'messages');
    const changed = messages === undefined ? undefined : downgradeMessages(bytes, messages, features);
    if (changed !== undefined) edits.set('messages', changed);
  }
}

/** Every tool must have object schemas: SDK clients of the legacy era refuse the whole list for one that has not. */
function legacyTools(bytes: Buffer, tools: JsonNode, tasks: boolean): Rope {
  return mapElements(bytes, tools, (tool) => {
    const input = getMember(bytes, tool, 'inputSchema');
    if (input === undefined || !describesObject(bytes, input)) return undefined;
    const edits = new Map<string, Rope | string | undefined>();
    // Servers of the other era do not say which of their tools run as tasks.
    if (tasks) edits.set(TASK_MEMBER, '{"taskSupport":"optional"}');
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
    const out = new Rope();
    writeObject(out, bytes, tool, edits);
    return out;
  });
}

/**
 * `structuredContent` is an object in legacy revisions: anything else goes into one, as the listed schema says of a
 * tool whose own schema is of another root, and is told as text as well. What the oldest revisions lack altogether is
 * told as text. The result of a tool that failed is no instance of its schema.
 */
function encodeCallResult(outcome: ResultOutcome, features: RevisionFeatures): void {
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
      blocks = withText(bytes, content, blocks, textOf(bytes, structured));
  }
  if (isMissing(content) && blocks === undefined) edits.set('content', '[]');
  else if (blocks !== undefined) edits.set('content', blocks);
}

function wrappedValue(bytes: Buffer, { start, end }: JsonNode): Rope {
  return new Rope().push('{"result":').pushSlice(bytes, start, end).push('}');
}

function hasText(bytes: Buffer, content: JsonNode | undefined): boolean {
  if (content?.kind !== 'array') return false;
  return elementsOf(bytes, content).some((block) => {
    const type = getMember(bytes, block, 'type');
    return type !== undefined && textOf(bytes, type) === '"text"';
  });
}

function withText(
  bytes: Buffer,
  content: JsonNode | undefined,
  changed: Rope | undefined,
  text: string,
): Rope {
  const block = JSON.stringify({ type: 'text', text });
  const given =
    changed ??
    (content === undefined ? new Rope().push('[]') : new Rope().pushSlice(bytes, content.start, content.end));
  const array = given.toBuffer();
  const root = scanJson(array, 1);
  const empty = elementsOf(array, root).length === 0;
  return new Rope()
    .pushSlice(array, root.start, root.end - 1)
    .push(empty ? block : `,${block}`)
    .push(']');
}

function downgradeMessages(bytes: Buffer, messages: JsonNode, features: RevisionFeatures): Rope | undefined {
  if (messages.kind !== 'array') return undefined;
  let changed = false;
  const out = mapElements(bytes, messages, (message) => {
    const content = getMember(bytes, message, 'content');
    const rewritten = content === undefined ? undefined : downgradeContent(bytes, content, features);
    const text = new Rope();
    if (rewritten === undefined) return text.pushSlice(bytes, message.start, message.end);
    changed = true;
    writeObject(text, bytes, message, new Map([['content', rewritten]]));
    return text;
  });
  return changed ? out : undefined;
}
