// What streams cost on which clients wait for changes, and how soon a change reaches all of them.

import { Fleet, KINDS } from './fleet.mjs';
import { CELLS, startGateway } from './gateway.mjs';
import { memory } from './idle.mjs';
import { ask, cpuMicros, end, forkServer, openFilesLimit } from './processes.mjs';
import { median } from './rounds.mjs';
import { measureStalled } from './stalled.mjs';

/** Streams of the era that the backend is not of. */
const STREAMS = {
  ML: { kind: KINDS.listen, backend: 'legacy' },
  LM: { kind: KINDS.get, backend: 'modern' },
};

// The code for streams is compiled, and the heap has grown, before memory is read.
const WARM_UP = 300;
/** Descriptors for all else. */
const SPARE_FILES = 1000;

async function measureCell(gateway, backend, cell, { streams, changes }) {
  const { kind, backend: era } = STREAMS[cell];
  const fleet = new Fleet();
  const url = gateway.origin + CELLS[cell].path;
  const announce = () => backend.child.send({ announce: era });

  await gateway.heapBytes();
  const before = await memory(gateway);
  await fleet.open(kind, url, streams);
  const after = await memory(gateway);
  const { feeds } = await ask(backend.child, { ask: true });

  const times = [];
  const cpuBefore = cpuMicros(gateway.pid);
  for (let i = 0; i < changes; i++) times.push(await fleet.reach(announce));
  const cpu = (cpuMicros(gateway.pid) - cpuBefore) / changes / streams;
  return {
    fleet,
    figures: {
      feeds: feeds[era],
      heap: (after.heap - before.heap) / streams,
      rss: (after.rss - before.rss) / streams,
      reachMs: median(times),
      slowestMs: Math.max(...times),
      cpuMicros: cpu,
    },
  };
}

async function warmUp(gateway, backend, cell) {
  const { kind, backend: era } = STREAMS[cell];
  const fleet = new Fleet();
  await fleet.open(kind, gateway.origin + CELLS[cell].path, WARM_UP);
  for (let i = 0; i < 20; i++) await fleet.reach(() => backend.child.send({ announce: era }));
  fleet.close();
}

/**
 * Opens `streams` streams of each kind on one gateway, those of the first kind staying open while the second is
 * measured; the sessions of legacy clients count as part of their streams. As many as the descriptors of a process allow:
 * both ends of every stream need one. Returns `{ streams, planned, cells: { ML: { feeds, heap, rss, reachMs, slowestMs,
 * cpuMicros, stalled }, LM } }`: feeds at the backend, bytes per stream, milliseconds from the announcement until all
 * have read it, CPU of the gateway per stream and change, and what `measureStalled` returns.
 */
export async function measureListeners({ streams: planned, changes, stalled }) {
  const room = Math.floor((openFilesLimit() - SPARE_FILES) / Object.keys(STREAMS).length);
  const streams = Math.min(planned, room);
  const backend = await forkServer('list-backend.mjs');
  const most = (streams + WARM_UP) * 2;
  const limits = { listeners: most, sessions: most, exchanges: most * 2 };
  const gateway = await startGateway(backend.origin, { limits, heap: true });

  const cells = {};
  for (const cell of Object.keys(STREAMS)) await warmUp(gateway, backend, cell);
  const fleets = [];
  for (const cell of Object.keys(STREAMS)) {
    const { fleet, figures } = await measureCell(gateway, backend, cell, { streams, changes });
    fleets.push(fleet);
    cells[cell] = figures;
  }
  for (const fleet of fleets) fleet.close();
  await end(gateway.child);

  for (const [cell, { kind, backend: era }] of Object.entries(STREAMS)) {
    const fresh = await startGateway(backend.origin);
    const announce = (padding) => backend.child.send({ announce: era, padding });
    cells[cell].stalled = await measureStalled(kind, fresh.origin + CELLS[cell].path, announce, stalled);
    await end(fresh.child);
  }
  await end(backend.child);
  return { streams, planned, cells };
}
