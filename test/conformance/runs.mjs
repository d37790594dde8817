// Everything that is run.

import { clientRuns } from './client-runs.mjs';
import { serverRuns } from './server-runs.mjs';

/** All runs, one after the other; the quick ones are those of the newest revision of each era with the suite as a client. */
export async function* allRuns(options) {
  yield* serverRuns(options);
  if (!options.quick) yield* clientRuns(options);
}
