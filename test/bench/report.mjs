// From rounds to figures and from figures to targets.

import { cpuRatio, median, undisturbedCpu } from './rounds.mjs';

export const PIPE = 'node:http + undici pipe';
export const HTTP_PROXY = '@fastify/http-proxy';

const MIB = 1024 * 1024;

// "Does not change" within the noise of two processes that do the same.
const UNCHANGED = 1.15;

const LISTS = ['ML, kept by configuration', 'MM, kept by a public hint', 'MM, kept by a private hint'];

/** The larger of both: what was resident already and free takes in some of what is added to the heap. */
function streamKiB(listeners, cell) {
  return listeners && Math.max(listeners.cells[cell].heap, listeners.cells[cell].rss) / 1024;
}

/** What the project promises: a name, the highest value allowed, and where the value stands in a report. */
const TARGETS = [
  ['ML, CPU against the pipe', 1.5, ({ proxies }) => proxies.ML?.vsPipe],
  ['ML, CPU against @fastify/http-proxy', 0.65, ({ proxies }) => proxies.ML?.vsHttpProxy],
  ['MM, CPU against the pipe', 1.3, ({ proxies }) => proxies.MM?.vsPipe],
  ['heap of an idle LL session, KiB', 2, ({ idle }) => idle && idle.memory.LL.heap / 1024],
  ['heap of an idle LM session, KiB', 2, ({ idle }) => idle && idle.memory.LM.heap / 1024],
  ['LL, CPU with idle sessions against without', UNCHANGED, ({ idle }) => idle?.cpu.LL.ratio],
  ['ML, CPU with idle sessions against without', UNCHANGED, ({ idle }) => idle?.cpu.ML.ratio],
  ...LISTS.map((name) => [
    `tools/list, ${name}, CPU against the pipe`,
    0.9,
    ({ lists }) => lists?.cpu[name].ratio,
  ]),
  ['memory of a listen stream (ML), KiB', 30, ({ listeners }) => streamKiB(listeners, 'ML')],
  ['memory of a GET stream (LM), KiB', 30, ({ listeners }) => streamKiB(listeners, 'LM')],
  ['ML, time beside a stalled listener', 2, ({ listeners }) => listeners?.cells.ML.stalled.ratio],
  ['LM, time beside a stalled listener', 2, ({ listeners }) => listeners?.cells.LM.stalled.ratio],
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

/**
 * The report of a run beside other proxies, as `--json` prints it; `counted` is what the conformance suite found of them,
 * which is told of the same version alone.
 */
export function makePeersReport(machine, { results, peers }, counted) {
  const checksOf = (name, version = '') =>
    counted[name]?.version === version ? (cell) => counted[name].cells[cell] : () => undefined;
  const measured = ({ name, version }) =>
    ['LL', 'LM', 'ML', 'MM'].flatMap((cell) => {
      const key = `${name} ${cell}`;
      if (!results.has(key)) return [];
      const { cpuMicros, perSecond, p50Ms, p99Ms, rssMiB } = figures(results, key);
      const vsPipe = cpuRatio(results, key, `${PIPE} ${cell}`);
      const { passed, failed } = checksOf(name, version)(cell) ?? {};
      return [[cell, { cpuMicros, vsPipe, perSecond, p50Ms, p99Ms, rssMiB, checks: { passed, failed } }]];
    });
  return {
    machine,
    peers: peers.map((peer) => ({ ...peer, cells: Object.fromEntries(measured(peer)) })),
  };
}

/**
 * The report of a run, as `--json` prints it; `idle`, `lists` and `listeners` are undefined where there was no gateway to
 * measure.
 */
export function makeReport(machine, results, { idle, lists, listeners } = {}) {
  const proxies = Object.fromEntries([...results.keys()].map((name) => [name, figures(results, name)]));
  const report = { machine, rounds: results.get(PIPE).length, proxies, idle, lists, listeners };
  const targets = TARGETS.map(([name, limit, read]) => {
    const value = read(report);
    // A figure that is missing is a target that is missed.
    return { name, limit, value, met: value <= limit };
  });
  return { ...report, targets };
}
