// The suite as a client: its scenarios of servers, on the fixture servers and through the gateway on each of them.

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { startLegacyServer } from './fixtures/legacy-server.mjs';
import { startModernServer } from './fixtures/modern-server.mjs';
import { gateway } from './fronts.mjs';
import { startOlder } from './older-revision.mjs';
import { readResults } from './suite.mjs';

const NEWEST_LEGACY = '2025-11-25';
const MODERN = '2026-07-28';

/**
 * The suite as a client, by its revision. `checks` is how many it makes of a server of the same era: fewer mean that it
 * has not looked. On the older revisions it sets out two checks less, since streams could not be taken up there.
 */
const SERVER_PLANS = [
  { revision: NEWEST_LEGACY, era: 'L', suite: NEWEST_LEGACY, checks: 84, quick: true },
  { revision: '2025-06-18', era: 'L', suite: NEWEST_LEGACY, checks: 81, rewritten: true, quick: false },
  { revision: '2025-03-26', era: 'L', suite: NEWEST_LEGACY, checks: 81, rewritten: true, quick: false },
  { revision: MODERN, era: 'M', suite: MODERN, checks: 152, quick: true },
];

/** Runs the suite at `url` and reads what it found; `folder` is for its output. */
async function runAt(suite, url, { suite: version, rewritten, revision }, folder) {
  const older = rewritten ? await startOlder(url, revision) : undefined;
  try {
    const at = older?.url ?? url;
    await suite.run(['server', '--url', at, '--suite', 'all', '--spec-version', version], folder);
  } finally {
    older?.close();
  }
  return readResults(folder, 'server');
}

/**
 * @param options.fronts what stands between, one after the other; the gateway by default
 * @param options.wanted says of the name of a run whether it is asked for; a direct run comes with those that need it
 * @returns `{ name, front, revision, cell, results, direct?, checks? }` for each run; with `missing` in place of results
 * where what stands between did not serve
 */
export async function* serverRuns({ suite, folder, wanted, quick, fronts = [gateway] }) {
  const servers = { L: await startLegacyServer(), M: await startModernServer() };
  try {
    for (const { checks, ...plan } of SERVER_PLANS) {
      if (quick && !plan.quick) continue;
      const { revision, era } = plan;
      const runOf = (front, cell) => ({ name: `${front.label} ${revision} ${cell}`, front, revision, cell });
      const direct = runOf({ label: 'server' }, 'direct');
      const runs = fronts
        .flatMap((front) => front.cells.map((cell) => runOf(front, cell)))
        .filter(({ name, cell }) => cell[0] === era && wanted(name));
      if (runs.length === 0 && !wanted(direct.name)) continue;
      const folderOf = ({ name }) => join(folder, name.replaceAll(/[^\w.-]+/g, '-'));
      const expected = await runAt(suite, servers[era].url, plan, folderOf(direct));
      yield { ...direct, results: expected, checks };
      for (const { front, ...run } of runs) {
        const own = folderOf(run);
        mkdirSync(own, { recursive: true });
        const behind = servers[run.cell[1]].url;
        const opened = await front.open(run.cell, behind, own).catch((error) => ({ error }));
        if (opened.error) {
          yield { ...run, front, missing: opened.error.message };
          continue;
        }
        try {
          yield { ...run, front, results: await runAt(suite, opened.url, plan, own), direct: expected };
        } finally {
          await opened.close();
        }
      }
    }
  } finally {
    await Promise.all(Object.values(servers).map((server) => server.close()));
  }
}
