import { LIST_CHANGE_KEYS, type ListChange } from '../../../exchange/changes/change.js';
import type { PendingEdits } from '../../../exchange/outcome.js';
import { TASKS_EXTENSION } from '../../../exchange/tasks.js';
import { isRecord } from '../../../exchange/utils/is-record.js';
import {
  editedObject,
  editedText,
  getMember,
  type JsonNode,
  nameMap,
  type Rope,
  scanJson,
} from '../../../jsonrpc/index.js';
import type { RevisionFeatures } from './revisions.js';

/** The capabilities of a server, as JSON texts: what they say, and how they read in another revision or era. */

/** Capabilities that are about methods of a later revision than the first. */
const LATER_CAPABILITIES: ReadonlyMap<string, keyof RevisionFeatures> = nameMap({ tasks: 'tasks' });

/** The capabilities of a legacy server for a client whose revision may be older. */
export function downgradeServerCapabilities(text: string, features: RevisionFeatures): string {
  const unknown = [...LATER_CAPABILITIES].filter(([, feature]) => !features[feature]);
  return unknown.length === 0 ? text : editedText(text, new Map(unknown.map(([name]) => [name, undefined])));
}

/** Members that declare notifications of changes, by capability. */
const CHANGE_NOTIFICATIONS: ReadonlyMap<string, readonly string[]> = nameMap({
  tools: ['listChanged'],
  prompts: ['listChanged'],
  resources: ['listChanged', 'subscribe'],
});

/** The capabilities of a server that cannot send notifications of changes, since it has no standalone GET stream. */
export function withoutChangeNotifications(text: string): string {
  const bytes = Buffer.from(text);
  const node = scanJson(bytes, 2);
  const edits = new Map<string, Rope>();
  for (const [key, members] of CHANGE_NOTIFICATIONS) {
    const value = getMember(bytes, node, key);
    if (value === undefined) continue;
    edits.set(key, editedObject(bytes, value, new Map(members.map((name) => [name, undefined]))));
  }
  return editedObject(bytes, node, edits).toBuffer().toString();
}

/** The notifications of changes that a server declares. */
export interface DeclaredChanges {
  readonly lists: ReadonlySet<ListChange>;
  /** Whether clients can subscribe to resources. */
  readonly subscribe: boolean;
}

const CAPABILITY_OF: Readonly<Record<ListChange, string>> = {
  toolsListChanged: 'tools',
  promptsListChanged: 'prompts',
  resourcesListChanged: 'resources',
};

export function declaredChanges(text: string): DeclaredChanges {
  const declared = JSON.parse(text) as Record<
    string,
    { listChanged?: unknown; subscribe?: unknown } | undefined
  >;
  const lists = LIST_CHANGE_KEYS.filter((key) => declared[CAPABILITY_OF[key]]?.listChanged === true);
  return { lists: new Set(lists), subscribe: declared['resources']?.subscribe === true };
}

/** Whether a server runs tool calls as tasks (2025-11-25, basic/utilities/tasks, "Capabilities"). */
export function declaresToolTasks(text: string): boolean {
  if (!text.includes('"tasks"')) return false;
  const { tasks } = JSON.parse(text) as Record<string, unknown>;
  const requests = isRecord(tasks) ? tasks['requests'] : undefined;
  const tools = isRecord(requests) ? requests['tools'] : undefined;
  return isRecord(tools) && isRecord(tools['call']);
}

/** The capabilities of a legacy server in the neutral form: tasks of tool calls become the extension. */
export function neutralServerCapabilities(text: string): string {
  const bytes = Buffer.from(text);
  const root = scanJson(bytes, 2);
  const edits: PendingEdits = new Map([['tasks', undefined]]);
  if (declaresToolTasks(text))
    edits.set('extensions', withExtension(bytes, getMember(bytes, root, 'extensions'), '{}'));
  return editedObject(bytes, root, edits).toBuffer().toString();
}

/** The capabilities toward a client for the tasks that the gateway follows for it. Listing them is not possible. */
const TOOL_TASKS = '{"cancel":{},"requests":{"tools":{"call":{}}}}';

/** Neutral server capabilities as a legacy client reads them: the extension becomes tasks where its revision has them. */
export function legacyServerCapabilities(text: string, features: RevisionFeatures): string {
  const bytes = Buffer.from(text);
  const root = scanJson(bytes, 2);
  const extensions = getMember(bytes, root, 'extensions');
  const edits: PendingEdits = new Map([['tasks', undefined]]);
  if (extensions !== undefined && getMember(bytes, extensions, TASKS_EXTENSION) !== undefined) {
    edits.set('extensions', withExtension(bytes, extensions, undefined));
    if (features.tasks) edits.set('tasks', TOOL_TASKS);
  }
  return editedObject(bytes, root, edits).toBuffer().toString();
}

/** @param value JSON text of the settings of the tasks extension; undefined removes it */
function withExtension(bytes: Buffer, extensions: JsonNode | undefined, value: string | undefined): Rope {
  const node = extensions?.kind === 'object' ? extensions : undefined;
  return editedObject(bytes, node, new Map([[TASKS_EXTENSION, value]]));
}
