import { until } from './wait.js';

/**
 * The process groups of the running servers. Each server leads a group of its own, so that its descendants end with it,
 * and so that a signal to the gateway's terminal does not reach it while requests are in flight.
 */
const running = new Set<number>();
let watching = false;

/** Whether the system can signal a process group. */
const HAS_GROUPS = process.platform !== 'win32';

/** Kills the group when this process exits, unless this process is killed itself. */
export function watchGroup(leader: number): void {
  running.add(leader);
  if (watching) return;
  watching = true;
  process.on('exit', () => {
    for (const group of running) signalGroup(group, 'SIGKILL');
  });
}

/** @returns whether the group has any process; signal 0 only checks that */
export function signalGroup(leader: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(HAS_GROUPS ? -leader : leader, signal);
    return true;
  } catch {
    return false;
  }
}

/** Ends the descendants that a process has left behind: SIGTERM, then SIGKILL after `terminateMs`. */
export async function endGroup(leader: number, terminateMs: number): Promise<void> {
  if (signalGroup(leader, 'SIGTERM')) {
    await until(terminateMs, () => !signalGroup(leader, 0));
    signalGroup(leader, 'SIGKILL');
  }
  running.delete(leader);
}
