// npm run conformance: the official suite against the gateway, in every combination of eras, beside the same suite
// without it.
//
//   --quick         the newest revision of each era, without authorization
//   --only TEXT     the runs whose name has TEXT in it, `server 2026-07-28` or `LM` for example
//   --peers         through what one would put in the gateway's place instead, whose name has the TEXT of --only in it; what
//                   they do is counted, not judged, and goes into PEERS.md and peers.json
//   --json          the report as JSON
//   --counts FILE   `{ passed, failed }` of the runs through the gateway
//   --results FILE  where the table goes (by default RESULTS.md beside this file, after a complete run only)
//   --node PATH     the Node (22 or newer) to run the suite on; by default this one, or one from npm
//   --keep          keep the suite's own output also when all is well
//
// The gateway is the built one: `npm run build` first. Exit code 1 when a check succeeds directly and not through the
// gateway, unless expected-failures.yaml says why; when such an expectation did not come true; and when a direct run is
// not what it should be, since then nothing is proved.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { changesOf, count, faultsOf, judge, readExpectations } from './compare.mjs';
import { comparePeers } from './peers.mjs';
import { formatRun, formatSummary, formatTable, sumOf } from './report.mjs';
import { allRuns } from './runs.mjs';
import { prepareSuite, SUITE_VERSION } from './suite.mjs';

const here = (name) => fileURLToPath(new URL(name, import.meta.url));

const { values: flags } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string', default: '' },
    peers: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    counts: { type: 'string' },
    results: { type: 'string' },
    node: { type: 'string' },
    keep: { type: 'boolean', default: false },
  },
});

const say = (text) => (flags.json ? process.stderr : process.stdout).write(`${text}\n`);

/** What became of one run: counts, deviations sorted, and whether it is as it should be. */
function verdictOn({ name, revision, cell, results, missing, direct, checks = 0 }, expectations) {
  if (missing) throw new Error(`${name}: ${missing}`);
  const counts = count(results);
  const judged = judge(direct ? changesOf(direct, results) : faultsOf(results), expectations[name]);
  const vacuous = counts.passed < checks;
  const ok = judged.unexpected.length === 0 && judged.stale.length === 0 && !vacuous && counts.passed > 0;
  return { name, revision, cell, ...counts, ...judged, vacuous, ok };
}

const expectations = readExpectations(here('expected-failures.yaml'));
const folder = mkdtempSync(join(tmpdir(), 'eragate-conformance-'));
const suite = await prepareSuite(flags.node);
const versions = { suite: SUITE_VERSION, node: process.version, suiteNode: suite.nodeVersion };
say(
  `Conformance suite ${SUITE_VERSION} on Node ${suite.nodeVersion}; the gateway on Node ${process.version}`,
);

if (flags.peers) {
  const counted = await comparePeers({ suite, version: SUITE_VERSION, folder, only: flags.only, say });
  if (flags.json) console.log(JSON.stringify(counted, null, 2));
  if (flags.keep) say(`The suite's own output is in ${folder}`);
  else rmSync(folder, { recursive: true });
  process.exit();
}

const verdicts = [];
const wanted = (name) => name.includes(flags.only);
for await (const run of allRuns({ suite, folder, wanted, quick: flags.quick })) {
  const verdict = verdictOn(run, expectations);
  verdicts.push(verdict);
  say(formatRun(verdict));
}

const ok = verdicts.length > 0 && verdicts.every((verdict) => verdict.ok);
const complete = !flags.quick && flags.only === '';
const table = flags.results ?? (complete ? here('RESULTS.md') : undefined);
if (table) writeFileSync(table, formatTable(verdicts, versions));
if (flags.json) console.log(JSON.stringify({ versions, ok, runs: verdicts }, null, 2));
if (flags.counts) writeFileSync(flags.counts, JSON.stringify(sumOf(verdicts)));
say(formatSummary(verdicts, ok));
if (ok && !flags.keep) rmSync(folder, { recursive: true });
else say(`The suite's own output is in ${folder}`);
process.exitCode = ok ? 0 : 1;
