// The processes of a run. Each has a group of its own, so that what it started ends with it.
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

const running = new Set();
const SCRATCH = mkdtempSync(join(tmpdir(), 'eragate-interop-'));

/** An empty folder that goes with this run. */
export const scratchFolder = () => mkdtempSync(`${SCRATCH}/`);

process.on('exit', () => {
  for (const child of running) signal(child, 'SIGKILL');
  rmSync(SCRATCH, { recursive: true, force: true, maxRetries: 3 });
});
for (const name of ['SIGINT', 'SIGTERM']) process.on(name, () => process.exit(1));

function signal(child, name) {
  try {
    process.kill(-child.pid, name);
  } catch {
    // The group is gone already.
  }
}

const KEPT_OUTPUT = 200_000;

/**
 * Starts a command in a group of its own: `output()` is what it has printed of late, `lines` gets every line of its
 * standard output, `stop()` ends it and its children. It works in a folder of this run's, since some leave things there.
 */
export function start({ command, args = [], env = {}, cwd = SCRATCH }, lines) {
  const child = spawn(command, args, {
    cwd,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  running.add(child);
  let printed = '';
  let rest = '';
  const ended = new Promise((resolve) => {
    child.once('error', (error) => {
      printed += error.message;
      running.delete(child);
      resolve({ code: -1 });
    });
    child.once('close', (code, by) => {
      running.delete(child);
      resolve({ code, by });
    });
  });
  const keep = (text) => {
    printed = (printed + text).slice(-KEPT_OUTPUT);
  };
  child.stdout.setEncoding('utf8').on('data', (text) => {
    keep(text);
    if (lines === undefined) return;
    const parts = (rest + text).split('\n');
    rest = parts.pop();
    for (const part of parts) lines(part);
  });
  child.stderr.setEncoding('utf8').on('data', keep);
  return {
    ended,
    output: () => printed,
    alive: () => running.has(child),
    async stop() {
      if (child.pid === undefined) return;
      signal(child, 'SIGTERM');
      const late = Promise.race([ended, delay(3000, 'late', { ref: false })]);
      if ((await late) === 'late') signal(child, 'SIGKILL');
      await ended;
      signal(child, 'SIGKILL');
    },
  };
}

/** Runs a command to its end, or ends it after `timeoutMs`. */
export async function run(command, timeoutMs, lines) {
  const process = start(command, lines);
  const timer = new AbortController();
  const late = delay(timeoutMs, 'late', { signal: timer.signal }).catch(() => {});
  const first = await Promise.race([process.ended, late]);
  timer.abort();
  await process.stop();
  return {
    code: first === 'late' ? undefined : first.code,
    timedOut: first === 'late',
    output: process.output(),
  };
}

export { freePort } from '../../support/free-port.mjs';

/** True when something accepts connections on the port. */
function accepts(port) {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

/** Waits until `started` listens on the port. */
export async function untilListening(started, port, timeoutMs = 30_000) {
  const deadline = Date.now() + timeoutMs;
  while (started.alive() && Date.now() < deadline) {
    if (await accepts(port)) return;
    await delay(50);
  }
  const why = started.alive() ? `does not listen after ${timeoutMs} ms` : 'ended at once';
  throw new Error(`${why}: ${started.output().slice(-600)}`);
}
