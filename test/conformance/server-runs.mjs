// The suite as a client: its scenarios of servers, on the fixture servers and through the gateway on each of them.

import { join } from 'node:path';
import { startLegacyServer } from './fixtures/legacy-server.mjs';
import { startModernServer } from './fixtures/modern-server.mjs';
import { startGateway } from './gateway.mjs';
import { startOlder } from './older-revision.mjs';
import { readResults } from './suite.mjs';

const NEWEST_LEGACY = '2025-11-25';
const MODERN = '2026-07-28';

/**
 * The suite as a client, by its revision. `checks` is how many it makes of a server of the same era: fewer mean that it
 * has not looked. On the older revisions it sets out two checks less, since streams could not be taken up there.
 */
const SERVER_PLANS = [
  { revision: NEWEST_LEGACY, era: 'legacy', suite: NEWEST_LEGACY, checks: 84, quick: true },
  { revision: '2025-06-18', era: 'legacy', suite: NEWEST_LEGACY, checks: 81, rewritten: true, quick: false },
  { revision: '2025-03-26', era: 'legacy', suite: NEWEST_LEGACY, checks: 81, rewritten: true, quick: false },
  { revision: MODERN, era: 'modern', suite: MODERN, checks: 152, quick: true },
];

const letter = (era) => era[0].toUpperCase();

/**
 * @param options.wanted says of the name of a run whether it is asked for; a direct run comes with those that need it
 * @returns `{ name, revision, cell, results, direct?, checks? }` for each run
 */
export async function* serverRuns({ suite, folder, wanted, quick }) {
  const servers = { legacy: await startLegacyServer(), modern: await startModernServer() };
  const gateway = await startGateway(
    { '/legacy': servers.legacy.url, '/modern': servers.modern.url },
    folder,
  );
  try {
    for (const { revision, era, suite: version, checks, rewritten, ...plan } of SERVER_PLANS) {
      if (quick && !plan.quick) continue;
      const targets = {
        direct: servers[era].url,
        [`${letter(era)}L`]: gateway.url('/legacy'),
        [`${letter(era)}M`]: gateway.url('/modern'),
      };
      const names = Object.fromEntries(
        Object.keys(targets).map((cell) => [cell, `server ${revision} ${cell}`]),
      );
      if (!Object.values(names).some(wanted)) continue;
      let direct;
      for (const [cell, url] of Object.entries(targets)) {
        const name = names[cell];
        if (cell !== 'direct' && !wanted(name)) continue;
        const out = join(folder, name.replaceAll(' ', '-'));
        const proxy = rewritten ? await startOlder(url, revision) : undefined;
        await suite.run(
          ['server', '--url', proxy?.url ?? url, '--suite', 'all', '--spec-version', version],
          out,
        );
        proxy?.close();
        const results = readResults(out, 'server');
        if (cell === 'direct') direct = results;
        yield cell === 'direct'
          ? { name, revision, cell, results, checks }
          : { name, revision, cell, results, direct };
      }
    }
  } finally {
    await gateway.close();
    await Promise.all(Object.values(servers).map((server) => server.close()));
  }
}
