// What legacy sessions cost that nobody uses: memory for each, and whether other requests pay for them.

import { setTimeout as delay } from 'node:timers/promises';
import { CELLS, startGateway } from './gateway.mjs';
import { openSessions } from './load.mjs';
import { end, rssBytes } from './processes.mjs';
import { alternate, cpuRatio, undisturbedCpu, warmUp } from './rounds.mjs';

const SESSION_CELLS = ['LL', 'LM'];
const CALL_CELLS = ['LL', 'ML'];

// Connections of the load before and the timers on them should be gone when memory is read.
const SETTLE_MS = 1000;

/** Bytes that a gateway started with `heap` has in use, on its heap and resident. */
export async function memory(gateway) {
  await delay(SETTLE_MS);
  return { heap: await gateway.heapBytes(), rss: rssBytes(gateway.pid) };
}

/** Opens the sessions on each route in turn; returns the bytes per session that each of them added. */
async function fill(gateway, sessions) {
  const added = {};
  // The first collection also clears up after the warm-up; what counts starts with the second.
  await gateway.heapBytes();
  let last = await memory(gateway);
  for (const cell of SESSION_CELLS) {
    await openSessions(gateway.origin, CELLS[cell].path, sessions);
    const now = await memory(gateway);
    added[cell] = { heap: (now.heap - last.heap) / sessions, rss: (now.rss - last.rss) / sessions };
    last = now;
  }
  return added;
}

/**
 * Opens `sessions` legacy sessions in front of each kind of backend and leaves them alone after their handshake; a twin
 * of that gateway without them takes turns with it, since before and after would compare two moods of the machine.
 * Returns `{ sessions, memory: { LL: { heap, rss }, LM }, cpu: { LL: { without, with, ratio }, ML } }`: bytes per session,
 * CPU microseconds per request.
 */
export async function measureIdle(backend, { sessions, rounds, warmUpMs }) {
  const limits = { sessions: sessions * SESSION_CELLS.length + 1000 };
  const empty = await startGateway(backend, { limits, heap: true });
  const full = await startGateway(backend, { limits, heap: true });
  const callers = (gateway, suffix) =>
    CALL_CELLS.map((name) => ({ ...gateway, ...CELLS[name], name: `${name} ${suffix}` }));
  const subjects = [...callers(empty, 'empty'), ...callers(full, 'full')];
  for (const subject of subjects) await warmUp(subject, warmUpMs);

  const added = await fill(full, sessions);
  // Forced collections resize the heap and throw compiled code away; the twin gets as many, and both warm up again.
  await fill(empty, 0);
  for (const subject of subjects) await warmUp(subject, warmUpMs);
  const results = await alternate(subjects, rounds);
  await Promise.all([end(empty.child), end(full.child)]);

  const cpu = {};
  for (const name of CALL_CELLS) {
    const [without, filled] = [`${name} empty`, `${name} full`];
    cpu[name] = {
      without: undisturbedCpu(results.get(without)),
      with: undisturbedCpu(results.get(filled)),
      ratio: cpuRatio(results, filled, without),
    };
  }
  return { sessions, memory: added, cpu };
}
