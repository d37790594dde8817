// What the gateway costs, against a bare pipe and against @fastify/http-proxy, in one run.
//
//   --quick   about two minutes instead of eight, with wider error bars
//   --peers   beside other proxies and gateways in place of all else; installs them at the first time (npm, pip; nginx is
//             taken from the PATH, agentgateway too or from AGENTGATEWAY_BIN)
//   --only P  of these, those whose name has P in it
//   --json    the report as JSON
//   --check   exit code 1 when a target is missed or could not be measured
//
// Linux only (figures come from /proc). The gateway is the built one: `npm run build` first.

import { availableParallelism, cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { readPeers } from '../conformance/peers-file.mjs';
import { measureCachedLists } from './cached-lists.mjs';
import { CELLS, isBuilt, startGateway } from './gateway.mjs';
import { measureIdle } from './idle.mjs';
import { measureListeners } from './listeners.mjs';
import { measurePeers } from './peers.mjs';
import { end, forkServer } from './processes.mjs';
import { HTTP_PROXY, makePeersReport, makeReport, PIPE } from './report.mjs';
import { alternate, warmUp } from './rounds.mjs';
import { formatPeersReport, formatReport } from './tables.mjs';

// It takes some 25,000 requests until the compiler has come to rest; until then a request costs up to three times as much.
const PLANS = {
  full: {
    warmUpMs: 8000,
    rounds: 60,
    idle: { sessions: 10_000, rounds: 30, warmUpMs: 1500 },
    lists: { rounds: 40, warmUpMs: 6000 },
    listeners: { streams: 5000, changes: 20, stalled: { rounds: 4 } },
    peers: { rounds: 12, warmUpMs: 6000 },
  },
  quick: {
    warmUpMs: 3000,
    rounds: 10,
    idle: { sessions: 2000, rounds: 6, warmUpMs: 500 },
    lists: { rounds: 8, warmUpMs: 2000 },
    listeners: { streams: 500, changes: 10, stalled: { rounds: 1 } },
    peers: { rounds: 3, warmUpMs: 1500 },
  },
};

const { values: flags } = parseArgs({
  options: {
    quick: { type: 'boolean' },
    peers: { type: 'boolean' },
    only: { type: 'string', default: '' },
    json: { type: 'boolean' },
    check: { type: 'boolean' },
  },
});
const plan = flags.quick ? PLANS.quick : PLANS.full;

async function start() {
  const backend = await forkServer('backend.mjs');
  // Neither looks at what it carries; they get the modern client's bytes.
  const plain = { era: 'modern', path: '/mcp' };
  const subjects = [
    { name: PIPE, ...plain, ...(await forkServer('proxies/pipe.mjs', backend.origin)) },
    { name: HTTP_PROXY, ...plain, ...(await forkServer('proxies/http-proxy.mjs', backend.origin)) },
  ];
  if (!isBuilt()) return { backend, subjects };
  // A process for each cell, as for each of the others, so that memory and compiled code are that cell's own.
  for (const [name, cell] of Object.entries(CELLS)) {
    subjects.push({ name, ...cell, ...(await startGateway(backend.origin)) });
  }
  return { backend, subjects };
}

const machine = {
  date: new Date().toISOString().slice(0, 10),
  cpu: cpus()[0].model,
  cores: `${availableParallelism()} cores`,
  node: `Node ${process.version}`,
};
const print = (report, format) =>
  console.log(flags.json ? JSON.stringify(report, undefined, 2) : format(report));

if (flags.peers) {
  const { origin } = await forkServer('backend.mjs');
  print(
    makePeersReport(
      machine,
      await measurePeers(origin, { ...plan.peers, only: flags.only }),
      readPeers().peers,
    ),
    formatPeersReport,
  );
  process.exit();
}

const { backend, subjects } = await start();
for (const subject of subjects) await warmUp(subject, plan.warmUpMs);
const results = await alternate(subjects, plan.rounds);
// What was measured makes room for what comes next.
await Promise.all(subjects.map(({ child }) => end(child)));
const more = isBuilt()
  ? {
      idle: await measureIdle(backend.origin, plan.idle),
      lists: await measureCachedLists(plan.lists),
      listeners: await measureListeners(plan.listeners),
    }
  : {};

const report = makeReport(machine, results, more);
print(report, formatReport);
if (!isBuilt())
  console.error('\nEragate was not measured: dist/main.js is missing, run `npm run build` first.');
process.exit(flags.check && report.targets.some(({ met }) => !met) ? 1 : 0);
