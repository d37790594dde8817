// What was counted of the peers: peers.json, and PEERS.md for people.

import { readFileSync, writeFileSync } from 'node:fs';
import { formatPeers } from './peers-report.mjs';

const COUNTS = new URL('peers.json', import.meta.url);
const TABLE = new URL('PEERS.md', import.meta.url);

/**
 * What was counted last: `{ suite, direct, peers }`, `direct` by revision, `peers` by name with the version, limit and date
 * of each, and by cell either `missing` (why there are no figures) or counts and the scenarios that are not as without it.
 */
export const readPeers = () => JSON.parse(readFileSync(COUNTS, 'utf8'));

/** Writes the same. */
export function writePeers(counted) {
  writeFileSync(COUNTS, `${JSON.stringify(counted, undefined, 2)}\n`);
  writeFileSync(TABLE, formatPeers(counted));
}
