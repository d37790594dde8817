/**
 * The groups of the processes that are running. Each server leads a group of its own, so that what it has started ends
 * with it, and a signal to the gateway's terminal does not end it before its answers are out.
 */
const running = new Set<number>();
let watching = false;

/** Signals of one group on systems that have them. */
const HAS_GROUPS = process.platform !== 'win32';

/** From now on the group does not outlive this process, unless that is killed itself. */
export function watchGroup(leader: number): void {
  running.add(leader);
  if (watching) return;
  watching = true;
  process.on('exit', () => {
    for (const group of running) signalGroup(group, 'SIGKILL');
  });
}

export function forgetGroup(leader: number): void {
  running.delete(leader);
}

/** @returns whether there was anybody to get the signal; 0 only asks for that */
export function signalGroup(leader: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(HAS_GROUPS ? -leader : leader, signal);
    return true;
  } catch {
    return false;
  }
}
