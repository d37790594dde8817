// The suite as a server: its scenarios of clients, with the fixture clients directly and through a gateway each.

import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readResults } from './suite.mjs';

const CLIENT = fileURLToPath(new URL('clients/client.mjs', import.meta.url));
/** Scenarios that run at once. Each is two or three processes, which mostly start. */
const AT_ONCE = 2;

// Fewer checks in a direct run than are given here mean that the suite has not looked.
const LEGACY = {
  revision: '2025-11-25',
  era: 'legacy',
  checks: 20,
  authChecks: 265,
  scenarios: [
    'initialize',
    'tools_call',
    'elicitation-sep1034-client-defaults',
    'sse-retry',
    'json-schema-2020-12-preservation',
  ],
  auth: [
    'auth/metadata-default',
    'auth/metadata-var1',
    'auth/metadata-var2',
    'auth/metadata-var3',
    'auth/basic-cimd',
    'auth/scope-from-www-authenticate',
    'auth/scope-from-scopes-supported',
    'auth/scope-omitted-when-undefined',
    'auth/scope-step-up',
    'auth/scope-retry-limit',
    'auth/token-endpoint-auth-basic',
    'auth/token-endpoint-auth-post',
    'auth/token-endpoint-auth-none',
    'auth/pre-registration',
  ],
};

const MODERN = {
  revision: '2026-07-28',
  era: 'modern',
  checks: 64,
  authChecks: 415,
  scenarios: [
    'tools_call',
    'request-metadata',
    'http-standard-headers',
    'http-custom-headers',
    'http-invalid-tool-headers',
    'sep-2322-client-request-state',
    'json-schema-ref-no-deref',
    'json-schema-2020-12-preservation',
  ],
  auth: [
    ...LEGACY.auth,
    'auth/resource-mismatch',
    'auth/offline-access-scope',
    'auth/offline-access-not-supported',
    'auth/authorization-server-migration',
    'auth/iss-supported',
    'auth/iss-not-advertised',
    'auth/iss-supported-missing',
    'auth/iss-wrong-issuer',
    'auth/iss-unexpected',
    'auth/iss-normalized',
    'auth/metadata-issuer-mismatch',
  ],
};

const letter = (era) => era[0].toUpperCase();

/**
 * The suite's server of a plan, and who calls it: a client of the same era directly, and clients of both eras through a
 * gateway. Authorization is between clients and servers of one era. Behind a gateway that has to serve legacy clients,
 * the suite's modern server would be asked for the legacy era too, which it counts against the client; so its leg is set.
 */
function planned({ revision, era, scenarios, auth, checks, authChecks }) {
  const other = era === 'legacy' ? 'modern' : 'legacy';
  const same = `${letter(era)}${letter(era)}`;
  const across = `${letter(other)}${letter(era)}`;
  const through = (client) => [client, 'gateway', ...(client === era ? [] : [`leg=${era}`])];
  return [
    {
      kind: 'client',
      revision,
      era,
      scenarios,
      checks,
      ways: { direct: [era, 'direct'], [same]: through(era), [across]: through(other) },
    },
    {
      kind: 'auth',
      revision,
      era,
      scenarios: auth,
      checks: authChecks,
      ways: { direct: [era, 'direct'], [same]: through(era) },
    },
  ];
}

/** A scenario that counts what its server is asked, and would count what finds out that server's era. */
const COUNTS_REQUESTS = new Set(['auth/scope-retry-limit']);

/** Runs what `tasks` are, some at once. */
async function together(tasks) {
  const waiting = [...tasks];
  const work = async () => {
    for (let task = waiting.shift(); task; task = waiting.shift()) await task();
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
}

const succeeded = (checks) => [...checks.values()].every(({ status }) => status === 'SUCCESS');

/** One scenario: its checks, and one more where the client, or the suite, came to a bad end although all succeeded. */
async function checksOf(suite, { scenario, revision, era, who, folder }) {
  const pinned = COUNTS_REQUESTS.has(scenario) ? [`era=${era}`] : [];
  const command = [process.execPath, CLIENT, ...who, ...pinned].join(' ');
  const code = await suite.run(
    ['client', '--command', command, '--scenario', scenario, '--spec-version', revision],
    folder,
  );
  const checks = readResults(folder, 'client').get(scenario) ?? new Map();
  if (code !== 0 && succeeded(checks)) {
    checks.set('client-ends-well', { status: 'FAILURE', message: `the suite ended with ${code}` });
  }
  return checks;
}

/** As `serverRuns`. */
export async function* clientRuns({ suite, folder, wanted, quick }) {
  for (const { kind, revision, era, scenarios, checks, ways } of [LEGACY, MODERN].flatMap(planned)) {
    if (quick && kind === 'auth') continue;
    const nameOf = (cell) => `${kind} ${revision} ${cell}`;
    if (!Object.keys(ways).some((cell) => wanted(nameOf(cell)))) continue;
    let direct;
    for (const [cell, who] of Object.entries(ways)) {
      const name = nameOf(cell);
      if (cell !== 'direct' && !wanted(name)) continue;
      const found = new Map();
      await together(
        scenarios.map((scenario) => async () => {
          const out = join(folder, name.replaceAll(' ', '-'), scenario.replaceAll('/', '-'));
          found.set(scenario, await checksOf(suite, { scenario, revision, era, who, folder: out }));
        }),
      );
      // In the order of the plan, whichever ended first.
      const results = new Map(scenarios.map((scenario) => [scenario, found.get(scenario)]));
      if (cell === 'direct') direct = results;
      yield cell === 'direct'
        ? { name, revision, cell, results, checks }
        : { name, revision, cell, results, direct };
    }
  }
}
