import { LRUCache } from 'lru-cache';
import { readCapabilities } from '../../../exchange/digest.js';
import { isRecord } from '../../../exchange/record.js';
import type { ClientCapabilities, Revision, ServerRequest } from '../../../exchange/types.js';
import {
  type Edits,
  getMember,
  type JsonNode,
  nameMap,
  Rope,
  scanJson,
  stringOf,
  writeObject,
} from '../../../jsonrpc/index.js';
import { featuresFor, type RevisionFeatures } from './revisions.js';

const REMEMBERED = 1_000;
const remembered = new LRUCache<string, ClientCapabilities>({ max: REMEMBERED });

/**
 * A legacy client's capabilities in the words of the neutral form: only what its revision can carry. Elicitation is
 * carried by any, to whoever declares it.
 */
export function neutralClientCapabilities(
  declared: ClientCapabilities,
  revision: Revision,
): ClientCapabilities {
  const key = `${revision} ${declared.text}`;
  let neutral = remembered.get(key);
  if (neutral === undefined) {
    const bytes = Buffer.from(declared.text);
    const out = new Rope();
    writeObject(out, bytes, scanJson(bytes, 1), neutralEdits(declared.value, featuresFor(revision)));
    neutral = readCapabilities(out.toBuffer().toString());
    remembered.set(key, neutral);
  }
  return neutral;
}

/**
 * A client's capabilities as a server of an older revision knows them: elicitation and sampling had no parts yet, and
 * what a client can do of a later part alone was nothing.
 * @param text JSON text of the capabilities
 */
export function capabilitiesIn(revision: Revision, text: string): string {
  const features = featuresFor(revision);
  if (features.urlElicitation && features.samplingTools) return text;
  const neutral = neutralClientCapabilities(readCapabilities(text), revision);
  if (neutral.value['elicitation'] === undefined) return neutral.text;
  const bytes = Buffer.from(neutral.text);
  const out = new Rope();
  const elicitation = features.elicitation ? '{}' : undefined;
  writeObject(out, bytes, scanJson(bytes, 1), new Map([['elicitation', elicitation]]));
  return out.toBuffer().toString();
}

function neutralEdits(declared: Readonly<Record<string, unknown>>, features: RevisionFeatures): Edits {
  const { elicitation, sampling, roots } = declared;
  const edits = new Map<string, string | undefined>([
    // The tasks of the legacy era are not those of the extension.
    ['tasks', undefined],
    ['elicitation', isRecord(elicitation) ? modesOf(elicitation, features) : undefined],
    ['roots', isRecord(roots) ? '{}' : undefined],
  ]);
  if (!isRecord(sampling)) edits.set('sampling', undefined);
  else if (!features.samplingTools) edits.set('sampling', '{}');
  return edits;
}

/** Before 2025-11-25 there were forms alone, and no word for them (client/elicitation, "Capabilities"). */
function modesOf(
  elicitation: Readonly<Record<string, unknown>>,
  features: RevisionFeatures,
): string | undefined {
  const url = features.urlElicitation && isRecord(elicitation['url']);
  const form = isRecord(elicitation['form']) || !isRecord(elicitation['url']);
  if (!url && !form) return undefined;
  return JSON.stringify({
    ...(form ? { form: elicitation['form'] ?? {} } : {}),
    ...(url ? { url: elicitation['url'] } : {}),
  });
}

type Reader = (key: string) => JsonNode | undefined;

/** The capability that a question needs, with the one within it that it may need beside. */
const NEEDED: ReadonlyMap<string, (bytes: Buffer, member: Reader) => readonly string[]> = nameMap<
  (bytes: Buffer, member: Reader) => readonly string[]
>({
  'elicitation/create': (bytes, member) => [
    'elicitation',
    stringOf(bytes, member('mode')) === 'url' ? 'url' : 'form',
  ],
  'sampling/createMessage': (_bytes, member) =>
    member('tools') === undefined && member('toolChoice') === undefined
      ? ['sampling']
      : ['sampling', 'tools'],
  'roots/list': () => ['roots'],
});

/**
 * The capability that a client would have to declare to be asked something; undefined when it did.
 * @param neutral what it declared, in the neutral form
 */
export function undeclared(question: ServerRequest, neutral: ClientCapabilities): string | undefined {
  const { method, bytes, params } = question;
  const member: Reader = (key) => (params === undefined ? undefined : getMember(bytes, params, key));
  const path = NEEDED.get(method)?.(bytes, member) ?? [];
  let declared: unknown = neutral.value;
  for (const key of path) {
    declared = isRecord(declared) ? declared[key] : undefined;
    if (!isRecord(declared)) return path.join('.');
  }
  return undefined;
}
