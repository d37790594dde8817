// Starts a front as a process of its own and waits until it serves.

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from '../bench/gateway.mjs';
import { handshake, openPool } from '../bench/load.mjs';
import { clientRequest } from '../bench/messages.mjs';
import { end, startProgram } from '../bench/processes.mjs';

const START_MS = 60_000;
const PAUSE_MS = 300;

const LIST = clientRequest(
  (meta) => ({ jsonrpc: '2.0', id: 0, method: 'tools/list', params: { ...(meta && { _meta: meta }) } }),
  (result) => Array.isArray(result?.tools),
);

async function list(pool, { path, headers: extra }) {
  const { headers, body } = LIST.modern;
  const answer = await pool.request({
    method: 'POST',
    path,
    headers: { ...headers, ...extra },
    body: body(0),
  });
  const text = await answer.body.text();
  if (answer.statusCode !== 200) throw new Error(`HTTP ${answer.statusCode} ${text.slice(0, 300)}`);
}

/** Waits until the handshake of a legacy client, or a list for a modern one, succeeds. */
async function untilServing(front, cell) {
  const deadline = Date.now() + START_MS;
  let refusal;
  for (;;) {
    const pool = openPool(front.origin);
    const late = setTimeout(() => pool.destroy(new Error('no answer')), deadline - Date.now());
    try {
      if (cell[0] === 'L') await handshake(pool, { path: front.path, extra: front.headers });
      else await list(pool, front);
      return;
    } catch (error) {
      if (Date.now() >= deadline || front.child.exitCode !== null) throw refusal ?? error;
      refusal = error;
      await delay(PAUSE_MS);
    } finally {
      clearTimeout(late);
      await pool.destroy();
    }
  }
}

/**
 * Starts one of FRONTS in front of `backend`, an origin, with a folder of its own in `folder`.
 * @returns `{ child, pid, origin, path, headers, names, close }`
 * @throws Error when it does not serve the client of the cell within a minute
 */
export async function startFront(front, cell, backend, folder) {
  const port = await freePort();
  const own = join(folder, `${front.name.replaceAll(/\W+/g, '-')}-${cell}`);
  mkdirSync(own, { recursive: true });
  const spawn = (program, args, env) => startProgram(program, args.map(String), env);
  const started = await front.start({ backend, cell, port, folder: own, spawn });
  const { path = '/mcp', headers = {}, names = new Map() } = started.access ?? {};
  const child = started.child ?? started;
  const origin = started.origin ?? `http://127.0.0.1:${port}`;
  const running = { child, pid: child.pid, origin, path, headers, names, close: () => end(child) };
  try {
    await untilServing(running, cell);
  } catch (error) {
    await running.close();
    throw error;
  }
  return running;
}
