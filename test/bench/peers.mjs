// npm run bench -- --peers: the gateway beside what one would put there instead, in every cell that each of them can do.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FRONTS, named } from '../fronts/index.mjs';
import { startFront } from '../fronts/start.mjs';
import { TOOL, toolCall } from './messages.mjs';
import { forkServer } from './processes.mjs';
import { PIPE as PIPE_NAME } from './report.mjs';
import { alternate, warmUp } from './rounds.mjs';

/** Some of them take milliseconds for a request, and some a second when there are many at once. */
const ROUND = { leadInMs: 200, measureMs: 1000 };
const SLOW_ROUND = { leadInMs: 2000, measureMs: 10_000 };
const SLOW_ROUNDS = 2;

/** The floor: what no proxy does without. Nobody would put it there. */
const PIPE = {
  name: PIPE_NAME,
  cells: ['LL', 'MM'],
  limit: 'passes bytes on; one era only',
  prepare: () => undefined,
  start: ({ backend }) => forkServer('proxies/pipe.mjs', backend),
};

async function startPeer(peer, cell, backend, folder) {
  const started = await startFront(peer, cell, backend, folder);
  return {
    ...started,
    name: `${peer.name} ${cell}`,
    era: cell[0] === 'L' ? 'legacy' : 'modern',
    extra: started.headers,
    slow: peer.slow,
    request: toolCall(started.names.get(TOOL) ?? TOOL),
  };
}

/**
 * Measures every peer that can be had and has `only` in its name, each in a process of its own for each cell.
 * @returns `{ results, peers }`: rounds by `peer cell`, and of each peer its name, version, limit and cells, or why it was
 * not measured
 */
export async function measurePeers(backend, { rounds, warmUpMs, only }) {
  const folder = mkdtempSync(join(tmpdir(), 'eragate-peers-'));
  process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
  const results = new Map();
  const wanted = [PIPE, ...FRONTS].filter(named(only));
  const peers = [];
  for (const cell of ['LL', 'LM', 'ML', 'MM']) {
    const subjects = [];
    for (const peer of wanted.filter(({ cells }) => cells.includes(cell))) {
      const known = peers.find(({ name }) => name === peer.name);
      if (known?.missing) continue;
      const entry = known ?? { name: peer.name, limit: peer.limit, cells: peer.cells };
      if (!known) peers.push(entry);
      try {
        entry.version ??= await peer.prepare();
        const subject = await startPeer(peer, cell, backend, folder);
        await warmUp(subject, warmUpMs);
        subjects.push(subject);
      } catch (error) {
        console.error(`${peer.name} was not measured in ${cell}: ${error.message}`);
        entry.missing = error.message.split('\n')[0];
      }
    }
    const kinds = [
      [subjects.filter(({ slow }) => !slow), rounds, ROUND],
      [subjects.filter(({ slow }) => slow), SLOW_ROUNDS, SLOW_ROUND],
    ];
    for (const kind of kinds)
      for (const [name, figures] of await alternate(...kind)) results.set(name, figures);
    await Promise.all(subjects.map((subject) => subject.close()));
  }
  return { results, peers };
}
