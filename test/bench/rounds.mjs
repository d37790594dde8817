// Alternating rounds. On a shared machine the CPU time of the same work wanders by tens of per cent within seconds, as
// neighbours come and go in its caches. Many short rounds side by side see through that, one long measurement does not.

import { CONNECTIONS, load, openPool, openSessions } from './load.mjs';
import { cpuMicros, rssBytes } from './processes.mjs';

// The lead-in lets the connections and the caches come back to speed.
const ROUND = { leadInMs: 100, measureMs: 250 };

export function quantile(values, q) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))];
}

export const median = (values) => quantile(values, 0.5);

/** Opens the sessions that a subject's callers need and sends long enough for the compiler to settle. */
export async function warmUp(subject, ms) {
  if (subject.era === 'legacy') {
    subject.sessions = await openSessions(subject.origin, subject.path, CONNECTIONS, subject.extra);
  }
  subject.pool ??= openPool(subject.origin);
  await load({ ...subject, leadInMs: ms, measureMs: 0, probe: () => 0 });
}

async function round(subject, length) {
  const { requests, seconds, latencies, before, after } = await load({
    ...subject,
    ...length,
    probe: () => cpuMicros(subject.pid),
  });
  return {
    cpu: (after - before) / requests,
    perSecond: requests / seconds,
    p50: quantile(latencies, 0.5),
    p99: quantile(latencies, 0.99),
    rss: rssBytes(subject.pid),
  };
}

/**
 * Measures subjects `{ name, pid, origin, path, era, request, extra, sessions }` in `count` alternating rounds, every other
 * one in reverse order. Returns a Map from name to its rounds: `cpu` in microseconds per request, `perSecond`, `p50` and `p99`
 * in ms, `rss` in bytes.
 */
export async function alternate(subjects, count, length = ROUND) {
  const results = new Map(subjects.map(({ name }) => [name, []]));
  for (let i = 0; i < count; i++) {
    for (const subject of i % 2 ? subjects.toReversed() : subjects) {
      results.get(subject.name).push(await round(subject, length));
    }
  }
  return results;
}

/**
 * CPU per request of a subject, undisturbed: the lowest decile of its rounds. Neighbours only ever add to it, so this is
 * reproducible within some 3 % where the median moves by 10 %. Every round holds a few minor garbage collections; the
 * major ones, one in several seconds, fall out for all subjects alike.
 */
export const undisturbedCpu = (rounds) =>
  quantile(
    rounds.map(({ cpu }) => cpu),
    0.1,
  );

/** `undisturbedCpu` of one subject divided by another's; undefined without the other. */
export function cpuRatio(results, name, base) {
  return results.has(base)
    ? undisturbedCpu(results.get(name)) / undisturbedCpu(results.get(base))
    : undefined;
}
