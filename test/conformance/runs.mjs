// Everything that is run.

import { clientRuns } from './client-runs.mjs';
import { serverRuns } from './server-runs.mjs';
import { taskRuns } from './task-runs.mjs';

/** All runs, one after the other. */
export async function* allRuns(options) {
  yield* serverRuns(options);
  yield* taskRuns(options);
  yield* clientRuns(options);
}
