// npm run bench -- --peers: the gateway beside what one would put there instead, in every cell that each of them can do.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort, startGateway } from '../gateway.mjs';
import { handshake, openPool } from '../load.mjs';
import { TOOL, toolCall } from '../messages.mjs';
import { end, forkServer, startProgram } from '../processes.mjs';
import { alternate, warmUp } from '../rounds.mjs';
import { chain } from './chain.mjs';
import { contextforge } from './contextforge.mjs';
import { fastmcp } from './fastmcp.mjs';
import { nginx } from './nginx.mjs';

const PIPE = { name: 'node:http + undici pipe', cells: ['LL', 'MM'], limit: 'passes bytes on; one era only' };
const HTTP_PROXY = {
  name: '@fastify/http-proxy',
  cells: ['LL', 'MM'],
  limit: 'passes bytes on; one era only',
};
const START_MS = 60_000;
/** Some of them take milliseconds for a request, and some a second when there are many at once. */
const ROUND = { leadInMs: 200, measureMs: 1000 };
const SLOW_ROUND = { leadInMs: 2000, measureMs: 10_000 };
const SLOW_ROUNDS = 2;

const forked = (peer, file) => ({
  ...peer,
  prepare: () => undefined,
  start: ({ backend }) => forkServer(file, backend),
});

const eragate = {
  name: 'Eragate',
  cells: ['LL', 'LM', 'ML', 'MM'],
  prepare: () => undefined,
  async start({ backend, cell }) {
    const path = cell[1] === 'L' ? '/legacy' : '/modern';
    return { ...(await startGateway(backend)), access: { path } };
  },
};

const PEERS = [
  forked(PIPE, 'proxies/pipe.mjs'),
  nginx,
  forked(HTTP_PROXY, 'proxies/http-proxy.mjs'),
  eragate,
  chain,
  fastmcp,
  contextforge,
];

/** Waits until a peer answers the handshake or the request of the cell's client. */
async function untilServing(subject) {
  const deadline = Date.now() + START_MS;
  for (;;) {
    const pool = openPool(subject.origin);
    try {
      if (subject.era === 'legacy') await handshake(pool, subject);
      else {
        const { headers, body } = subject.request.modern;
        const sent = { method: 'POST', path: subject.path, headers, body: body(0) };
        const answer = await pool.request(sent);
        const text = await answer.body.text();
        if (answer.statusCode !== 200) throw new Error(`HTTP ${answer.statusCode} ${text}`);
      }
      return;
    } catch (error) {
      if (Date.now() > deadline) throw error;
      await delay(300);
    } finally {
      await pool.destroy();
    }
  }
}

async function startPeer(peer, cell, backend, folder) {
  const port = await freePort();
  const spawn = (program, args, env) => startProgram(program, args.map(String), env);
  const home = join(folder, `${peer.name.replaceAll(/\W+/g, '-')}-${cell}`);
  const started = await peer.start({ folder: home, port, backend, cell, spawn });
  const { path = '/mcp', headers = {}, tool = TOOL } = started.access ?? {};
  const subject = {
    name: `${peer.name} ${cell}`,
    child: started.child ?? started,
    pid: started.pid,
    origin: started.origin ?? `http://127.0.0.1:${port}`,
    era: cell[0] === 'L' ? 'legacy' : 'modern',
    path,
    extra: headers,
    slow: peer.slow,
    request: toolCall(tool),
  };
  await untilServing(subject);
  return subject;
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
  const wanted = PEERS.filter(({ name }) => name.toLowerCase().includes(only.toLowerCase()));
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
    await Promise.all(subjects.map(({ child }) => end(child)));
  }
  return { results, peers };
}
