// npm run interop: real clients and servers through the gateway, each pair one by one.
//
//   --core        those that .ci/run has time for
//   --only TEXT   those whose name, version or place has this text (may be given several times)
//   --table NAME  clients, servers or references
//   --list        what there is
//   --counts FILE writes how many passed and failed, as JSON
//   --write       keeps the results in results.json and makes RESULTS.md of them
//   --direct      without the gateway, to see what is the peers' own doing
//   --verbose     what a client printed, and the gateway's log, where something went wrong
//
// Peers are installed into .interop and used again. The last line is `N passed, N failed`, each pair counted as one.
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { judge, openServer, runClient, stepsOf } from './cell.mjs';
import { CALLERS, CLIENTS } from './clients.mjs';
import { startGateway } from './gateway.mjs';
import { ensure } from './install.mjs';
import { REFERENCES } from './references.mjs';
import { keep, writeResults } from './results.mjs';
import { PLACES, SERVERS, TRANSPORTS } from './servers.mjs';

const { values: flags } = parseArgs({
  options: {
    core: { type: 'boolean' },
    only: { type: 'string', multiple: true },
    table: { type: 'string' },
    list: { type: 'boolean' },
    direct: { type: 'boolean' },
    counts: { type: 'string' },
    write: { type: 'boolean' },
    verbose: { type: 'boolean' },
  },
});

/** Every pair of the tables: the clients at each place, and each server over each transport with the callers. */
function allPairs() {
  const pairs = [];
  for (const client of CLIENTS) {
    for (const place of PLACES) pairs.push({ table: 'clients', client, ...place });
  }
  for (const [table, servers] of Object.entries({ servers: SERVERS, references: REFERENCES })) {
    for (const server of servers) {
      for (const transport of Object.keys(TRANSPORTS).filter((one) => server[one] !== undefined)) {
        for (const client of CALLERS) {
          pairs.push({ table, client, server, transport, place: client.era });
        }
      }
    }
  }
  return pairs;
}

const nameOf = ({ table, client, server, transport, place }) =>
  table === 'clients'
    ? `client ${client.name} ${client.version} at ${place}`
    : `server ${server.name} ${server.version} over ${transport}, ${place} client`;

/** Clients at the two kinds of server, and servers over the transports that they name. */
function isCore({ table, client, server, transport, core }) {
  return table === 'clients'
    ? client.core === true && core === true
    : server.core?.includes(transport) === true;
}

function wanted(pair) {
  if (flags.core && !isCore(pair)) return false;
  if (flags.table !== undefined && flags.table !== pair.table) return false;
  return flags.only === undefined || flags.only.some((text) => nameOf(pair).includes(text));
}

/** Pairs with the same server and transport stand together, so that each is started once. */
function grouped(pairs) {
  const groups = new Map();
  for (const pair of pairs) {
    const key = `${pair.server.name} ${pair.server.version} ${pair.transport}`;
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(pair);
  }
  return [...groups.values()];
}

let passed = 0;
let failed = 0;

const isGood = ({ problems, stale }) => stale.length === 0 && problems.every(({ why }) => why !== undefined);

function tell(pair, verdict, ms, details) {
  const { steps, problems, stale, seen } = verdict;
  const good = isGood(verdict);
  if (good) passed += 1;
  else failed += 1;
  const cells = seen.length > 0 ? ` (${seen.join(', ')})` : '';
  console.log(
    `${good ? 'ok  ' : 'FAIL'} ${nameOf(pair)}${cells}: ${steps.join(' ')} [${(ms / 1000).toFixed(1)} s]`,
  );
  for (const { step, problem, why } of problems) {
    console.log(`       ${step}: ${problem.slice(0, 400)}${why === undefined ? '' : ` — known: ${why}`}`);
  }
  for (const why of stale) console.log(`       is said to fail, and does not: ${why}`);
  if (!good && flags.verbose) console.log(details());
  keep(pair, verdict);
}

const failure = (error) => ({
  steps: [],
  stale: [],
  seen: [],
  problems: [{ step: 'connect', problem: error.message }],
});

async function tryPair(pair, gateway, path) {
  let output = '';
  let verdict;
  try {
    const plan = stepsOf(pair.client, pair.server, gateway?.origin);
    const url = gateway === undefined ? pair.url : `${gateway.origin}${path}${pair.client.path ?? ''}`;
    const ran = await runClient(pair.client, url, plan);
    output = ran.output;
    verdict = judge(pair, plan, ran, gateway === undefined ? ['direct'] : await gateway.seen(path));
  } catch (error) {
    verdict = failure(error);
  }
  return { verdict, output };
}

/** What fails is tried once more: old clients lose what arrives together, and machines may stand still for seconds. */
async function runPair(pair, gateway, path) {
  const began = Date.now();
  let tried = await tryPair(pair, gateway, path);
  if (!isGood(tried.verdict)) {
    console.log(
      `     ${nameOf(pair)}: once more, for ${tried.verdict.problems.map(({ problem }) => problem).join('; ')}`,
    );
    tried = await tryPair(pair, gateway, path);
  }
  const { verdict, output } = tried;
  tell(pair, verdict, Date.now() - began, () => `${output}\n--- gateway\n${gateway?.logOf(path)}`);
}

async function runGroup(pairs) {
  const [{ server, transport }] = pairs;
  let opened;
  let gateway;
  try {
    opened = await openServer(server, transport);
    if (flags.direct) {
      for (const pair of pairs) await runPair({ ...pair, url: opened.backend.url });
      return;
    }
    // A route for each, so that none finds what another one has left.
    const routes = pairs.map(({ client }, index) => ({
      path: `/pair${index}`,
      backend: opened.backend,
      ...(client.path === '/sse' && { legacySse: true }),
      ...server.route,
    }));
    gateway = await startGateway(routes);
    for (const [index, pair] of pairs.entries()) await runPair(pair, gateway, routes[index].path);
  } catch (error) {
    for (const pair of pairs) tell(pair, failure(error), 0, () => '');
  } finally {
    await gateway?.stop();
    await opened?.stop();
  }
}

const INSTALLS_AT_ONCE = 3;

/** Installs all that these pairs need. What cannot be installed is told of where it is used. */
async function installAll(wantedPairs) {
  const waiting = new Set(wantedPairs.flatMap(({ client, server }) => [client.install, server.install]));
  const next = waiting.values();
  const work = async () => {
    for (const install of next) await ensure(install).catch(() => {});
  };
  await Promise.all(Array.from({ length: INSTALLS_AT_ONCE }, work));
}

const pairs = allPairs().filter(wanted);
if (flags.list) for (const pair of pairs) console.log(nameOf(pair));
else {
  const began = Date.now();
  await installAll(pairs);
  for (const group of grouped(pairs)) await runGroup(group);
  if (flags.write) writeResults();
  if (flags.counts) writeFileSync(flags.counts, JSON.stringify({ passed, failed }));
  console.log(`${pairs.length} pairs in ${Math.round((Date.now() - began) / 1000)} s`);
  console.log(`${passed} passed, ${failed} failed`);
}
process.exit(failed === 0 ? 0 : 1);
