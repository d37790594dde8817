import type { ClientCapabilities } from '../../../exchange/client-capabilities.js';
import { readCapabilities } from '../../../exchange/client-capabilities.js';
import type { Revision } from '../../../exchange/revision.js';
import { ASKING_CAPABILITIES } from '../../../exchange/server-requests.js';
import { isRecord } from '../../../exchange/utils/is-record.js';
import { type Edits, editedText } from '../../../jsonrpc/index.js';
import { featuresFor, type RevisionFeatures } from './revisions.js';

/**
 * The capabilities of a legacy client in the neutral form: what its revision can carry. Elicitation is kept for every
 * revision, since some clients declare it in an older one.
 */
export function neutralClientCapabilities(
  declared: ClientCapabilities,
  revision: Revision,
): ClientCapabilities {
  return readCapabilities(editedText(declared.text, neutralEdits(declared.value, featuresFor(revision))));
}

function neutralEdits(declared: Readonly<Record<string, unknown>>, features: RevisionFeatures): Edits {
  const { elicitation, sampling, roots } = declared;
  const edits = new Map<string, string | undefined>([
    // Tasks of the legacy era are not those of the extension.
    ['tasks', undefined],
    ['elicitation', isRecord(elicitation) ? elicitationModes(elicitation, features) : undefined],
    ['roots', isRecord(roots) ? '{}' : undefined],
  ]);
  if (!isRecord(sampling)) edits.set('sampling', undefined);
  else if (!features.samplingTools) edits.set('sampling', '{}');
  return edits;
}

/** Before 2025-11-25 an elicitation was a form, and the capability had no modes (client/elicitation, "Capabilities"). */
function elicitationModes(
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

/**
 * The capabilities of a client as a server of an older revision reads them: elicitation and sampling without the members
 * that came later, and absent if the client has nothing but those.
 * @param text JSON text of the capabilities
 */
export function downgradeClientCapabilities(text: string, revision: Revision): string {
  const features = featuresFor(revision);
  if (features.urlElicitation && features.samplingTools) return text;
  const neutral = neutralClientCapabilities(readCapabilities(text), revision);
  if (neutral.value['elicitation'] === undefined) return neutral.text;
  return editedText(neutral.text, new Map([['elicitation', features.elicitation ? '{}' : undefined]]));
}

/** The capabilities that the gateway declares to a legacy server on behalf of a client without a session. */
export interface DeclaredCapabilities {
  /** JSON text. */
  readonly text: string;
  /** They let the server send requests to the client. */
  readonly allowServerRequests: boolean;
}

/**
 * Declares nothing that the client did not declare: the server would send requests that nobody answers.
 * @param options.roots whether the client's roots are declared
 */
export function declaredCapabilities(
  capabilities: ClientCapabilities,
  options: { readonly roots: boolean },
): DeclaredCapabilities {
  const { text, value } = capabilities;
  const hasRoots = options.roots && isRecord(value['roots']);
  // Without `listChanged`: a client without a session has no way to notify changes of its roots.
  const edits = new Map([
    ['tasks', undefined],
    ['roots', hasRoots ? '{}' : undefined],
  ]);
  for (const name of ASKING_CAPABILITIES) if (!isRecord(value[name])) edits.set(name, undefined);
  return {
    text: editedText(text, edits),
    allowServerRequests: ASKING_CAPABILITIES.some(
      (name) => isRecord(value[name]) && (name !== 'roots' || hasRoots),
    ),
  };
}
