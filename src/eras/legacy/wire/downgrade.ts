import type { PendingEdits } from '../../../exchange/outcome.js';
import type { ServerMessage, ServerRequest } from '../../../exchange/types.js';
import {
  type Edits,
  elementsOf,
  getMember,
  type JsonNode,
  nameMap,
  parseFrame,
  type RequestFrame,
  Rope,
  scanJson,
  stringOf,
  writeObject,
} from '../../../jsonrpc/index.js';
import { downgradeSampled } from './content.js';
import type { RevisionFeatures } from './revisions.js';

/**
 * What one side of a session says in words that came with a later revision than the other side's. Members that objects
 * have beside those of their revision are no trouble to anybody, since the schemas are open; listed here is what would
 * be misunderstood, or cannot be read.
 */

type Feature = keyof RevisionFeatures;

/** Server capabilities that speak of methods of a later revision. */
const CAPABILITIES: ReadonlyMap<string, Feature> = nameMap({ tasks: 'tasks' });

/** Notifications of a later revision: their client would have to know what they belong to. */
const NOTIFICATIONS: ReadonlyMap<string, Feature> = nameMap({
  'notifications/elicitation/complete': 'urlElicitation',
  'notifications/tasks/status': 'tasks',
});

/** Params of a later revision, which change what an older server is asked. */
const PARAMS: ReadonlyMap<string, Readonly<Record<string, Feature>>> = nameMap<
  Readonly<Record<string, Feature>>
>({
  'completion/complete': { context: 'completionContext' },
});

/** @param text JSON text of the capabilities of a server that may be newer than the client */
export function downgradeCapabilities(text: string, features: RevisionFeatures): string {
  const later = [...CAPABILITIES].filter(([, feature]) => !features[feature]);
  if (later.length === 0) return text;
  const bytes = Buffer.from(text);
  const out = new Rope();
  writeObject(out, bytes, scanJson(bytes, 1), new Map(later.map(([name]) => [name, undefined])));
  return out.toBuffer().toString();
}

/** Whether a client of the revision can be told. */
export function knowsNotification({ method }: ServerMessage, features: RevisionFeatures): boolean {
  const feature = NOTIFICATIONS.get(method);
  return feature === undefined || features[feature];
}

/** What is taken off the params of a request to a server of the revision; undefined for nothing. */
export function lowerParams(method: string, features: RevisionFeatures): Edits | undefined {
  const later = PARAMS.get(method);
  if (later === undefined) return undefined;
  const names = Object.keys(later).filter((name) => !features[later[name] as Feature]);
  return names.length === 0 ? undefined : new Map(names.map((name) => [name, undefined]));
}

/** A question as a client of the revision can be asked it. */
export function downgradeServerRequest(question: ServerRequest, features: RevisionFeatures): ServerRequest {
  const { bytes, params, method } = question;
  const edits = params === undefined ? undefined : QUESTIONS.get(method)?.(bytes, params, features);
  return params === undefined || edits === undefined || edits.size === 0
    ? question
    : withParams(question, params, edits);
}

type Lower = (bytes: Buffer, params: JsonNode, features: RevisionFeatures) => PendingEdits;

const QUESTIONS: ReadonlyMap<string, Lower> = nameMap({
  'sampling/createMessage': (bytes, params, features) => {
    const messages = getMember(bytes, params, 'messages');
    const lowered = messages?.kind === 'array' ? downgradeMessages(bytes, messages, features) : undefined;
    return lowered === undefined ? new Map() : new Map([['messages', lowered]]);
  },
  // There was no word for forms. Their fields stay as they are: a choice in words of a later revision can still be typed in.
  'elicitation/create': (bytes, params, features) =>
    !features.urlElicitation && stringOf(bytes, getMember(bytes, params, 'mode')) === 'form'
      ? new Map([['mode', undefined]])
      : new Map(),
});

/** The same question with other params. */
export function withParams(question: ServerRequest, params: JsonNode, edits: PendingEdits): ServerRequest {
  if (edits.size === 0) return question;
  const { id, method, bytes } = question;
  const out = new Rope().push(`{"jsonrpc":"2.0","id":${id},"method":${JSON.stringify(method)},"params":`);
  writeObject(out, bytes, params, edits);
  const frame = parseFrame(out.push('}').toBuffer()) as RequestFrame;
  return { id, method, bytes: frame.bytes, params: frame.params };
}

/**
 * Before 2025-11-25 a message had one block: one with several becomes several messages. Blocks that the revision lacks
 * become text.
 * @returns undefined when all can stay as it is
 */
export function downgradeMessages(
  bytes: Buffer,
  messages: JsonNode,
  features: RevisionFeatures,
): Rope | undefined {
  const out = new Rope().push('[');
  let changed = false;
  let first = true;
  const push = (message: JsonNode, block: Rope | undefined): void => {
    out.push(first ? '' : ',');
    first = false;
    if (block === undefined) out.pushSlice(bytes, message.start, message.end);
    else writeObject(out, bytes, message, new Map([['content', block]]));
  };
  for (const message of elementsOf(bytes, messages)) {
    const content = getMember(bytes, message, 'content');
    const list = content?.kind === 'array' && !features.samplingTools;
    if (list) changed = true;
    for (const block of list ? elementsOf(bytes, content) : [content]) {
      const lowered = block?.kind === 'object' ? downgradeSampled(bytes, block, features) : undefined;
      if (lowered !== undefined) changed = true;
      const kept =
        list && block !== undefined ? new Rope().pushSlice(bytes, block.start, block.end) : undefined;
      push(message, lowered ?? kept);
    }
  }
  return changed ? out.push(']') : undefined;
}
