import type { BackendLabel } from '../../../exchange/backend-label.js';
import type { Change } from '../../../exchange/changes/change.js';
import type { ModernRequests, RequestsOptions } from './requests.js';
import type { ServerDescriptions } from './server-description.js';
import type { SessionTasks } from './session-tasks.js';

/** A backend of this era, as its calls use it. */
export interface ModernBackend extends RequestsOptions, BackendLabel {
  /** Limit of the rounds of server requests in one call. */
  readonly maxRounds: number;
  readonly requests: ModernRequests;
  readonly descriptions: ServerDescriptions;
  readonly tasks: SessionTasks;
  /** Observes every change that the backend notifies. */
  readonly onChange: (change: Change) => void;
}
