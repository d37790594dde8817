import {
  editedObject,
  type JsonKind,
  type JsonNode,
  mapElements,
  membersOf,
  mentions,
  nameMap,
  type Rope,
  scanJson,
} from '../jsonrpc/index.js';

/** What a member of a result may be. Clients validate results as a whole, so one bad member costs them all of it. */
interface Member {
  readonly kinds: readonly JsonKind[];
  /** An object in which it is invalid is left out of its list; one that lacks it is the server's affair. */
  readonly required?: boolean;
  /** JSON text in place of null: servers in Go write an empty slice so. */
  readonly forNull?: string;
  readonly members?: ReadonlyMap<string, Member>;
  readonly items?: Member;
}

const TEXT: Member = { kinds: ['string'] };
const NUMBER: Member = { kinds: ['number'] };
const BOOLEAN: Member = { kinds: ['true', 'false'] };
const OBJECT: Member = { kinds: ['object'] };
const NAME: Member = { ...TEXT, required: true };
/** Any value but null. */
const ANY: Member = { kinds: ['object', 'array', 'string', 'number', 'true', 'false'] };

const listOf = (members: Readonly<Record<string, Member>>): Member => ({
  kinds: ['array'],
  items: { kinds: ['object'], members: nameMap(members) },
});
const objectOf = (members: Readonly<Record<string, Member>>): Member => ({
  kinds: ['object'],
  members: nameMap(members),
});

const ICONS = listOf({ src: NAME, mimeType: TEXT, theme: TEXT, sizes: ANY });
const ANNOTATIONS = objectOf({ audience: { kinds: ['array'] }, priority: NUMBER, lastModified: TEXT });
/** Members of everything that is listed (schema, "BaseMetadata", "Icons"). */
const LISTED = { name: NAME, title: TEXT, description: TEXT, icons: ICONS, _meta: OBJECT };
/** Members that a client needs not to fail on: what is left out of content is for its type to say. */
const CONTENT = listOf({ type: NAME, annotations: ANNOTATIONS, _meta: OBJECT, mimeType: TEXT });

const result = (key: string, list: Member): ReadonlyMap<string, Member> =>
  nameMap({ [key]: { ...list, forNull: '[]' }, nextCursor: TEXT });

/** Members of results by method, as the schemas of all revisions have them; others are not looked at. */
const RESULTS: ReadonlyMap<string, ReadonlyMap<string, Member>> = nameMap({
  'tools/list': result(
    'tools',
    listOf({
      ...LISTED,
      inputSchema: ANY,
      outputSchema: ANY,
      execution: OBJECT,
      annotations: objectOf({
        title: TEXT,
        readOnlyHint: BOOLEAN,
        destructiveHint: BOOLEAN,
        idempotentHint: BOOLEAN,
        openWorldHint: BOOLEAN,
      }),
    }),
  ),
  'prompts/list': result(
    'prompts',
    listOf({
      ...LISTED,
      arguments: listOf({ name: NAME, title: TEXT, description: TEXT, required: BOOLEAN }),
    }),
  ),
  'resources/list': result(
    'resources',
    listOf({ ...LISTED, uri: NAME, mimeType: TEXT, size: NUMBER, annotations: ANNOTATIONS }),
  ),
  'resources/templates/list': result(
    'resourceTemplates',
    listOf({ ...LISTED, uriTemplate: NAME, mimeType: TEXT, annotations: ANNOTATIONS }),
  ),
  'resources/read': result('contents', listOf({ uri: NAME, mimeType: TEXT, _meta: OBJECT })),
  'prompts/get': nameMap({
    description: TEXT,
    messages: { ...listOf({ role: NAME, content: ANY }), forNull: '[]' },
  }),
  'tools/call': nameMap({ isError: BOOLEAN, content: { ...CONTENT, forNull: '[]' } }),
  'completion/complete': nameMap({
    completion: objectOf({
      values: { kinds: ['array'], items: TEXT, forNull: '[]' },
      total: NUMBER,
      hasMore: BOOLEAN,
    }),
  }),
});

/** Methods whose results are looked at even if nothing in them is null: a list is short beside content. */
const ALWAYS: ReadonlySet<string> = new Set([
  'tools/list',
  'prompts/list',
  'resources/list',
  'resources/templates/list',
]);

/**
 * Leaves out of a backend's result the members that clients reject, and of a list the elements that cannot be used without.
 *
 * @param report called with words for the log, which name the path of what was left out
 * @returns undefined if the result stays as it is
 */
export function repairResult(
  method: string,
  bytes: Buffer,
  result: JsonNode,
  report: (path: string) => void,
): { readonly bytes: Buffer; readonly node: JsonNode } | undefined {
  const members = RESULTS.get(method);
  if (members === undefined || (!ALWAYS.has(method) && !mentions(bytes, result, 'null'))) return undefined;
  const reportPath = (path: string): void =>
    report(`sends results of ${method} that clients reject for their ${path}, which is left out`);
  const repaired = repairObject(bytes, result, members, { path: '', report: reportPath });
  if (repaired === undefined || repaired === INVALID) return undefined;
  const text = repaired.toBuffer();
  return { bytes: text, node: scanJson(text, 1) };
}

const INVALID = Symbol('invalid');
/** A new text, {@link INVALID} for what has to go, or undefined for what can stay. */
type Repair = Rope | string | typeof INVALID | undefined;

interface Context {
  readonly path: string;
  readonly report: (path: string) => void;
}

function repairValue(bytes: Buffer, node: JsonNode, member: Member, context: Context): Repair {
  if (!member.kinds.includes(node.kind)) return node.kind === 'null' ? (member.forNull ?? INVALID) : INVALID;
  if (member.members !== undefined) return repairObject(bytes, node, member.members, context);
  return member.items === undefined ? undefined : repairArray(bytes, node, member.items, context);
}

function repairArray(bytes: Buffer, node: JsonNode, items: Member, { path, report }: Context): Repair {
  let changed = false;
  const context = { path: `${path}[]`, report };
  const repaired = mapElements(bytes, node, (element) => {
    const repair = repairValue(bytes, element, items, context);
    if (repair === undefined) return element;
    changed = true;
    if (repair !== INVALID) return repair;
    report(context.path);
    return undefined;
  });
  return changed ? repaired : undefined;
}

function repairObject(
  bytes: Buffer,
  node: JsonNode,
  members: ReadonlyMap<string, Member>,
  { path, report }: Context,
): Rope | typeof INVALID | undefined {
  const edits = new Map<string, Rope | string | undefined>();
  for (const { key, value } of membersOf(bytes, node)) {
    const member = members.get(key);
    if (member === undefined) continue;
    const own = path === '' ? key : `${path}.${key}`;
    const repair = repairValue(bytes, value, member, { path: own, report });
    if (repair === undefined) continue;
    if (repair === INVALID && member.required === true) return INVALID;
    if (repair === INVALID || typeof repair === 'string') report(own);
    edits.set(key, repair === INVALID ? undefined : repair);
  }
  return edits.size === 0 ? undefined : editedObject(bytes, node, edits);
}
