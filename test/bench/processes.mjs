// The processes of a run and what Linux accounts to each. One source for all of them, /proc, so that the figures of a
// proxy that could help the bench and of one that cannot are of the same kind. Linux only.

import { fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const env = { ...process.env, NODE_ENV: 'production' };
const children = new Set();

// Nothing of a run outlives it, and no process here has anything to put in order first.
process.on('exit', () => {
  for (const child of children) child.kill('SIGKILL');
});
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1));

function keep(child) {
  children.add(child);
  child.once('exit', () => children.delete(child));
  return child;
}

/** A process and those that it started, and they again. */
function family(pid) {
  const started = [];
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    const children = readFileSync(`/proc/${pid}/task/${thread}/children`, 'latin1').trim();
    if (children !== '') started.push(...children.split(' ').flatMap(family));
  }
  return [pid, ...started];
}

/**
 * CPU time of a process and those that it started, so far, all threads, user and system, in microseconds. The sum of the threads' schedstat, which
 * counts nanoseconds; /proc/<pid>/stat has the same sum, but in steps of 10 ms, too coarse for a round of 250 ms.
 */
export function cpuMicros(pid) {
  let nanos = 0;
  for (const member of family(pid)) {
    for (const thread of readdirSync(`/proc/${member}/task`)) {
      nanos += Number(readFileSync(`/proc/${member}/task/${thread}/schedstat`, 'latin1').split(' ')[0]);
    }
  }
  return nanos / 1000;
}

/** Resident memory of a process and those that it started, in bytes. */
export function rssBytes(pid) {
  const of = (member) =>
    Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${member}/status`, 'latin1'))[1]);
  return family(pid).reduce((sum, member) => sum + of(member), 0) * 1024;
}

/** Descriptors that this process and its children may have open. Node raises the soft limit to the hard one. */
export function openFilesLimit() {
  const limit = /^Max open files\s+(\d+|unlimited)/m.exec(readFileSync('/proc/self/limits', 'latin1'))[1];
  return limit === 'unlimited' ? Number.POSITIVE_INFINITY : Number(limit);
}

/** Forks a server of this folder, one that uses `reportListening`. Returns `{ child, pid, origin }`. */
export async function forkServer(file, ...args) {
  const child = keep(fork(fileURLToPath(new URL(file, import.meta.url)), args, { env }));
  const ended = once(child, 'exit').then(([code]) => {
    throw new Error(`${file} ended with exit code ${code} before it listened`);
  });
  const [{ port }] = await Promise.race([once(child, 'message'), ended]);
  ended.catch(() => {});
  return { child, pid: child.pid, origin: `http://127.0.0.1:${port}` };
}

/** Sends a message to a child and gives its answer. */
export async function ask(child, message) {
  child.send(message);
  const [answer] = await once(child, 'message');
  return answer;
}

/** Starts `node` with its standard output thrown away, and with an IPC channel when asked for. */
export function startNode(args, { ipc = false } = {}) {
  const stdio = ['ignore', 'ignore', 'inherit', ...(ipc ? ['ipc'] : [])];
  return keep(spawn(process.execPath, args, { env, stdio }));
}

/** Starts a program with its output thrown away; `more` are variables of its environment. */
export function startProgram(program, args, more = {}) {
  return keep(spawn(program, args, { env: { ...env, ...more }, stdio: 'ignore' }));
}

/** Ends a child that is not needed any more, if it has not ended. */
export async function end(child) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGKILL');
  await once(child, 'exit');
}
