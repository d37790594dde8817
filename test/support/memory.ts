import type { ChildProcess } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { sleep } from './net.js';

/** Collects garbage of this process. */
export const collectGarbage: () => void = (() => {
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc');
})();

/** Options for a node whose memory is measured from outside: it collects garbage at a signal that nothing else uses. */
export const COLLECTS_AT_SIGNAL = [
  '--expose-gc',
  '--import',
  `data:text/javascript,process.on('SIGWINCH', () => globalThis.gc())`,
];

const kilobytes = (status: string, name: string) =>
  1024 * Number(new RegExp(`^${name}:\\s*(\\d+)`, 'm').exec(status)?.[1]);

/** Resident memory of a child process in bytes: now, and at most since {@link settle}. Undefined on systems without /proc. */
export function memoryOf(child: ChildProcess): { now: number; peak: number } | undefined {
  if (process.platform !== 'linux') return undefined;
  const status = readFileSync(`/proc/${child.pid}/status`, 'utf8');
  return { now: kilobytes(status, 'VmRSS'), peak: kilobytes(status, 'VmHWM') };
}

/** Collects garbage of a child that was started with {@link COLLECTS_AT_SIGNAL}, and begins a new peak. */
export async function settle(child: ChildProcess): Promise<void> {
  child.kill('SIGWINCH');
  await sleep(150);
  if (process.platform === 'linux') writeFileSync(`/proc/${child.pid}/clear_refs`, '5');
}
