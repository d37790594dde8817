// npm run conformance -- --peers: the same server scenarios through what one would put in the gateway's place, as far as each
// of them can be had. Nothing is judged here: what they do is counted and written down.

import { FRONTS, named } from '../fronts/index.mjs';
import { changesOf, count } from './compare.mjs';
import { frontForSuite } from './fronts.mjs';
import { readPeers, writePeers } from './peers-file.mjs';
import { serverRuns } from './server-runs.mjs';

const KINDS = { FAILURE: 'failed', 'NOT REACHED': 'missed' };

/** How many checks of each scenario did not come out as without the peer: `{ scenario: { failed, missed, warned } }`. */
function byScenario(changes) {
  const scenarios = {};
  for (const { scenario, status } of changes) {
    scenarios[scenario] ??= { failed: 0, missed: 0, warned: 0 };
    scenarios[scenario][KINDS[status] ?? 'warned'] += 1;
  }
  return scenarios;
}

/** Those that can be had, with their versions; says which cannot. */
async function prepare(fronts, say) {
  const prepared = [];
  for (const front of fronts) {
    try {
      prepared.push({ ...front, version: (await front.prepare()) ?? '' });
    } catch (error) {
      say(`${front.name} is left out: ${error.message.split('\n')[0]}`);
    }
  }
  return prepared;
}

/** The entries of peers in the order of FRONTS. */
const inOrder = (peers) =>
  Object.fromEntries(FRONTS.filter(({ name }) => peers[name]).map(({ name }) => [name, peers[name]]));

/**
 * Runs the scenarios through all that have `only` in their names, and renews their entries in peers.json and PEERS.md.
 * @returns what was counted of them, as `readPeers`
 */
export async function comparePeers({ suite, version, folder, only, say }) {
  const fronts = await prepare(FRONTS.filter(named(only)), say);
  const date = new Date().toISOString().slice(0, 10);
  const direct = {};
  const peers = Object.fromEntries(
    fronts.map(({ name, version, limit = '' }) => [name, { version, limit, date, cells: {} }]),
  );
  const runs = serverRuns({
    suite,
    folder,
    wanted: () => true,
    quick: true,
    fronts: fronts.map(frontForSuite),
  });
  for await (const run of runs) {
    if (run.cell === 'direct') direct[run.revision] = count(run.results);
    else {
      peers[run.front.label].cells[run.cell] = run.missing
        ? { missing: run.missing.split('\n')[0] }
        : { ...count(run.results), scenarios: byScenario(changesOf(run.direct, run.results)) };
    }
    const { passed, failed } = run.results ? count(run.results) : {};
    say(`${run.name}: ${run.missing ?? `${passed}/${failed}`}`);
  }
  writePeers({
    suite: version,
    direct,
    peers: inOrder({ ...readPeers().peers, ...peers }),
  });
  return { suite: version, direct, peers };
}
