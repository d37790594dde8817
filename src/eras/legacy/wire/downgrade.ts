import type { ServerMessage } from '../../../exchange/channel.js';
import { type Edits, nameMap } from '../../../jsonrpc/index.js';
import type { RevisionFeatures } from './revisions.js';

/**
 * Notifications and params of a later revision that the other side would misunderstand. All other members pass: the schemas
 * of every revision allow unknown ones.
 */

type Feature = keyof RevisionFeatures;

/** Notifications about something that older revisions do not have. */
const NOTIFICATIONS: ReadonlyMap<string, Feature> = nameMap({
  'notifications/elicitation/complete': 'urlElicitation',
  'notifications/tasks/status': 'tasks',
});

/** Params that change the meaning of a request, by its method. */
const PARAMS: ReadonlyMap<string, Readonly<Record<string, Feature>>> = nameMap<
  Readonly<Record<string, Feature>>
>({
  'completion/complete': { context: 'completionContext' },
});

/** Whether the notification exists in the client's revision. */
export function knowsNotification({ method }: ServerMessage, features: RevisionFeatures): boolean {
  const feature = NOTIFICATIONS.get(method);
  return feature === undefined || features[feature];
}

/** Edits that remove the params that the server's revision does not have; undefined for none. */
export function downgradeParams(method: string, features: RevisionFeatures): Edits | undefined {
  const unknown = Object.entries(PARAMS.get(method) ?? {}).filter(([, feature]) => !features[feature]);
  return unknown.length === 0 ? undefined : new Map(unknown.map(([name]) => [name, undefined]));
}
