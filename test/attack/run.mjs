// npm run attack [-- --quick] [--only TEXT] [--counts FILE]
//
// Attacks a gateway that runs in a process of its own, and says for each attack what it cost others: how much longer a
// small call of somebody else took beside it (`added`: the work of the gateway during such a call; `waited`: on the clock,
// which other programs of the machine lengthen too), how much memory stayed in use, and how long it lasted. An attack fails when
// one of them is above its budget, when an answer is not what it has to be, or when others get an error. Exit code 1 then.

import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { isBuilt, route as routeOf, startGateway } from '../bench/gateway.mjs';
import { ask, forkServer as forkBenchServer } from '../bench/processes.mjs';
import { bodies } from './attacks/bodies.mjs';
import { connections } from './attacks/connections.mjs';
import { principals } from './attacks/principals.mjs';
import { servers } from './attacks/servers.mjs';

const ADDED_MS = 50;
const GROWTH_BYTES = 64 * 1024 * 1024;
const LIMIT_MS = 30_000;
/** An attack that misses its budget is tried again: a machine that others use stands still now and then. */
const TRIES = 3;
const CALM_MS = { quick: 300, full: 2_000 };

const { values: flags } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string' },
    counts: { type: 'string' },
  },
});
if (!isBuilt()) throw new Error('run `npm run build` first');

const fork = (file, ...args) => forkBenchServer(`../attack/${file}`, ...args);
const backends = await fork('backends.mjs');
const paths = [
  'legacy',
  'modern',
  'legacy/lists',
  'modern/lists',
  'legacy/silent',
  'legacy/shaking',
  'modern/challenge',
  ...['hang', 'text', 'comments', 'event', 'json', 'bomb', 'headers', 'garbage', 'deep', 'large'].map(
    (kind) => `modern/hostile/${kind}`,
  ),
];
const gateway = await startGateway(backends.origin, {
  heap: true,
  // Small enough to be reached.
  limits: { exchanges: 200, result: '16MiB' },
  routes: paths.map((path) => {
    const [era] = path.split('/');
    const headers = path === 'modern/challenge' ? { 'X-Trap': new URL(backends.origin).host } : undefined;
    const route = routeOf(`/${path}`, `${backends.origin}/${path}`, era, {
      timeouts: { connect: '5s', total: '15s' },
    });
    return headers === undefined
      ? route
      : { ...route, backend: { ...route.backend, headers, authorization: 'forward' } };
  }),
});
const probe = await fork('probe.mjs', gateway.origin, String(gateway.pid), '/legacy', '/modern');
const context = {
  quick: flags.quick,
  origin: gateway.origin,
  route: (path) => `${gateway.origin}/${path}`,
  backend: () => ask(backends.child, 'count'),
};

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const percentile95 = (samples) =>
  samples.toSorted((a, b) => a - b)[Math.floor(samples.length * 0.95)] ?? Number.POSITIVE_INFINITY;

/** What others had meanwhile: the time of 95 of 100 small calls, and errors. */
async function beside(work) {
  await ask(probe.child, 'start');
  const begun = performance.now();
  const error = await work().then(
    () => undefined,
    (thrown) => thrown.message,
  );
  const tookMs = performance.now() - begun;
  // The calls that were under way at the end count too.
  await pause(200);
  const { latencies, work: worked, failures } = await ask(probe.child, 'stop');
  return { error, tookMs, latencyMs: percentile95(latencies), workMs: percentile95(worked), failures };
}

let heapBytes = await gateway.heapBytes();

async function attempt(attack) {
  const calm = await beside(() => pause(CALM_MS[flags.quick ? 'quick' : 'full']));
  const { error, tookMs, latencyMs, workMs, failures } = await beside(() => attack.run(context));
  const before = heapBytes;
  heapBytes = await gateway.heapBytes();
  const growth = heapBytes - before;
  const addedMs = Math.max(0, workMs - calm.workMs);
  const waitedMs = Math.max(0, latencyMs - calm.latencyMs);
  const problems = [
    error,
    failures.length > 0 ? `others got ${failures.length} errors: ${failures[0]}` : undefined,
    addedMs > ADDED_MS ? `others waited ${addedMs.toFixed(0)} ms longer` : undefined,
    growth > GROWTH_BYTES ? `${(growth / 2 ** 20).toFixed(0)} MiB stayed in use` : undefined,
    tookMs > LIMIT_MS ? `it lasted ${(tookMs / 1000).toFixed(0)} s` : undefined,
  ].filter((problem) => problem !== undefined);
  return { addedMs, waitedMs, growth, tookMs, problems };
}

let passed = 0;
let failed = 0;
console.log('added ms waited ms    MiB  seconds   attack');
for (const attack of [...bodies, ...servers, ...connections, ...principals]) {
  if (flags.only !== undefined && !attack.name.includes(flags.only)) continue;
  let outcome;
  for (let i = 0; i < TRIES; i++) {
    outcome = await attempt(attack);
    if (outcome.problems.length === 0 || gateway.child.exitCode !== null) break;
  }
  const { addedMs, waitedMs, growth, tookMs, problems } = outcome;
  const figures = [
    addedMs.toFixed(1).padStart(8),
    waitedMs.toFixed(1).padStart(9),
    (growth / 2 ** 20).toFixed(1).padStart(6),
    (tookMs / 1000).toFixed(1).padStart(8),
  ];
  console.log(
    `${figures.join(' ')}   ${attack.name}${problems.map((problem) => `\n    FAILED: ${problem}`).join('')}`,
  );
  if (problems.length === 0) passed++;
  else failed++;
  if (gateway.child.exitCode !== null) {
    console.log(`the gateway ended with exit code ${gateway.child.exitCode}`);
    failed++;
    break;
  }
}
console.log(`${passed} passed, ${failed} failed`);
if (flags.counts !== undefined) writeFileSync(flags.counts, JSON.stringify({ passed, failed }));
process.exit(failed === 0 && passed > 0 ? 0 : 1);
