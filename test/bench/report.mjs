// From rounds to figures, from figures to targets, and both to a table.

import { cpuRatio, median, undisturbedCpu } from './rounds.mjs';

export const PIPE = 'node:http + undici pipe';
export const HTTP_PROXY = '@fastify/http-proxy';

const MIB = 1024 * 1024;

// "Does not change" within the noise of two processes that do the same.
const UNCHANGED = 1.15;

/** What the project promises: a name, the highest value allowed, and where the value stands in a report. */
const TARGETS = [
  ['ML, CPU against the pipe', 1.5, ({ proxies }) => proxies.ML?.vsPipe],
  ['ML, CPU against @fastify/http-proxy', 0.65, ({ proxies }) => proxies.ML?.vsHttpProxy],
  ['MM, CPU against the pipe', 1.3, ({ proxies }) => proxies.MM?.vsPipe],
  ['heap of an idle LL session, KiB', 2, ({ idle }) => idle && idle.memory.LL.heap / 1024],
  ['heap of an idle LM session, KiB', 2, ({ idle }) => idle && idle.memory.LM.heap / 1024],
  ['LL, CPU with idle sessions against without', UNCHANGED, ({ idle }) => idle?.cpu.LL.ratio],
  ['ML, CPU with idle sessions against without', UNCHANGED, ({ idle }) => idle?.cpu.ML.ratio],
];

function figures(results, name) {
  const rounds = results.get(name);
  const of = (key) => rounds.map((round) => round[key]);
  return {
    cpuMicros: undisturbedCpu(rounds),
    cpuMedianMicros: median(of('cpu')),
    vsPipe: cpuRatio(results, name, PIPE),
    vsHttpProxy: cpuRatio(results, name, HTTP_PROXY),
    perSecond: median(of('perSecond')),
    p50Ms: median(of('p50')),
    p99Ms: median(of('p99')),
    rssMiB: median(of('rss')) / MIB,
  };
}

/** The report of a run, as `--json` prints it; `idle` is undefined where there was no gateway to measure. */
export function makeReport(machine, results, idle) {
  const proxies = Object.fromEntries([...results.keys()].map((name) => [name, figures(results, name)]));
  const report = { machine, rounds: results.get(PIPE).length, proxies, idle };
  const targets = TARGETS.map(([name, limit, read]) => {
    const value = read(report);
    // A figure that is missing is a target that is missed.
    return { name, limit, value, met: value <= limit };
  });
  return { ...report, targets };
}

function table(rows) {
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row[column].length)));
  const line = (row) =>
    row.map((cell, i) => (i === 0 ? cell.padEnd(widths[i]) : cell.padStart(widths[i]))).join('  ');
  return rows.map(line).join('\n');
}

const fixed = (digits) => (value) => (value === undefined ? '-' : value.toFixed(digits));
const [whole, one, two] = [0, 1, 2].map(fixed);

const COLUMNS = [
  ['CPU us/request', ({ cpuMicros }) => one(cpuMicros)],
  ['(median)', ({ cpuMedianMicros }) => `(${one(cpuMedianMicros)})`],
  ['vs pipe', ({ vsPipe }) => two(vsPipe)],
  ['vs http-proxy', ({ vsHttpProxy }) => two(vsHttpProxy)],
  ['requests/s', ({ perSecond }) => whole(perSecond)],
  ['p50 ms', ({ p50Ms }) => two(p50Ms)],
  ['p99 ms', ({ p99Ms }) => two(p99Ms)],
  ['RSS MiB', ({ rssMiB }) => whole(rssMiB)],
];

function idleTable({ sessions, memory, cpu }) {
  const memoryRows = Object.entries(memory).map(([cell, { heap, rss }]) => [cell, whole(heap), whole(rss)]);
  const cpuRows = Object.entries(cpu).map(([cell, figure]) => [
    cell,
    one(figure.without),
    one(figure.with),
    two(figure.ratio),
  ]);
  return [
    `Idle legacy sessions, ${sessions} on each route`,
    table([['', 'heap bytes/session', 'RSS bytes/session'], ...memoryRows]),
    table([['', 'CPU us/request without', 'with', 'ratio'], ...cpuRows]),
  ].join('\n\n');
}

function targetTable(targets) {
  const rows = targets.map(({ name, limit, value, met }) => [
    name,
    `<= ${limit}`,
    two(value),
    value === undefined ? 'not measured' : met ? 'met' : 'MISSED',
  ]);
  return `Targets\n\n${table([['', 'target', 'value', ''], ...rows])}`;
}

/** The report as text. */
export function formatReport({ machine, rounds, proxies, idle, targets }) {
  const head = `tools/call, ${rounds} alternating rounds; CPU: lowest decile, all else: medians; ${Object.values(machine).join(', ')}`;
  const name = (key) => (key.length === 2 ? `Eragate ${key}` : key);
  const rows = Object.entries(proxies).map(([key, figure]) => [
    name(key),
    ...COLUMNS.map(([, format]) => format(figure)),
  ]);
  const main = table([['', ...COLUMNS.map(([title]) => title)], ...rows]);
  return [head, main, ...(idle ? [idleTable(idle)] : []), targetTable(targets)].join('\n\n');
}
