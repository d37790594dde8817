// The suite as a client of tasks: its scenarios of the extension, on a legacy server through the gateway, which makes a
// server with the extension of it, and on that through another gateway.

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { startLegacyTasks } from './fixtures/legacy-tasks.mjs';
import { startGateway } from './gateway.mjs';
import { readResults } from './suite.mjs';

const REVISION = '2026-07-28';
const SCENARIOS = [
  'tasks-lifecycle',
  'tasks-capability-negotiation',
  'tasks-wire-fields',
  'tasks-request-state-removal',
  'tasks-mrtr-input',
  'tasks-mrtr-composition',
  'tasks-request-headers',
  'tasks-dispatch-and-envelope',
  'tasks-required-task-error',
];
/** How many checks succeed: fewer mean that the suite has not looked. */
const CHECKS = 40;
/** Scenarios at a time: most of them wait most of the time. */
const AT_ONCE = 3;

async function run(suite, url, folder) {
  const waiting = [...SCENARIOS];
  const work = async () => {
    for (let scenario = waiting.shift(); scenario; scenario = waiting.shift()) {
      const out = join(folder, scenario);
      const choice = ['--scenario', scenario, '--force', '--spec-version', REVISION];
      await suite.run(['server', '--url', url, ...choice], out);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  const results = new Map();
  for (const scenario of SCENARIOS)
    for (const [name, checks] of readResults(join(folder, scenario), 'server')) results.set(name, checks);
  return results;
}

/** @returns as `serverRuns` */
export async function* taskRuns({ suite, folder, wanted, quick }) {
  const names = Object.fromEntries(['ML', 'MM'].map((cell) => [cell, `tasks ${REVISION} ${cell}`]));
  if (!Object.values(names).some(wanted)) return;
  const gatewayTo = (name, route) => {
    const own = join(folder, name);
    mkdirSync(own, { recursive: true });
    return startGateway({ '/mcp': route }, own);
  };
  const server = await startLegacyTasks();
  const first = await gatewayTo('tasks-first', { backend: { url: server.url }, tasks: { optional: 'task' } });
  const second = await gatewayTo('tasks-second', first.url('/mcp'));
  try {
    const results = await run(suite, first.url('/mcp'), join(folder, 'tasks-ML'));
    yield { name: names.ML, revision: REVISION, cell: 'ML', results, checks: CHECKS };
    if (quick || !wanted(names.MM)) return;
    const through = await run(suite, second.url('/mcp'), join(folder, 'tasks-MM'));
    yield { name: names.MM, revision: REVISION, cell: 'MM', results: through, direct: results };
  } finally {
    await second.close();
    await first.close();
    await server.close();
  }
}
