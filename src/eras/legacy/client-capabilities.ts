import { LRUCache } from 'lru-cache';
import { readCapabilities } from '../../exchange/digest.js';
import { isRecord } from '../../exchange/record.js';
import type { ClientCapabilities, Revision } from '../../exchange/types.js';
import { type Edits, Rope, scanJson, writeObject } from '../../jsonrpc/index.js';
import { featuresFor, type RevisionFeatures } from './revisions.js';

const REMEMBERED = 1_000;
const remembered = new LRUCache<string, ClientCapabilities>({ max: REMEMBERED });

/** A legacy client's capabilities in the words of the neutral form: only what its revision can carry. */
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

function neutralEdits(declared: Readonly<Record<string, unknown>>, features: RevisionFeatures): Edits {
  const { elicitation, sampling, roots } = declared;
  const edits = new Map<string, string | undefined>([
    // The tasks of the legacy era are not those of the extension.
    ['tasks', undefined],
    [
      'elicitation',
      features.elicitation && isRecord(elicitation) ? modesOf(elicitation, features) : undefined,
    ],
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
