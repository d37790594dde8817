// npm run bench: what the gateway costs, against a bare pipe and against @fastify/http-proxy, in one run.
//
//   --quick   about a minute instead of five, with wider error bars
//   --json    the report as JSON
//   --check   exit code 1 when a target is missed or could not be measured
//
// Linux only (figures come from /proc). The gateway is the built one: `npm run build` first.

import { availableParallelism, cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { CELLS, isBuilt, startGateway } from './gateway.mjs';
import { measureIdle } from './idle.mjs';
import { forkServer } from './processes.mjs';
import { formatReport, HTTP_PROXY, makeReport, PIPE } from './report.mjs';
import { alternate, warmUp } from './rounds.mjs';

// It takes some 25,000 requests until the compiler has come to rest; until then a request costs up to three times as much.
const PLANS = {
  full: { warmUpMs: 8000, rounds: 60, idle: { sessions: 10_000, rounds: 30, warmUpMs: 1500 } },
  quick: { warmUpMs: 3000, rounds: 10, idle: { sessions: 2000, rounds: 6, warmUpMs: 500 } },
};

const { values: flags } = parseArgs({
  options: { quick: { type: 'boolean' }, json: { type: 'boolean' }, check: { type: 'boolean' } },
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

const { backend, subjects } = await start();
for (const subject of subjects) await warmUp(subject, plan.warmUpMs);
const results = await alternate(subjects, plan.rounds);
const idle = isBuilt() ? await measureIdle(backend.origin, plan.idle) : undefined;

const machine = {
  date: new Date().toISOString().slice(0, 10),
  cpu: cpus()[0].model,
  cores: `${availableParallelism()} cores`,
  node: `Node ${process.version}`,
};
const report = makeReport(machine, results, idle);
console.log(flags.json ? JSON.stringify(report, undefined, 2) : formatReport(report));
if (!isBuilt())
  console.error('\nEragate was not measured: dist/main.js is missing, run `npm run build` first.');
process.exit(flags.check && report.targets.some(({ met }) => !met) ? 1 : 0);
