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
import { type ListenFilter, listenFilterOf } from './listen-filter.js';

/** Methods and members that the transport reads, since all messages share one channel in either direction. */
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

/** Replaces raw line breaks by spaces. In JSON they occur only between tokens, where both mean the same. */
export function asLine(message: Rope): Rope {
  const bytes = message.toBuffer();
  if (!bytes.includes(LINE_FEED) && !bytes.includes(CARRIAGE_RETURN)) return message;
  const line = Buffer.from(bytes);
  for (let i = 0; i < line.length; i++) {
    if (line[i] === LINE_FEED || line[i] === CARRIAGE_RETURN) line[i] = SPACE;
  }
  return new Rope().push(line);
}

/** A key that is equal for an id as number and as string: some servers change the type. */
export function keyOf(id: string): string {
  return String(JSON.parse(id));
}

interface WithParams {
  readonly bytes: Buffer;
  readonly params: JsonNode | undefined;
}

/** JSON text of a string or number in the params; undefined for anything else. */
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

/** What is read of a request in order to route the messages that belong to it. */
export interface RequestTraits {
  readonly progressToken: string | undefined;
  /** Whether it sets a log level in its `_meta`, as requests of revision 2026-07-28 do. */
  readonly wantsLog: boolean;
  /** JSON text of its `_meta` without the progress token. */
  readonly envelope: () => Rope | undefined;
  /** The changes that a `subscriptions/listen` asked for; undefined for other requests. */
  readonly listensTo: ListenFilter | undefined;
}

const NO_TRAITS: RequestTraits = {
  progressToken: undefined,
  wantsLog: false,
  envelope: () => undefined,
  listensTo: undefined,
};

export function traitsOf(frame: RequestFrame): RequestTraits {
  const { bytes, params, method } = frame;
  const meta = metaOf(bytes, params);
  if (meta === undefined) return NO_TRAITS;
  return {
    progressToken: scalarText(bytes, getMember(bytes, meta, 'progressToken')),
    wantsLog: getMember(bytes, meta, LOG_LEVEL) !== undefined,
    envelope: () => written(bytes, meta, new Map([['progressToken', undefined]])),
    listensTo: method === LISTEN ? listenFilterOf(frame) : undefined,
  };
}

/** JSON text of the id of the subscription that a notification belongs to. */
export function subscriptionOf({ bytes, params }: WithParams): string | undefined {
  const meta = metaOf(bytes, params);
  return meta === undefined ? undefined : scalarText(bytes, getMember(bytes, meta, SUBSCRIPTION_ID));
}

/** Replaces the id of a request, and its progress token, if any, by the same. */
export function renumbered(frame: RequestFrame, id: string, { progressToken }: RequestTraits): Rope {
  const { bytes, root, params } = frame;
  const edits = new Map<string, Rope | string>([['id', id]]);
  if (progressToken !== undefined)
    edits.set('params', edited(bytes, params, '_meta', new Map([['progressToken', id]])));
  return written(bytes, root, edits);
}

/** Replaces one member of the params of a message. */
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

/** Replaces the subscription id of a notification by that of the caller. */
export function withSubscription(
  { bytes, root, params }: { bytes: Buffer; root: JsonNode; params: JsonNode | undefined },
  id: string,
): Buffer {
  const changed = edited(bytes, params, '_meta', new Map([[SUBSCRIPTION_ID, id]]));
  return written(bytes, root, new Map([['params', changed]])).toBuffer();
}

/** A notification that cancels a request. @param key {@link keyOf} its id, which is a number */
export function cancellation({ key, traits }: { key: string; traits: RequestTraits }): Rope {
  const params = new Rope().push(`{"requestId":${key}`);
  const envelope = traits.envelope();
  if (envelope !== undefined) params.push(',"_meta":').push(envelope);
  const message = new Rope().push(`{"jsonrpc":"2.0","method":"${CANCELLED}","params":`);
  return message.push(params.push('}')).push('}');
}

/** Replaces the id of a response by that of the caller. */
export function withId({ bytes, root }: { bytes: Buffer; root: JsonNode }, id: RequestId): Buffer {
  return written(bytes, root, new Map([['id', id]])).toBuffer();
}

/** Does that for the response to `subscriptions/listen`, which names its id a second time. */
export function withListenId(
  frame: { bytes: Buffer; root: JsonNode; result?: JsonNode },
  id: RequestId,
): Buffer {
  const { bytes, root, result } = frame;
  const edits = new Map<string, Rope | string>([['id', id]]);
  if (result !== undefined && metaOf(bytes, result) !== undefined) {
    edits.set('result', edited(bytes, result, '_meta', new Map([[SUBSCRIPTION_ID, id]])));
  }
  return written(bytes, root, edits).toBuffer();
}

/** Edits an object that is a member of another. */
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

/** The id of a response of which only both ends are known. Servers write it first, last, or beside `jsonrpc`. */
export function idAtEnds(head: Buffer, tail: Buffer): string | undefined {
  return ID_AT_START.exec(head.toString('latin1'))?.[1] ?? ID_AT_END.exec(tail.toString('latin1'))?.[1];
}
