import {
  type Edits,
  getMember,
  type JsonNode,
  type RequestFrame,
  type RequestId,
  Rope,
  textOf,
  writeObject,
} from '../../jsonrpc/index.js';

/** What the transport has to know of MCP's messages, since all of them share one channel in either direction. */
export const INITIALIZE = 'initialize';
export const PROGRESS = 'notifications/progress';
export const CANCELLED = 'notifications/cancelled';
export const LOG = 'notifications/message';
export const LISTEN = 'subscriptions/listen';
const SUBSCRIPTION_ID = 'io.modelcontextprotocol/subscriptionId';
const LOG_LEVEL = 'io.modelcontextprotocol/logLevel';

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const SPACE = 0x20;

/** A message as one line: raw line breaks in JSON stand between its tokens alone, where a space means the same. */
export function asLine(message: Rope): Rope {
  const bytes = message.toBuffer();
  if (!bytes.includes(LINE_FEED) && !bytes.includes(CARRIAGE_RETURN)) return message;
  const line = Buffer.from(bytes);
  for (let i = 0; i < line.length; i++) {
    if (line[i] === LINE_FEED || line[i] === CARRIAGE_RETURN) line[i] = SPACE;
  }
  return new Rope().push(line);
}

/** The same key for an id, a token and what a server makes of them: some write a number as a string. */
export function keyOf(id: string): string {
  return String(JSON.parse(id));
}

interface WithParams {
  readonly bytes: Buffer;
  readonly params: JsonNode | undefined;
}

/** JSON text of a member of the params that is a string or a number. */
export function paramOf({ bytes, params }: WithParams, key: string): string | undefined {
  return scalarText(bytes, params === undefined ? undefined : getMember(bytes, params, key));
}

function metaOf(bytes: Buffer, node: JsonNode | undefined): JsonNode | undefined {
  const meta = node === undefined ? undefined : getMember(bytes, node, '_meta');
  return meta?.kind === 'object' ? meta : undefined;
}

function scalarText(bytes: Buffer, node: JsonNode | undefined): string | undefined {
  return node?.kind === 'string' || node?.kind === 'number' ? textOf(bytes, node) : undefined;
}

/** What of a request is needed to find the way of what comes on its account. */
export interface RequestTraits {
  readonly progressToken: string | undefined;
  /** Whether it asks for log messages itself, as requests without a session do. */
  readonly wantsLog: boolean;
  /** JSON text of its `_meta` without the progress token. */
  readonly envelope: () => Rope | undefined;
}

const NO_FACTS: RequestTraits = { progressToken: undefined, wantsLog: false, envelope: () => undefined };

export function factsOf({ bytes, params }: RequestFrame): RequestTraits {
  const meta = metaOf(bytes, params);
  if (meta === undefined) return NO_FACTS;
  return {
    progressToken: scalarText(bytes, getMember(bytes, meta, 'progressToken')),
    wantsLog: getMember(bytes, meta, LOG_LEVEL) !== undefined,
    envelope: () => written(bytes, meta, new Map([['progressToken', undefined]])),
  };
}

/** JSON text of the subscription that a notification is of. */
export function subscriptionOf({ bytes, params }: WithParams): string | undefined {
  const meta = metaOf(bytes, params);
  return meta === undefined ? undefined : scalarText(bytes, getMember(bytes, meta, SUBSCRIPTION_ID));
}

/** A request under another id, which is its progress token too. */
export function renumbered(frame: RequestFrame, id: string, hasToken: boolean): Rope {
  const { bytes, root, params } = frame;
  const edits = new Map<string, Rope | string>([['id', id]]);
  if (hasToken) edits.set('params', edited(bytes, params, '_meta', new Map([['progressToken', id]])));
  return written(bytes, root, edits);
}

/** A message in which one member of its params is another. */
export function withParam(
  { bytes, root, params }: { bytes: Buffer; root: JsonNode; params: JsonNode | undefined },
  key: string,
  text: string,
): Buffer {
  return written(
    bytes,
    root,
    new Map([['params', written(bytes, params, new Map([[key, text]]))]]),
  ).toBuffer();
}

/** A notification of a subscription under the id that its listener gave it. */
export function withSubscription(
  { bytes, root, params }: { bytes: Buffer; root: JsonNode; params: JsonNode | undefined },
  id: string,
): Buffer {
  const changed = edited(bytes, params, '_meta', new Map([[SUBSCRIPTION_ID, id]]));
  return written(bytes, root, new Map([['params', changed]])).toBuffer();
}

/** A response under the id that its caller gave the request. */
export function withId(
  frame: { bytes: Buffer; root: JsonNode; result?: JsonNode },
  id: RequestId,
  isListen: boolean,
): Buffer {
  const { bytes, root, result } = frame;
  const edits = new Map<string, Rope | string>([['id', id]]);
  if (isListen && result !== undefined && metaOf(bytes, result) !== undefined) {
    edits.set('result', edited(bytes, result, '_meta', new Map([[SUBSCRIPTION_ID, id]])));
  }
  return written(bytes, root, edits).toBuffer();
}

/** An object in which an object that is its member is edited. */
function edited(bytes: Buffer, node: JsonNode | undefined, key: string, edits: Edits): Rope {
  const inner = node === undefined ? undefined : getMember(bytes, node, key);
  return written(bytes, node, new Map([[key, written(bytes, inner, edits)]]));
}

function written(bytes: Buffer, node: JsonNode | undefined, edits: Edits): Rope {
  const out = new Rope();
  writeObject(out, bytes, node, edits);
  return out;
}

const ID = '("(?:[^"\\\\]|\\\\.)*"|-?\\d+)';
const ID_AT_START = new RegExp(`^\\s*\\{\\s*(?:"jsonrpc"\\s*:\\s*"2\\.0"\\s*,\\s*)?"id"\\s*:\\s*${ID}\\s*,`);
const ID_AT_END = new RegExp(`"id"\\s*:\\s*${ID}\\s*(?:,\\s*"jsonrpc"\\s*:\\s*"2\\.0"\\s*)?\\}\\s*$`);

/** The id of a response of which only the ends are there, where servers write it: first, last, or beside `jsonrpc`. */
export function idAtEnds(head: Buffer, tail: Buffer): string | undefined {
  return ID_AT_START.exec(head.toString('latin1'))?.[1] ?? ID_AT_END.exec(tail.toString('latin1'))?.[1];
}
